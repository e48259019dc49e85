import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import type { HttpHead } from "../../api/decide/probes/http-head.ts";
import type { WireRequest } from "../../api/decide/probes/http-wire.ts";
import type { Opened } from "./bounded.ts";
import { streamFault } from "./h2-words.ts";
import type { Exchanged, Listening } from "./http1.ts";

/** A stream that its server did not take: the same request may be sent again. */
export const REFUSED = Symbol("refused");

/** One request of HTTP/2 over a connection that the server wants to speak it on. */
export function exchangeHttp2(
  socket: TLSSocket,
  request: WireRequest,
  { wanted }: Listening,
  opened: Opened,
): Promise<Exchanged | typeof REFUSED> {
  return new Promise((resolve) => {
    const session = opened.add(
      connect("https://localhost", { createConnection: () => socket, settings: { enablePush: false } }),
    );
    let head: HttpHead | undefined;
    let most = 0;
    let body = "";
    let bytesSeen = 0;
    const finish = (error?: string): void => {
      resolve({ head, body, error });
      opened.close(session);
    };
    session.on("error", () => finish("unexpected EOF"));
    session.on("close", () => finish("unexpected EOF"));
    const stream = ask(session, request);
    stream.on("response", (headers) => {
      head = headOf(headers);
      most = wanted(head);
      if (most === 0) finish();
      // not before: what comes with the head is told before it
      else stream.on("data", take);
    });
    const take = (bytes: Buffer): void => {
      bytesSeen += bytes.length;
      body = (body + bytes.toString("latin1")).slice(0, most);
      if (body.length === most) finish();
    };
    // a connection that ended cancels its streams
    const fault = (): string => {
      // node's own end of a stream whose body is none of the length that was told
      const isShort = stream.rstCode === constants.NGHTTP2_PROTOCOL_ERROR && bytesSeen < (head?.length ?? -1);
      return session.destroyed || isShort ? "unexpected EOF" : streamFault(stream.rstCode);
    };
    const ended = (): void => {
      if (head === undefined && !session.destroyed && stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) {
        resolve(REFUSED);
      }
      finish(fault());
    };
    stream.on("error", ended);
    stream.on("end", () => {
      // a reset ends it too, and is told behind it
      if (head !== undefined && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted) finish();
    });
    stream.on("close", ended);
  });
}

/** Of one connection alone, which HTTP/2 does not have. */
const OF_HTTP1: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection", "upgrade", "te"]);
function ask(session: ClientHttp2Session, { target, host, headers }: WireRequest) {
  const fields: Record<string, string | string[]> = {
    [constants.HTTP2_HEADER_METHOD]: "GET",
    [constants.HTTP2_HEADER_SCHEME]: "https",
    [constants.HTTP2_HEADER_AUTHORITY]: host,
    [constants.HTTP2_HEADER_PATH]: target,
  };
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (OF_HTTP1.has(key)) continue;
    const known = fields[key];
    fields[key] = known === undefined ? value : [known, value].flat();
  }
  return session.request(fields);
}

function headOf(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): HttpHead {
  const length = Number(headers["content-length"] ?? "-1");
  return {
    status: headers[":status"] ?? 0,
    location: headers.location ?? "",
    length: Number.isSafeInteger(length) ? length : -1,
    isChunked: false,
  };
}
