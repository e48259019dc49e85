import { isIP, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { addressesOf, type OpenConnections, tlsWords } from "./dial.ts";

/** Length of a TLS record's header. */
const MAX_BYTES = 5;

/** Carries TLS over a socket and keeps the server's first bytes, since OpenSSL does not report what a server without TLS sent. */
class TlsCarrier extends Duplex {
  readonly #socket: Socket;
  /** The first five bytes from the server, one character per byte; fewer until they have arrived. */
  begun = "";

  constructor(socket: Socket) {
    super({ emitClose: true });
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      if (this.begun.length < MAX_BYTES) this.begun += bytes.toString("latin1", 0, MAX_BYTES - this.begun.length);
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

let context: SecureContext | undefined;
/** Created once: it costs more than many attempts. Certificates are not checked, so old and short keys are accepted too. */
const secureContext = (): SecureContext => {
  context ??= createSecureContext({ ciphers: "DEFAULT@SECLEVEL=0", minVersion: "TLSv1.2" });
  return context;
};

/**
 * Starts TLS over a connection, with any certificate; HTTP/2 is offered too. `done` is called once, and must use the
 * connection at once: the server's first data may follow immediately. Error: Go's words. Go 1.26: crypto/tls.
 */
export function secured(
  socket: Socket,
  host: string,
  opened: OpenConnections,
  done: (secure: Result<TLSSocket, string>) => void,
): void {
  const { local, remote } = addressesOf(socket);
  const carrier = new TlsCarrier(socket);
  const tls = opened.add(
    connect({
      socket: carrier,
      secureContext: secureContext(),
      rejectUnauthorized: false,
      ALPNProtocols: ["h2", "http/1.1"],
      ...(isIP(host) === 0 ? { servername: host } : {}),
    }),
  );
  let isSettled = false;
  const settle = (secure: Result<TLSSocket, string>): void => {
    if (isSettled) return;
    isSettled = true;
    if (!secure.ok) opened.close(tls);
    done(secure);
  };
  tls.on("error", (error) => settle(err(tlsWords(error, local, remote, carrier.begun))));
  tls.once("close", () => settle(err("EOF")));
  tls.once("secureConnect", () => settle(ok(tls)));
}
