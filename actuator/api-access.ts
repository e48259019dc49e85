import { LIMITS } from "../api/model/limits.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import { answerText } from "./answer-text.ts";

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
  /** It took this very request, and had no answer in time, or a failure of its own. */
  readonly isStuck?: true;
  /** No answer came in the time that the settings give it. */
  readonly isSlow?: true;
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
  if (isTooLarge) return err({ message, final: true, tooLargeBytes: bytes });
  const isLate = last.unanswered === "TimeoutError";
  return err({ message, final: false, ...(isLate ? { isStuck: true, isSlow: true } : {}) });
}

/** Whether the API says that it can record decisions: it is there, and not only something that answers at its address. */
export async function isReady({ url, timeoutMs, fetch }: ApiAccess): Promise<boolean> {
  const request = new Request(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
  try {
    const response = await fetch(request);
    const reply = await replyOf(response);
    return response.ok && reply?.["status"] === "ready";
  } catch {
    return false;
  } finally {
    hold(request);
  }
}

/** A request hears its signal only for as long as somebody holds it: one that was collected would wait for ever. */
const hold = (_request: Request): void => {};

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
  const request = new Request(url + path, { method: "POST", headers, body: text, signal });
  try {
    const response = await fetch(request);
    const reply = await replyOf(response);
    if (response.ok && reply !== null) return ok(reply);
    if (response.ok) {
      const what = `${response.status} with no JSON object (${response.headers.get("content-type") ?? "of no type"})`;
      return err({ message: `${url}${path} answered ${what}: is this the API?`, final: false });
    }
    const message =
      `${url}${path} answered ${response.status} ${String(reply?.["code"] ?? "")} ${String(reply?.["detail"] ?? "")}`.trimEnd();
    const tooLarge = response.status === 413 ? { tooLargeBytes: Buffer.byteLength(text) } : {};
    const stuck = response.status >= 500 ? { isStuck: true as const } : {};
    return err({ message, final: isFinal(response.status), ...tooLarge, ...stuck });
  } catch (e) {
    return { unanswered: reason(e) };
  } finally {
    hold(request);
  }
}

/** Null: it is no JSON object, or longer than any answer. Throws where it does not come to its end. */
async function replyOf(response: Response): Promise<Readonly<Record<string, unknown>> | null> {
  const text = await answerText(response);
  try {
    const value = text === null ? null : (JSON.parse(text) as unknown);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
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
