import { err, ok, type Result } from "../model/result.ts";
import type { BodyFault } from "../ports.ts";
import { joined } from "./lines.ts";
import { type Problem, problem } from "./problem.ts";
import type { Exchange } from "./route.ts";

const JSON_TYPES = /^application\/(?:json|[\w.+-]+\+json)$/;
const NDJSON_TYPES = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines)$/;
type Decoder = () => ReadableWritablePair<Uint8Array, Uint8Array>;

/** The whole body as JSON bytes, its encoding undone. Errors: wrong type or encoding, too large (either way), cut off. */
export async function readJsonBody(exchange: Exchange): Promise<Result<Uint8Array, Problem>> {
  const { c, ports } = exchange;
  const limit = ports.limits.bodyBytes;
  const decoder = accepted(exchange, JSON_TYPES, "application/json");
  if (!decoder.ok) return decoder;
  const read = await ports.bodies.bytes(c.req.raw, c.env, limit);
  if (!read.ok) return bodyProblem(read.error, limit);
  if (decoder.value === null) return read;
  const decoded = await collect(streamOf(read.value).pipeThrough(decoder.value()), limit);
  return decoded.ok ? decoded : bodyProblem(decoded.error, limit);
}

/** The body as it arrives, its encoding undone. An error of the stream is a body that was cut off or is not what it says. */
export function ndjsonStream(exchange: Exchange): Result<ReadableStream<Uint8Array>, Problem> {
  const decoder = accepted(exchange, NDJSON_TYPES, "application/x-ndjson");
  if (!decoder.ok) return decoder;
  const stream = exchange.c.req.raw.body ?? streamOf(new Uint8Array());
  return ok(decoder.value === null ? stream : stream.pipeThrough(decoder.value()));
}

/** The decoder that the body needs; null for none. */
function accepted({ c, ports }: Exchange, types: RegExp, wanted: string): Result<Decoder | null, Problem> {
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
  const decoder = ports.bodies.decoders.get(encoding);
  if (decoder !== undefined) return ok(decoder);
  const known = [...ports.bodies.decoders.keys(), "identity"].join(", ");
  return problem("unsupported_encoding", `\`${encoding.slice(0, 100)}\` is not supported here; ${known} are`, {
    headers: { "accept-encoding": known },
  });
}

export function bodyProblem(fault: BodyFault, limit: number): Result<never, Problem> {
  if (fault === "too_large") return problem("body_too_large", `the body has more than ${limit} bytes`);
  return problem("malformed_body", "the body ended early, or is not in the encoding that its headers name");
}

const streamOf = (bytes: Uint8Array): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });

/** Reads a stream to its end, but never more than `limit` bytes and one chunk. */
export async function collect(
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<Result<Uint8Array, BodyFault>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > limit) return err("too_large");
      chunks.push(chunk);
    }
  } catch {
    return err("incomplete");
  }
  return ok(joined(chunks, size));
}

/** Bodies by the web's own means, on every platform. */
export async function webBytes(request: Request, _env: unknown, limit: number): Promise<Result<Uint8Array, BodyFault>> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) return err("too_large");
  return request.body === null ? ok(new Uint8Array()) : collect(request.body, limit);
}
