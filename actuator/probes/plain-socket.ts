import { isIPv6 } from "node:net";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import { type Ends, endsOf, TellingSocket } from "./socket-ends.ts";

/** All read into it, one after the other: what came is taken out before the next reads. */
const READ = Buffer.allocUnsafeSlow(64 * 1024);

/** In one turn. */
const MOST_FULL_READS = 4;

/** A connection without TLS, made for thousands a second: it takes no memory for what it reads, and asks for no addresses. */
export class PlainSocket extends TellingSocket {
  /** What came, a character a byte. */
  onText: (text: string) => void = ignored;
  #remote: string | undefined;
  #fullReads = 0;

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
    return { local: this.local, remote: this.#remote ?? "" };
  }

  #read(length: number): boolean {
    this.onText(READ.toString("latin1", 0, length));
    if (length < READ.length || ++this.#fullReads < MOST_FULL_READS) return true;
    // whoever sends this much has its turn again behind the others
    this.#fullReads = 0;
    setImmediate(() => this.resume());
    return false;
  }
}
const ignored = (): void => {};
