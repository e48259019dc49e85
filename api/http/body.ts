import { err, ok, type Result } from "../base/result.ts";
import type { ApiLimits, BodyBounds, BodyDecoder, BodyFault } from "../dependencies.ts";
import { parseJson } from "../service/json.ts";
import { type Problem, problem } from "../service/problem.ts";
import { ChunkBuffer } from "./body-budget.ts";
import { type Exchange, queryOf } from "./route.ts";

const JSON_TYPES = /^application\/(?:json|[\w.+-]+\+json)$/;
const NDJSON_TYPES = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines)$/;

/**
 * The limit for a batch and for a whole body: no useful JSON is denser, and a batch of one node's snapshots is compressed 180
 * times.
 */
export const MAX_DENSE = 400;
/** RFC 8878, 3.1.1.1.2: what a decoder of zstd should take, and need not take more than. */
export const MAX_WINDOW_BYTES = 8 * 1024 * 1024;
const DEFAULT_BYTES_PER_SECOND = 4096;
/** The number of bodies of the largest size that fit into memory at the same time. */
const BODIES_IN_FLIGHT = 32;
export const bytesInFlight = ({ bodyBytes, bodyBytesInFlight }: ApiLimits): number =>
  Math.max(bodyBytes, bodyBytesInFlight ?? BODIES_IN_FLIGHT * bodyBytes);

export const boundsOf = ({ deps, held }: Exchange): BodyBounds => ({
  limit: deps.limits.bodyBytes,
  take: (bytes) => held.take(bytes),
  bytesPerSecond: deps.limits.bodyBytesPerSecond ?? DEFAULT_BYTES_PER_SECOND,
});

/**
 * The whole body as JSON bytes, its encoding undone. Errors: wrong type or encoding, too large (either way), too slow, cut
 * off, no room for it.
 */
export async function readJsonBody(exchange: Exchange): Promise<Result<Uint8Array, Problem>> {
  const { c, deps } = exchange;
  const bounds = boundsOf(exchange);
  const decoder = accepted(exchange, JSON_TYPES, "application/json");
  if (!decoder.ok) return decoder;
  const read = await deps.bodies.bytes(c.req.raw, c.env, bounds);
  if (!read.ok) return bodyProblem(read.error, bounds.limit);
  if (decoder.value === null) return read;
  const plain = await collect(streamOf(read.value).pipeThrough(decoder.value.open()), bounds);
  return plain.ok ? plain : bodyProblem(plain.error, bounds.limit);
}

/** The body as it arrives, decoded. A stream error means that the body was cut off or wrongly encoded. */
export function ndjsonStream(exchange: Exchange): Result<ReadableStream<Uint8Array>, Problem> {
  const decoder = accepted(exchange, NDJSON_TYPES, "application/x-ndjson");
  if (!decoder.ok) return decoder;
  const stream = exchange.c.req.raw.body ?? streamOf(new Uint8Array());
  return ok(decoder.value === null ? stream : unpacked(stream, decoder.value, boundsOf(exchange)));
}

/** Unpacks a body. One that is compressed more than any useful body ends as `too_dense`; up to `limit` bytes it may be. */
function unpacked(
  stream: ReadableStream<Uint8Array>,
  { open, windowBytes = 0 }: BodyDecoder,
  { limit, take }: BodyBounds,
): ReadableStream<Uint8Array> {
  let packed = 0;
  let plain = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      packed += chunk.length;
      controller.enqueue(chunk);
    },
  });
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      // the window holds what was unpacked last, until the request is answered
      if (!take(Math.min(chunk.length, Math.max(0, windowBytes - plain)))) throw new BodyError("no_room");
      plain += chunk.length;
      if (plain > limit && plain > MAX_DENSE * packed) throw new BodyError("too_dense");
      controller.enqueue(chunk);
    },
  });
  return stream.pipeThrough(counted).pipeThrough(open()).pipeThrough(bounded);
}
class BodyError extends Error {
  readonly fault: BodyFault;
  constructor(fault: BodyFault) {
    super(fault);
    this.fault = fault;
  }
}
/** Why a stream of a body broke. */
export function faultIn(error: unknown): BodyFault {
  if (error instanceof BodyError) return error.fault;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ZSTD_error_frameParameter_windowTooLarge" ? "wide_window" : "incomplete";
}

/** The decoder that the body needs; null for none. */
function accepted({ c, deps }: Exchange, types: RegExp, wanted: string): Result<BodyDecoder | null, Problem> {
  const [type = "", ...parameters] = (c.req.header("content-type") ?? "").toLowerCase().split(";");
  if (!types.test(type.trim())) {
    const found =
      type.trim() === "" ? "there is no Content-Type" : `\`${type.trim().slice(0, 100)}\` is not supported here`;
    return problem("unsupported_media_type", `${found}; send \`Content-Type: ${wanted}\``, {
      advice: `send it as ${wanted}`,
    });
  }
  const charset = parameters.map((p) => p.trim()).find((p) => p.startsWith("charset="));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    return problem("unsupported_media_type", `\`${charset.slice(0, 100)}\` is not supported; JSON is UTF-8`);
  }
  const encoding = (c.req.header("content-encoding") ?? "identity").trim().toLowerCase();
  if (encoding === "identity") return ok(null);
  const decoder = deps.bodies.decoders.get(encoding);
  if (decoder !== undefined) return ok(decoder);
  const known = [...deps.bodies.decoders.keys(), "identity"].join(", ");
  return problem("unsupported_encoding", `\`${encoding.slice(0, 100)}\` is not supported here; ${known} are`, {
    headers: { "accept-encoding": known },
  });
}

export function bodyProblem(fault: BodyFault, limit: number): Result<never, Problem> {
  switch (fault) {
    case "too_large":
      return problem("body_too_large", `the body has more than ${limit} bytes`);
    case "too_dense":
      return problem("body_too_large", `the body has more than ${MAX_DENSE} times the bytes that it was packed into`, {
        advice: "send it without Content-Encoding, or in parts",
      });
    case "wide_window":
      return problem(
        "unsupported_encoding",
        `the body was compressed with a zstd window of more than ${MAX_WINDOW_BYTES} bytes, which is the most that is accepted here`,
        { advice: "compress it at level 19 or below and without --long, or with gzip" },
      );
    case "too_slow":
      return problem("request_timeout", "the body stopped arriving, or came too slowly", { headers: CUT });
    case "no_room":
      return problem("overloaded", "the server already holds as many bytes of request bodies as it may", {
        headers: { "retry-after": "2", ...CUT },
      });
    case "incomplete":
      return malformed();
  }
}
/** Closes the connection, so that the rest of the body is not waited for. */
const CUT = { connection: "close" };
const malformed = (): Result<never, Problem> =>
  problem("malformed_body", "the body ended early, or is not in the encoding that its headers name");

const streamOf = (bytes: Uint8Array): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });

/** Reads a stream to its end, but never more than `limit` bytes and one chunk. */
async function collect(
  stream: ReadableStream<Uint8Array>,
  { limit, take }: BodyBounds,
): Promise<Result<Uint8Array, BodyFault>> {
  const gathered = new ChunkBuffer();
  try {
    for await (const chunk of stream as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) {
      if (gathered.size + chunk.length > limit) return err("too_large");
      if (!take(chunk.length)) return err("no_room");
      gathered.add(chunk);
    }
    return ok(gathered.take());
  } catch (error) {
    return err(faultIn(error));
  } finally {
    gathered.clear();
  }
}

/** Bodies by the web's own means, on every platform. */
export async function webBytes(
  request: Request,
  _env: unknown,
  bounds: BodyBounds,
): Promise<Result<Uint8Array, BodyFault>> {
  if (Number(request.headers.get("content-length") ?? 0) > bounds.limit) return err("too_large");
  return request.body === null ? ok(new Uint8Array()) : collect(request.body, bounds);
}

/** The value that was posted to a route without parameters. Errors: as its query, its body and its JSON have them. */
export async function postedValue(exchange: Exchange): Promise<Result<unknown, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const bytes = await readJsonBody(exchange);
  return bytes.ok ? parseJson(bytes.value) : bytes;
}
