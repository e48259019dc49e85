import type { Context } from "hono";
import type { Result } from "../model/result.ts";
import type { Ports } from "../ports.ts";
import { PROBLEM_TYPE, type Problem, problemText, statusOf } from "./problem.ts";
import type { Reply } from "./route.ts";

const HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;

/** A reply or a problem as the response that goes out: security headers, ETag, 304, compression. */
export async function respond(
  ports: Ports,
  c: Context,
  requestId: string,
  outcome: Result<Reply, Problem>,
): Promise<Response> {
  if (!outcome.ok) {
    const headers = {
      ...HEADERS,
      "content-type": PROBLEM_TYPE,
      "x-request-id": requestId,
      "cache-control": "no-store",
      ...outcome.error.headers,
    };
    return new Response(problemText(outcome.error, requestId), { status: statusOf(outcome.error), headers });
  }
  const { status, type, body, untagged } = outcome.value;
  const headers = {
    ...HEADERS,
    "content-type": type,
    "x-request-id": requestId,
    "cache-control": "no-store",
    ...outcome.value.headers,
  };
  const compressed = typeof body === "string" && isText(type) ? compressedFor(ports, c, body) : null;
  const tags = (c.req.method === "GET" || c.req.method === "HEAD") && status === 200 && untagged !== true;
  const sent = compressed === null ? headers : { ...headers, "content-encoding": "gzip", vary: "accept-encoding" };
  if (!tags || typeof body !== "string") return new Response(compressed ?? body, { status, headers: sent });
  const tag = `"${(await ports.sha256(body)).slice(0, 32)}"`;
  // compressed it is another representation of the same
  const etag = compressed === null ? tag : `W/${tag}`;
  const tagged = { ...sent, etag, "cache-control": "private, no-cache" };
  const same = matches(c.req.header("if-none-match"), tag);
  return same
    ? new Response(null, { status: 304, headers: tagged })
    : new Response(compressed ?? body, { status, headers: tagged });
}

/** What a browser loads; answers of the API go out as they are. */
const isText = (type: string): boolean => /^text\/(?:html|css|javascript)/.test(type);
const WORTH_COMPRESSING = 1024;

function compressedFor({ gzip }: Ports, c: Context, body: string): Uint8Array<ArrayBuffer> | null {
  const takes = /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
  return takes && gzip !== undefined && body.length >= WORTH_COMPRESSING ? gzip(body) : null;
}

/** RFC 9110 13.1.2: weak comparison. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}
