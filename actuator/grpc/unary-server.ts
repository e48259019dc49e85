import { createServer, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { type MethodDefinition, status } from "@grpc/grpc-js";
import { err, map, ok, type Result } from "../../api/base/result.ts";

/** Wraps a method that works on messages; invalid bytes, and an exception, end the call as grpc-js ends it. */
export const unaryMethod =
  <Q, A>(
    { requestDeserialize, responseSerialize }: MethodDefinition<Q, A>,
    answer: (request: Q) => Result<A, Refusal> | Promise<Result<A, Refusal>>,
  ): UnaryHandler =>
  async (message) => {
    let request: Q;
    try {
      request = requestDeserialize(message);
    } catch (error) {
      return err({ code: status.INTERNAL, message: `Error deserializing request: ${(error as Error).message}` });
    }
    try {
      return map(await answer(request), responseSerialize);
    } catch (error) {
      return err({ code: status.UNKNOWN, message: `Server method handler threw error ${(error as Error).message}` });
    }
  };

/** gRPC's code and message. */
export interface Refusal {
  readonly code: status;
  readonly message: string;
}
/** A method's answer to a message's bytes; its promise is never rejected (`unaryMethod`). */
export type UnaryHandler = (message: Buffer) => Promise<Result<Buffer, Refusal>>;

interface UnaryServerOptions {
  /** The handlers by path, such as `/v1beta1.Registration/Register`. */
  readonly handlers: Readonly<Record<string, UnaryHandler>>;
  /** Limit of a request's message. */
  readonly maxMessageBytes: number;
  /** Calls at a time of one connection. */
  readonly maxStreams: number;
  /** Memory per connection, including responses that its client does not read; beyond it the connection gets no new calls. */
  readonly sessionMegabytes: number;
}
/** Prefix of a message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;

/**
 * A gRPC server for unary methods, over connections that the caller passes in. grpc-js throws if a client sends a
 * request and at once violates the protocol: such a stream is destroyed before a handler sees it.
 */
export function unaryServer(options: UnaryServerOptions): {
  readonly accept: (connection: Duplex) => AcceptedConnection;
} {
  const calls = new WeakMap<Http2Session, number>();
  const server = createServer({
    maxSessionMemory: options.sessionMegabytes,
    maxHeaderListPairs: 64,
    maxSessionInvalidFrames: 16,
    settings: { maxConcurrentStreams: options.maxStreams, maxHeaderListSize: 16 * 1024 },
  });
  server.on("session", (session) => session.on("error", () => undefined));
  server.on("sessionError", () => undefined);
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    const { session } = stream;
    const count = (by: number): void => {
      if (session !== undefined) calls.set(session, (calls.get(session) ?? 0) + by);
    };
    serve(stream, headers, options, (isUnderWay) => count(isUnderWay ? 1 : -1));
  });
  return {
    accept: (connection) => {
      let session: Http2Session | undefined;
      const heard = (made: Http2Session): void => {
        session = made;
      };
      server.once("session", heard).emit("connection", connection);
      server.off("session", heard);
      return { isBusy: () => session !== undefined && (calls.get(session) ?? 0) > 0 };
    },
  };
}
export interface AcceptedConnection {
  /** A whole request of it waits for its answer. */
  isBusy(): boolean;
}

function serve(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  options: UnaryServerOptions,
  onCall: (isUnderWay: boolean) => void,
): void {
  const path = headers[":path"] ?? "";
  const handler = Object.hasOwn(options.handlers, path) ? options.handlers[path] : undefined;
  if (headers["content-type"]?.startsWith("application/grpc") !== true) {
    if (!stream.destroyed) stream.respond({ ":status": 415 }, { endStream: true });
    return;
  }
  if (handler === undefined) {
    refuse(stream, { code: status.UNIMPLEMENTED, message: `unknown method ${path}` });
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= options.maxMessageBytes + PREFIX_BYTES) chunks.push(chunk);
    else if (chunks.length > 0) {
      chunks.length = 0;
      const message = `received message larger than max (${options.maxMessageBytes})`;
      refuse(stream, { code: status.RESOURCE_EXHAUSTED, message });
      stream.close();
    }
  });
  stream.on("end", () => {
    if (size > options.maxMessageBytes + PREFIX_BYTES) return;
    const message = messageIn(Buffer.concat(chunks));
    if (!message.ok) {
      refuse(stream, message.error);
      return;
    }
    onCall(true);
    void handler(message.value).then((answer) => {
      onCall(false);
      reply(stream, answer);
    });
  });
}

function messageIn(body: Buffer): Result<Buffer, Refusal> {
  if (body.length < PREFIX_BYTES || body.readUInt32BE(1) !== body.length - PREFIX_BYTES) {
    return err({ code: status.INTERNAL, message: "the request is not one whole message" });
  }
  return body[0] === 0
    ? ok(body.subarray(PREFIX_BYTES))
    : err({ code: status.UNIMPLEMENTED, message: "the request is compressed" });
}

const HEAD = { ":status": 200, "content-type": "application/grpc" };

function reply(stream: ServerHttp2Stream, answer: Result<Buffer, Refusal>): void {
  if (!answer.ok) {
    refuse(stream, answer.error);
    return;
  }
  if (isDead(stream)) return;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(answer.value.length, 1);
  stream.on("wantTrailers", () => {
    if (!stream.destroyed) stream.sendTrailers({ "grpc-status": `${status.OK}` });
  });
  stream.respond(HEAD, { waitForTrailers: true });
  // not copied, so that an answer to many callers is in memory once
  stream.write(prefix);
  stream.end(answer.value);
}
function refuse(stream: ServerHttp2Stream, { code, message }: Refusal): void {
  if (isDead(stream)) return;
  stream.respond({ ...HEAD, "grpc-status": `${code}`, "grpc-message": percentEncoded(message) }, { endStream: true });
}
const isDead = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed || stream.headersSent;

/** Encodes a message as gRPC's header requires. */
const percentEncoded = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x25
        ? `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
        : String.fromCharCode(byte),
    )
    .join("");
