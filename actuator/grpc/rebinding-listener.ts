import { basename, dirname } from "node:path";
import type { Result } from "../../api/model/result.ts";
import { type BoundListener, type Listener, type Listening, listenOn } from "./listener.ts";
import { CoalescedTimer, WatchedDirectory } from "./watched-directory.ts";

export interface RebindingSocket extends Listener {
  /** Why the socket is lost now; undefined: it is not, or nobody has tried to bind it again yet. */
  fault(): string | undefined;
}
export interface RebindingListener extends Listening {
  /** Told, as a sentence, when the socket was lost and came back, and once of each reason why it does not, which stands. */
  readonly onFault: (message: string, stands: boolean) => void;
  /** Between two looks that nothing asked for, ms. */
  readonly lookMs?: number;
  /** From the loss of the socket until it is bound again, ms. */
  readonly firstDelayMs?: number;
}

const LOOK_MS = 10_000;
/** One change of a name comes as several events. */
const SETTLE_MS = 50;
/** A kubelet that starts removes the socket and binds its own: it is not to be beaten to it. */
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;

/**
 * As `listenOn`, and a socket that somebody removes is bound again: its clients wait for its creation. Where the same
 * hand removes it again and again, that is done less and less often; another's socket in its place is left alone.
 */
export async function listenRebinding(options: RebindingListener): Promise<Result<RebindingSocket, string>> {
  const listening = await listenOn(options);
  if (!listening.ok) return listening;
  const lasting = new RebindingSocketListener(options, listening.value);
  return { ok: true, value: { path: options.path, close: () => lasting.close(), fault: () => lasting.fault } };
}

class RebindingSocketListener {
  readonly #options: RebindingListener;
  readonly #directory: WatchedDirectory;
  readonly #looking = new CoalescedTimer(() => this.#look());
  #listener: BoundListener;
  #boundAt = performance.now();
  #delayMs: number;
  /** Set while the socket is lost. */
  #binding: NodeJS.Timeout | undefined;
  #said = "";
  #isClosed = false;

  constructor(options: RebindingListener, listener: BoundListener) {
    this.#options = options;
    this.#listener = listener;
    this.#delayMs = this.#firstDelayMs;
    const name = basename(options.path);
    this.#directory = new WatchedDirectory(dirname(options.path), (changed) => {
      if (changed === null || changed === name) this.#looking.in(SETTLE_MS);
    });
    this.#look();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#looking.stop();
    clearTimeout(this.#binding);
    this.#directory.close();
    return this.#listener.close();
  }

  get fault(): string | undefined {
    return this.#said === "" ? undefined : this.#said;
  }
  get #firstDelayMs(): number {
    return this.#options.firstDelayMs ?? FIRST_DELAY_MS;
  }
  #look(): void {
    this.#looking.in(this.#options.lookMs ?? LOOK_MS);
    this.#directory.renew();
    if (this.#binding !== undefined || this.#listener.stands()) return;
    if (performance.now() - this.#boundAt > LONGEST_DELAY_MS) this.#delayMs = this.#firstDelayMs;
    this.#bindLater();
  }
  #bindLater(): void {
    this.#binding = setTimeout(() => void this.#bind(), this.#delayMs).unref();
    this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_DELAY_MS);
  }

  async #bind(): Promise<void> {
    const lost = this.#listener;
    const next = lost.stands() ? undefined : await listenOn(this.#options);
    if (this.#isClosed) {
      if (next?.ok) await next.value.close();
      return;
    }
    if (next?.ok === false) {
      this.#say(`the socket was taken away, and cannot be bound again: ${next.error}`);
      this.#bindLater();
      return;
    }
    this.#binding = undefined;
    if (next !== undefined) {
      this.#listener = next.value;
      this.#boundAt = performance.now();
      void lost.close();
      this.#options.onFault(`${this.#options.path} was taken away while it was served: it is bound again`, false);
    }
    this.#said = "";
    this.#looking.in(0);
  }

  #say(message: string): void {
    if (message !== this.#said) this.#options.onFault(message, true);
    this.#said = message;
  }
}
