import { isIP, type Socket } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { endsOf } from "./socket-ends.ts";
import { TlsCarrier } from "./tls-carrier.ts";
import { tlsWords } from "./tls-words.ts";

let context: SecureContext | undefined;
/** Made once: it costs more than many attempts. Nothing is checked, so old and short keys do as well. */
const secureContext = (): SecureContext => {
  context ??= createSecureContext({ ciphers: "DEFAULT@SECLEVEL=0", minVersion: "TLSv1.2" });
  return context;
};

/**
 * TLS over a connection, with any certificate; HTTP/2 is offered too. `done` is called once, and takes it at once: what
 * the server says next comes in the same breath. Error: Go's words. Go 1.26: crypto/tls.
 */
export function secured(
  socket: Socket,
  host: string,
  opened: Opened,
  done: (secure: Result<TLSSocket, string>) => void,
): void {
  const { local, remote } = endsOf(socket);
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
