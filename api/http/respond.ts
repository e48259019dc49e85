import type { Context } from "hono";
import type { Result } from "../base/result.ts";
import type { ApiDeps, Reply } from "../dependencies.ts";
import type { Problem } from "../service/problem.ts";
import { sessionsIn } from "./auth/session.ts";
import { PROBLEM_TYPE, problemText, statusOf } from "./problem.ts";

/** The headers of every answer: nothing of it is sniffed, framed, or loaded into another site's page. */
const SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  // under `no-referrer` browsers send the pages' own forms with `Origin: null`
  "referrer-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;

/** The body of a problem's response, and its status and headers. */
export const problemResponse = (p: Problem, requestId: string) =>
  [
    problemText(p, requestId),
    {
      status: statusOf(p),
      headers: {
        ...SECURITY_HEADERS,
        "content-type": PROBLEM_TYPE,
        "x-request-id": requestId,
        "cache-control": "no-store",
        ...p.headers,
      },
    },
  ] as const;

/** A reply or a problem as the response that goes out. */
export async function respond(
  deps: ApiDeps,
  c: Context,
  requestId: string,
  outcome: Result<Reply, Problem>,
): Promise<Response> {
  if (!outcome.ok) return new Response(...problemResponse(outcome.error, requestId));
  const reply = outcome.value.isPacked === true ? outcome.value : await packed(deps, c, outcome.value);
  const { status, type, body } = reply;
  const headers = { ...SECURITY_HEADERS, "x-request-id": requestId, ...reply.headers };
  // an answer without a body has no type
  if (status === 304) return new Response(null, { status, headers });
  return new Response(body, { status, headers: { "content-type": type, ...headers } });
}

/** A reply as it is sent: with ETag, 304 and compression. This runs where the reply was made, since it may be large. */
export async function packed(
  { gzip, sha256 }: Pick<ApiDeps, "gzip" | "sha256">,
  { req }: Context,
  reply: Reply,
): Promise<Reply> {
  const { status, type, untagged } = reply;
  const body = typeof reply.body === "string" && isPage(type) ? forCaller(reply.body, req) : reply.body;
  const headers = { "cache-control": "no-store", ...reply.headers };
  if (typeof body !== "string") return { ...reply, headers, isPacked: true };
  const compressed = isText(type) && takesGzip(req) && body.length >= WORTH_COMPRESSING ? gzip?.(body) : undefined;
  const sent = compressed === undefined ? headers : { ...headers, "content-encoding": "gzip", vary: "accept-encoding" };
  const whole = { ...reply, body: compressed ?? body, headers: sent, isPacked: true };
  const tags =
    (req.method === "GET" || req.method === "HEAD") && status === 200 && untagged !== true && !isOwn(type, req);
  if (!tags) return whole;
  const tag = `"${(await sha256(body)).slice(0, 32)}"`;
  // compressed it is another representation of the same
  const etag = compressed === undefined ? tag : `W/${tag}`;
  const tagged = { ...whole, headers: { ...sent, etag, "cache-control": "private, no-cache" } };
  return matches(req.header("if-none-match"), tag) ? { ...tagged, status: 304, body: "" } : tagged;
}

const hasSession = (req: Context["req"]): boolean => sessionsIn(req.header("cookie")).length > 0;
/** Whether a page needed a token or a session, so that a browser must check it again instead of using its cache. */
const isOwn = (type: string, req: Context["req"]): boolean =>
  isPage(type) && (hasSession(req) || req.header("authorization") !== undefined);

const isPage = (type: string): boolean => type.startsWith("text/html");
/**
 * These marks enclose the part of a page that only a browser with a session gets. Texts from callers cannot contain
 * them, since they are escaped.
 */
export const SIGNED_IN = ["<!--signed-in-->", "<!--/signed-in-->"] as const;
function forCaller(text: string, req: Context["req"]): string {
  const [from, to] = SIGNED_IN.map((mark) => text.indexOf(mark)) as [number, number];
  if (from < 0 || hasSession(req)) return text;
  return text.slice(0, from) + text.slice(to + SIGNED_IN[1].length);
}

/** Only texts that a browser loads are compressed; answers of the API go out as they are. */
const isText = (type: string): boolean => /^text\/(?:html|css|javascript)/.test(type);
const WORTH_COMPRESSING = 1024;

const takesGzip = (req: Context["req"]): boolean => /\bgzip\b/.test(req.header("accept-encoding") ?? "");

/** RFC 9110 13.1.2: weak comparison. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}
