import type { WireRequest } from "../../api/decide/probes/http-wire.ts";
import type { Opened } from "./bounded.ts";
import { dial } from "./dial.ts";
import { type Exchanged, exchangeHttp1, type Listening } from "./http1.ts";
import { exchangeHttp2 } from "./http2.ts";
import { secured } from "./tls.ts";

export interface HttpPeer {
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
}

/** Connects, asks, and closes; by HTTP/2 where a server over TLS takes it, as the kubelet's client does. */
export async function exchange(
  { isSecure, host, port }: HttpPeer,
  request: WireRequest,
  listening: Listening,
  opened: Opened,
): Promise<Exchanged> {
  const plain = await dial(host, port, opened);
  if (!plain.ok) return none(plain.error);
  if (!isSecure) return exchangeHttp1(plain.value, request, listening, opened);
  const secure = await secured(plain.value, host, opened);
  if (!secure.ok) return none(secure.error);
  return secure.value.alpnProtocol === "h2"
    ? exchangeHttp2(secure.value, request, listening, opened)
    : exchangeHttp1(secure.value, request, listening, opened);
}
const none = (error: string): Exchanged => ({ head: undefined, body: "", error });
