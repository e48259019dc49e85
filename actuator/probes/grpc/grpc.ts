import { STATUS_CODES } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { goDurationText, quote } from "../../../api/decide/go/strconv.ts";
import { hostPort } from "../../../api/decide/probes/http-request.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { bounded, dial, ERRORS, type OpenConnections, type ProbeTarget } from "../net/dial.ts";

/** The status of a failed call. */
interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}
/** Names of status codes by number, as Go prints them. Go: google.golang.org/grpc/codes. */
const NAMES: readonly string[] = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];
const codeOf = (name: string): number => NAMES.indexOf(name);
/** `rpc error: code = NotFound desc = unknown service` */
const statusWords = ({ code, message }: GrpcStatus): string =>
  `rpc error: code = ${NAMES[code] ?? `Code(${code})`} desc = ${message}`;
const internal = (message: string): GrpcStatus => ({ code: codeOf("Internal"), message });

/** The status of an HTTP response that is not gRPC. Go: grpc/internal/transport, HTTPStatusConvTab. */
function httpStatusFault(status: number, contentType: string | undefined): GrpcStatus {
  const what =
    contentType === undefined
      ? "malformed header: missing HTTP content-type"
      : `transport: received unexpected content-type ${quote(contentType)}`;
  const words = `${status} (${STATUS_CODES[status] ?? ""})`;
  return {
    code: codeOf(OF_HTTP[status] ?? "Unknown"),
    message: `unexpected HTTP status code received from server: ${words}; ${what}`,
  };
}
const OF_HTTP: Readonly<Record<number, string>> = {
  400: "Internal",
  401: "Unauthenticated",
  403: "PermissionDenied",
  404: "Unimplemented",
  429: "Unavailable",
  502: "Unavailable",
  503: "Unavailable",
  504: "Unavailable",
};

/**
 * The fault of a stream that its server reset, from the HTTP/2 error name. Go: grpc/internal/transport, http2ErrConvTab.
 */
const resetFault = (error: string): GrpcStatus => ({
  code: codeOf(OF_RESET[error] ?? "Internal"),
  message: `stream terminated by RST_STREAM with error code: ${error}`,
});
const OF_RESET: Readonly<Record<string, string>> = {
  FLOW_CONTROL_ERROR: "ResourceExhausted",
  REFUSED_STREAM: "Unavailable",
  CANCEL: "Canceled",
  ENHANCE_YOUR_CALM: "ResourceExhausted",
  INADEQUATE_SECURITY: "PermissionDenied",
};

/** The status in trailers; undefined: they contain none. */
function trailersStatus(status: string | undefined, message: string): GrpcStatus | undefined {
  if (status === undefined) return undefined;
  if (/^-?\d{1,9}$/.test(status)) return { code: Number(status), message: decoded(message) };
  const why = `strconv.ParseInt: parsing ${quote(status)}: invalid syntax`;
  return { code: codeOf("Unknown"), message: `transport: malformed grpc-status: ${why}` };
}
/** Decodes percent escapes; other text stays as it is. */
const decoded = (message: string): string =>
  Buffer.from(
    message.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    "latin1",
  ).toString("utf8");

type Check = MethodDefinition<{ readonly service: string }, { readonly status: string | number }>;
let loaded: Check | undefined;

/** The Check call of grpc.health.v1; the proto file is read at the first use. */
function check(): Check {
  if (loaded === undefined) {
    const service = loadSync(join(import.meta.dirname, "health.proto"), { enums: String, defaults: true })[
      "grpc.health.v1.Health"
    ] as { readonly Check: unknown } | undefined;
    loaded = service?.Check as Check;
  }
  return loaded;
}
const HEALTH_PATH = "/grpc.health.v1.Health/Check";
const healthRequest = (service: string): Uint8Array => check().requestSerialize({ service });

/** The status by name, or by number if it has no name. */
function healthStatus(message: Buffer): Result<string, GrpcStatus> {
  try {
    return ok(String(check().responseDeserialize(message).status));
  } catch {
    return err(
      internal("grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"),
    );
  }
}

/** Length of a message's prefix: a flag, and the size of the message. */
const PREFIX_BYTES = 5;
/** The message size limit of Go's gRPC. */
const MAX_BYTES = 4 * 1024 * 1024;

function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The single message of a response, as far as it was received. Errors in the words of Go's gRPC. */
class GrpcMessage {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  /** Adds received bytes. Returns the fault that they show already; undefined: none yet. */
  push(part: Buffer): GrpcStatus | undefined {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes < PREFIX_BYTES) return undefined;
    const size = this.#joined().readUInt32BE(1);
    if (size > MAX_BYTES) {
      const message = `grpc: received message larger than max (${size} vs. ${MAX_BYTES})`;
      return { code: codeOf("ResourceExhausted"), message };
    }
    return this.#bytes > PREFIX_BYTES + size ? internal(`${CARDINALITY}: ${TWO}`) : undefined;
  }
  /** The complete message, once the response has ended. */
  whole(): Result<Buffer, GrpcStatus> {
    const bytes = this.#joined();
    if (bytes.length === 0) return err(internal(`${CARDINALITY}: ${NONE}`));
    if (bytes.length < PREFIX_BYTES || bytes.length < PREFIX_BYTES + bytes.readUInt32BE(1)) {
      return err(internal("unexpected EOF"));
    }
    if (bytes[0] !== 0) return err(internal("grpc: compressed flag set with identity or empty encoding"));
    return ok(bytes.subarray(PREFIX_BYTES));
  }
  #joined(): Buffer {
    const bytes = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#parts.splice(0, this.#parts.length, bytes);
    return bytes;
  }
}
const CARDINALITY = "cardinality violation";
const NONE = "received no response message from non-server-streaming RPC";
const TWO = "expected <EOF> for non server-streaming RPCs, but received another message";

interface GrpcCall {
  readonly path: string;
  readonly authority: string;
  readonly userAgent: string;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
}

/** Makes one call with one message each way. Error: how it failed, in the words of Go's gRPC. */
function unaryCall(session: ClientHttp2Session, call: GrpcCall): Promise<Result<Buffer, GrpcStatus>> {
  return new Promise((resolve) => {
    const message = new GrpcMessage();
    let grpcStatus: GrpcStatus | undefined;
    let goaway: number | undefined;
    const failed = (status: GrpcStatus): void => resolve(err(status));
    const lost = (): void => failed(connectionLost(goaway));
    session.on("goaway", (code: number) => {
      goaway = code;
    });
    const stream = ask(session, call);
    stream.on("response", (headers) => {
      const type = headers["content-type"];
      if (isGrpc(type)) grpcStatus = statusIn(headers);
      else failed(httpStatusFault(headers[":status"] ?? 0, type));
    });
    stream.on("trailers", (trailers: IncomingHttpHeaders) => {
      grpcStatus = statusIn(trailers);
    });
    stream.on("data", (part: Buffer) => {
      const wrong = message.push(part);
      if (wrong !== undefined) failed(wrong);
    });
    // the close event that follows reports it
    stream.on("error", () => {});
    stream.on("close", () => {
      const reset = stream.rstCode ?? 0;
      if (session.destroyed) lost();
      else if (grpcStatus === undefined && reset !== 0) failed(resetFault(ERRORS[reset] ?? String(reset)));
      else if (grpcStatus === undefined) failed(internal("server closed the stream without sending trailers"));
      else resolve(grpcStatus.code === 0 ? message.whole() : err(grpcStatus));
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

/** The wait before the second try to connect, as Go's gRPC has by default. */
const FIRST_WAIT_MS = 1000;
const FACTOR = 1.6;

/**
 * Connects until a server speaks HTTP/2, that is, has sent its settings. It tries as long as the attempt lasts; after that the
 * result is undefined. Go: grpc.DialContext with WithBlock.
 */
async function grpcConnect(
  host: string,
  port: number,
  opened: OpenConnections,
): Promise<ClientHttp2Session | undefined> {
  for (let waitMs = FIRST_WAIT_MS; !opened.isOver; waitMs *= FACTOR) {
    const socket = await dial(host, port, opened);
    const session = socket.ok ? await sessionWithSettings(socket.value, opened) : undefined;
    if (session !== undefined) return session;
    const stop = new AbortController();
    const waiting = opened.add({ destroy: () => stop.abort() });
    await sleep(waitMs, undefined, { signal: stop.signal }).catch(() => {});
    opened.close(waiting);
  }
  return undefined;
}

/** Undefined: the server closed the connection, or speaks another protocol. */
function sessionWithSettings(socket: Socket, opened: OpenConnections): Promise<ClientHttp2Session | undefined> {
  return new Promise((resolve) => {
    const options = { createConnection: () => socket, settings: { enablePush: false } };
    const session = opened.add(connect("http://localhost", options));
    const failed = (): void => {
      opened.close(session);
      resolve(undefined);
    };
    session.on("error", failed);
    session.once("close", failed);
    session.once("remoteSettings", () => {
      session.off("close", failed);
      resolve(session);
    });
  });
}

type Grpc = Extract<ProbeHandler, { grpc: unknown }>["grpc"];

/**
 * Asks a server for the health of a service, over a new connection without TLS. Only SERVING is a success;
 * anything else is a failure, never an error. kubelet 1.36: pkg/probe/grpc.
 */
export function grpcProbe({ port, service }: Grpc, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const authority = hostPort(target.podIP, port);
  const within = goDurationText(BigInt(Math.round(timeoutMs * 1e6)));
  const startedMs = performance.now();
  let isConnected = false;

  const ask = async (opened: OpenConnections): Promise<ProbeOutcome> => {
    const session = await grpcConnect(target.podIP, port, opened);
    if (session === undefined) return late();
    isConnected = true;
    const leftMs = timeoutMs - (performance.now() - startedMs);
    const { version, grpcGo } = target.profile;
    const userAgent = `kube-probe/${version} grpc-go/${grpcGo}`;
    const call = { path: HEALTH_PATH, authority, userAgent, timeoutMs: leftMs };
    const answer = await unaryCall(session, { ...call, message: healthRequest(service) });
    const status = answer.ok ? healthStatus(answer.value) : answer;
    if (!status.ok) return failure(failureWords(status.error, within));
    if (status.value !== "SERVING") return failure(`service unhealthy (responded with ${quote(status.value)})`);
    return { result: "success", output: "service healthy" };
  };
  const late = (): ProbeOutcome =>
    failure(
      isConnected
        ? tooLate(within)
        : `timeout: failed to connect service ${quote(authority)} within ${within}: context deadline exceeded`,
    );
  return bounded(timeoutMs, ask, late, (error) =>
    failure(`error: failed to connect service at ${quote(authority)}: ${(error as Error).message}`),
  );
}

const failure = (output: string): ProbeOutcome => ({ result: "failure", output });
const tooLate = (within: string): string => `timeout: health rpc did not complete within ${within}`;
function failureWords(status: GrpcStatus, within: string): string {
  if (status.code === codeOf("Unimplemented")) {
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${status.message}`;
  }
  if (status.code === codeOf("DeadlineExceeded")) return tooLate(within);
  return `error: health rpc probe failed: ${statusWords(status)}`;
}
