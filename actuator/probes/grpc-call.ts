import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { err, type Result } from "../../api/model/result.ts";
import { framed, GrpcMessage } from "./grpc-message.ts";
import { codeOf, type GrpcStatus, httpStatusFault, internal, resetFault, trailersStatus } from "./grpc-status.ts";
import { ERRORS } from "./h2-words.ts";

export interface GrpcCall {
  readonly path: string;
  readonly authority: string;
  readonly userAgent: string;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
}

/** One call with one message each way. Error: how it ended, in the words of Go's gRPC. */
export function unaryCall(session: ClientHttp2Session, call: GrpcCall): Promise<Result<Buffer, GrpcStatus>> {
  return new Promise((resolve) => {
    const message = new GrpcMessage();
    let told: GrpcStatus | undefined;
    let goaway: number | undefined;
    const failed = (status: GrpcStatus): void => resolve(err(status));
    const lost = (): void => failed(connectionLost(goaway));
    session.on("goaway", (code: number) => {
      goaway = code;
    });
    const stream = ask(session, call);
    stream.on("response", (headers) => {
      const type = headers["content-type"];
      if (isGrpc(type)) told = statusIn(headers);
      else failed(httpStatusFault(headers[":status"] ?? 0, type));
    });
    stream.on("trailers", (trailers: IncomingHttpHeaders) => {
      told = statusIn(trailers);
    });
    stream.on("data", (part: Buffer) => {
      const wrong = message.push(part);
      if (wrong !== undefined) failed(wrong);
    });
    // told by the close behind it
    stream.on("error", () => {});
    stream.on("close", () => {
      const reset = stream.rstCode ?? 0;
      if (session.destroyed) lost();
      else if (told === undefined && reset !== 0) failed(resetFault(ERRORS[reset] ?? String(reset)));
      else if (told === undefined) failed(internal("server closed the stream without sending trailers"));
      else resolve(told.code === 0 ? message.whole() : err(told));
    });
    session.on("close", lost);
    stream.end(framed(call.message));
  });
}

function ask(session: ClientHttp2Session, call: GrpcCall): ClientHttp2Stream {
  return session.request({
    ":method": "POST",
    ":scheme": "http",
    ":authority": call.authority,
    ":path": call.path,
    "content-type": "application/grpc",
    "user-agent": call.userAgent,
    "grpc-timeout": `${Math.max(1, Math.round(call.timeoutMs))}m`,
    te: "trailers",
  });
}
const isGrpc = (type: string | undefined): boolean => type !== undefined && /^application\/grpc($|[+;])/i.test(type);
const first = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === "object" ? value[0] : value;
const statusIn = (headers: IncomingHttpHeaders): GrpcStatus | undefined =>
  trailersStatus(first(headers["grpc-status"]), first(headers["grpc-message"]) ?? "");

function connectionLost(goaway: number | undefined): GrpcStatus {
  const eof = "error reading from server: EOF";
  const code = codeOf("Unavailable");
  if (goaway === undefined) return { code, message: eof };
  const why = `connection error: desc = "${eof}", received prior goaway: code: ${ERRORS[goaway] ?? goaway}`;
  return { code, message: `closing transport due to: ${why}` };
}
