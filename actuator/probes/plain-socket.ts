import { isIPv6, Socket } from "node:net";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import { type Ends, endsOf } from "./socket-ends.ts";

/** All read into it, one after the other: what came is taken out before the next reads. */
const READ = Buffer.allocUnsafeSlow(64 * 1024);

/** A connection without TLS, made for thousands a second: it takes no memory for what it reads, and asks for no addresses. */
export class PlainSocket extends Socket {
  /** What came, a character a byte. */
  onText: (text: string) => void = ignored;
  #remote: string | undefined;
  #local: string | undefined;

  /** To be connected with this address. */
  constructor(address: string, port: number) {
    super({ noDelay: true, onread: { buffer: READ, callback: (length) => this.#read(length) } });
    if (isIPv6(address)) {
      // they are written in more than one way, and the system is not asked about a connection that was reset
      this.once("connect", () => {
        this.#remote = endsOf(this).remote;
      });
    } else this.#remote = hostPort(address, port);
  }

  /** Of a connection that broke. */
  get ends(): Ends {
    return { local: this.#local ?? "", remote: this.#remote ?? "" };
  }

  /** A socket that is closed has forgotten its address, which is told in errors only. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null) this.#local = endsOf(this).local;
    super._destroy(error, callback);
  }

  #read(length: number): boolean {
    this.onText(READ.toString("latin1", 0, length));
    return true;
  }
}
const ignored = (): void => {};
