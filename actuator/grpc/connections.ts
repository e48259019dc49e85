import type { Socket } from "node:net";

export interface ConnectionsOptions {
  readonly most: number;
  /** Faults of a connection are reported at most this often, ms. */
  readonly tellMs?: number;
  /** A sentence. */
  readonly onFull: (message: string) => void;
}
interface Open {
  readonly isBusy: () => boolean;
  heardAt: number;
}

const TELL_MS = 60_000;

/** Connections at a time: where there are too many, one that asks for nothing makes room, the one that was silent the longest. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<Socket, Open>();
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** `isBusy`: a call of it is under way. False: all others are busy, and it was closed. */
  admit(socket: Socket, isBusy: () => boolean): boolean {
    const isAdmitted = this.#open.size < this.#options.most || this.#dropSilent();
    if (!isAdmitted) {
      socket.destroy();
      return false;
    }
    const open = { isBusy, heardAt: performance.now() };
    this.#open.set(socket, open);
    socket.on("data", () => (open.heardAt = performance.now())).on("close", () => this.#open.delete(socket));
    return true;
  }

  #dropSilent(): boolean {
    const idle = [...this.#open].filter(([, { isBusy }]) => !isBusy());
    const [silent] = idle.sort(([, a], [, b]) => a.heardAt - b.heardAt);
    this.#tell(
      silent === undefined ? "all wait for an answer, and a new one was closed" : "the most silent was closed",
    );
    if (silent === undefined) return false;
    this.#open.delete(silent[0]);
    silent[0].destroy();
    return true;
  }
  #tell(what: string): void {
    const now = performance.now();
    if (now - this.#toldAt < (this.#options.tellMs ?? TELL_MS)) return;
    this.#toldAt = now;
    this.#options.onFull(`${this.#options.most} connections are open, as many as may be: ${what}`);
  }
}
