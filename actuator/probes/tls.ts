import { isIP, type Socket } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { endsOf } from "./socket-ends.ts";
import { tlsWords } from "./tls-words.ts";

let context: SecureContext | undefined;
/** Made once: it costs more than many attempts. Nothing is checked, so old and short keys do as well. */
const secureContext = (): SecureContext => {
  context ??= createSecureContext({ ciphers: "DEFAULT@SECLEVEL=0", minVersion: "TLSv1.2" });
  return context;
};

/** TLS over a connection, with any certificate; HTTP/2 is offered too. Error: Go's words. Go 1.26: crypto/tls. */
export function secured(socket: Socket, host: string, opened: Opened): Promise<Result<TLSSocket, string>> {
  return new Promise((resolve) => {
    const { local, remote } = endsOf(socket);
    const tls = opened.add(
      connect({
        socket,
        secureContext: secureContext(),
        rejectUnauthorized: false,
        ALPNProtocols: ["h2", "http/1.1"],
        ...(isIP(host) === 0 ? { servername: host } : {}),
      }),
    );
    const failed = (words: string): void => {
      opened.close(tls);
      resolve(err(words));
    };
    tls.on("error", (error) => failed(tlsWords(error, local, remote)));
    tls.once("close", () => failed("EOF"));
    tls.once("secureConnect", () => {
      tls.removeAllListeners("close");
      resolve(ok(tls));
    });
  });
}
