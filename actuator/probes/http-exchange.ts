import type { Opened } from "./bounded.ts";
import { dial, dialTo } from "./dial.ts";
import { type Exchanged, exchangeHttp1, exchangePlain, type Listening } from "./http1.ts";
import { exchangeHttp2 } from "./http2.ts";
import { PlainSocket } from "./plain-socket.ts";
import { secured } from "./tls.ts";
import type { SecureWired, Wired } from "./wired.ts";

/** Connects, asks, and closes; by HTTP/2 where a server over TLS takes it, as the kubelet's client does. */
export function exchange(request: Wired, listening: Listening, opened: Opened): Promise<Exchanged> {
  if (request.isSecure) return exchangeSecure(request, listening, opened);
  // most probes are this one: no promise between its connection and its answer
  return new Promise((resolve) => {
    dialTo(request.host, request.port, opened, makePlain, (socket) => {
      if (socket.ok) exchangePlain(socket.value, request.text, listening, opened, resolve);
      else resolve(none(socket.error));
    });
  });
}
const makePlain = (address: string, port: number): PlainSocket => new PlainSocket(address, port);

async function exchangeSecure(request: SecureWired, listening: Listening, opened: Opened): Promise<Exchanged> {
  const { host, port, wire, text } = request;
  const plain = await dial(host, port, opened);
  if (!plain.ok) return none(plain.error);
  const secure = await secured(plain.value, host, opened);
  if (!secure.ok) return none(secure.error);
  return secure.value.alpnProtocol === "h2"
    ? exchangeHttp2(secure.value, wire, listening, opened)
    : exchangeHttp1(secure.value, text, listening, opened);
}
const none = (error: string): Exchanged => ({ head: undefined, body: "", error });
