import { constants } from "node:http2";
import type { Opened } from "./bounded.ts";
import { dial, dialTo } from "./dial.ts";
import { streamFault } from "./h2-words.ts";
import { type Exchanged, exchangeHttp1, exchangePlain, type Listening } from "./http1.ts";
import { exchangeHttp2, REFUSED } from "./http2.ts";
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
      else resolve(none(socket.error.words));
    });
  });
}
const makePlain = (address: string, port: number): PlainSocket => new PlainSocket(address, port);

/** As often as Go asks again where a server of HTTP/2 refuses a stream: at once, then after 1, 2, 4 ... seconds. */
const MOST_RETRIES = 6;

async function exchangeSecure(request: SecureWired, listening: Listening, opened: Opened): Promise<Exchanged> {
  for (let retry = 0; ; retry++) {
    const exchanged = await exchangeSecureOnce(request, listening, opened);
    if (exchanged !== REFUSED) return exchanged;
    if (retry === MOST_RETRIES) return none(streamFault(constants.NGHTTP2_REFUSED_STREAM));
    listening.onStage("retry");
    if (retry > 0) await waited(2 ** (retry - 1) * 1000, opened);
  }
}
/** Not when the attempt ends before. */
const waited = (ms: number, opened: Opened): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    opened.add({ destroy: () => clearTimeout(timer) });
  });

async function exchangeSecureOnce(
  request: SecureWired,
  listening: Listening,
  opened: Opened,
): Promise<Exchanged | typeof REFUSED> {
  const { host, port, wire, text } = request;
  const plain = await dial(host, port, opened);
  if (!plain.ok) return none(plain.error.words);
  listening.onStage("handshake");
  return new Promise((resolve) => {
    secured(plain.value, host, opened, (secure) => {
      if (!secure.ok) {
        resolve(none(secure.error));
        return;
      }
      listening.onStage("answer");
      const isHttp2 = secure.value.alpnProtocol === "h2";
      if (isHttp2) resolve(exchangeHttp2(secure.value, wire, listening, opened));
      else resolve(exchangeHttp1(secure.value, text, listening, opened));
    });
  });
}
const none = (error: string): Exchanged => ({ head: undefined, body: "", error });
