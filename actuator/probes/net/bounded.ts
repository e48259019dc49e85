import { Socket } from "node:net";
import { hostPort } from "../../../api/decide/probes/http-request.ts";

export interface SocketAddresses {
  readonly local: string;
  readonly remote: string;
}
/** Both ends of an open connection as Go prints them; a closed one has forgotten them. */
export function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketAddresses {
  return {
    local: hostPort(localAddress ?? "", localPort ?? 0),
    remote: hostPort(remoteAddress ?? "", remotePort ?? 0),
  };
}

/** A socket that is closed has forgotten its own address, which is told in errors only. */
export class AddressedSocket extends Socket {
  #local: string | undefined;

  /** Address of a connection that broke. */
  get local(): string {
    return this.#local ?? "";
  }
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null) this.#local = addressesOf(this).local;
    super._destroy(error, callback);
  }
}

/** A resource that an attempt opened. */
export interface Closable {
  destroy(): unknown;
}
/** Everything that an attempt opened, closed when the attempt ends. */
export class Opened {
  /** Rarely more than one or two. */
  readonly #open: Closable[] = [];
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }
  /** After the end it is closed at once. */
  add<C extends Closable>(closable: C): C {
    if (this.#isOver) closable.destroy();
    else this.#open.push(closable);
    return closable;
  }
  close(closable: Closable): void {
    const at = this.#open.indexOf(closable);
    if (at >= 0) this.#open.splice(at, 1);
    closable.destroy();
  }
  closeAll(): void {
    this.#isOver = true;
    for (let one = this.#open.pop(); one !== undefined; one = this.#open.pop()) one.destroy();
  }
}

/**
 * Work that ends after so many milliseconds at the latest, whatever it waits for, and leaves nothing open.
 * @param late what came of it when its time is over
 * @param broken what comes of an error that nobody thought of
 */
export function bounded<T>(
  timeoutMs: number,
  work: (opened: Opened) => Promise<T>,
  late: () => T,
  broken: (error: unknown) => T,
): Promise<T> {
  const opened = new Opened();
  return new Promise((resolve) => {
    const end = (result: T): void => {
      if (opened.isOver) return;
      clearTimeout(timer);
      opened.closeAll();
      resolve(result);
    };
    const timer = setTimeout(() => end(late()), timeoutMs);
    work(opened).then(end, (error: unknown) => end(broken(error)));
  });
}
