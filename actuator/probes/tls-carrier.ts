import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** What a record of TLS says of itself. */
const MOST_BYTES = 5;

/** A connection for TLS to go over, which keeps how its server began: OpenSSL does not tell what is no TLS. */
export class TlsCarrier extends Duplex {
  readonly #socket: Socket;
  /** The first five bytes of the server, a character a byte; fewer: no more have come. */
  begun = "";

  constructor(socket: Socket) {
    super({ emitClose: true });
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      if (this.begun.length < MOST_BYTES) this.begun += bytes.toString("latin1", 0, MOST_BYTES - this.begun.length);
      if (!this.push(bytes)) socket.pause();
    });
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }
  override _read(): void {
    this.#socket.resume();
  }
  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }
  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
