import { LIMITS } from "../api/model/limits.ts";
import { err, ok, type Result } from "../api/model/result.ts";

export interface ApiAccess {
  /** Where the API is, without a trailing slash. */
  readonly url: string;
  readonly token: string | undefined;
  readonly timeoutMs: number;
  /** The platform's `fetch`, or an app's own in the same process. */
  readonly fetch: (request: Request) => Promise<Response>;
}
export interface ApiFailure {
  readonly message: string;
  /** Asking again with the same input gives the same answer. */
  readonly final: boolean;
  /** Of a body that is more than the API takes: how large it was. */
  readonly tooLargeBytes?: number;
}

/**
 * Posts to the API. Never throws: no answer in time is a failure that passes. What is posted may be posted again: a
 * connection that is cut is followed by another one, since the first may have been that of a body that was refused before
 * it had all arrived, which a server cuts some time later.
 */
export async function postJson(
  access: ApiAccess,
  path: string,
  body: unknown,
): Promise<Result<Readonly<Record<string, unknown>>, ApiFailure>> {
  const text = JSON.stringify(body);
  const signal = AbortSignal.timeout(access.timeoutMs);
  const first = await tryPost(access, path, text, signal);
  const last = isCut(first) ? await tryPost(access, path, text, signal) : first;
  if (!("unanswered" in last)) return last;
  const bytes = Buffer.byteLength(text);
  const message = `${access.url}${path} does not answer (${last.unanswered})`;
  // a server, or one on the way to it, that lets nothing of that size in and does not say so would be asked for ever
  const isTooLarge = isCut(first) && isCut(last) && bytes > LIMITS.bodyBytes;
  return err(isTooLarge ? { message, final: true, tooLargeBytes: bytes } : { message, final: false });
}

interface Unanswered {
  /** The system's code, or the error's name. */
  readonly unanswered: string;
}
type Tried = Result<Readonly<Record<string, unknown>>, ApiFailure> | Unanswered;

async function tryPost(
  { url, token, fetch }: ApiAccess,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<Tried> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  try {
    const response = await fetch(new Request(url + path, { method: "POST", headers, body: text, signal }));
    const reply = (await response.json().catch(() => ({}))) as Record<string, unknown>;
    if (response.ok) return ok(reply);
    const message =
      `${url}${path} answered ${response.status} ${String(reply["code"] ?? "")} ${String(reply["detail"] ?? "")}`.trimEnd();
    const tooLarge = response.status === 413 ? { tooLargeBytes: Buffer.byteLength(text) } : {};
    return err({ message, final: isFinal(response.status), ...tooLarge });
  } catch (e) {
    return { unanswered: reason(e) };
  }
}

/** A connection that was there, and on which no answer came. */
const CUT: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);
const isCut = (tried: Tried): boolean => "unanswered" in tried && CUT.has(tried.unanswered);

/** A wrong or missing token is mended by a person, and too many requests by time: those are asked again. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
function reason(e: unknown): string {
  const cause = (e as { cause?: { code?: string } }).cause?.code;
  return cause ?? (e as Error).name;
}
