import { apiCertificateFault } from "../../api/base/certificate-fault.ts";
import { LIMITS } from "../../api/base/limits.ts";
import { err, ok, type Result } from "../../api/base/result.ts";

/** The most that an answer may have: the largest of a node is a few MB. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * The whole text of a response; null: it is longer than `most` bytes, and the rest is not read. Throws if the response is
 * incomplete.
 */
export async function answerText(response: Response, most = MAX_ANSWER_BYTES): Promise<string | null> {
  if (Number(response.headers.get("content-length") ?? 0) > most) {
    await response.body?.cancel();
    return null;
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > most) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export interface ApiAccess {
  /** The API's base URL without a trailing slash. */
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
  /** True: the API received this very request, and failed or did not answer in time. */
  readonly isStuck?: true;
  /** True: there was no answer within the configured time. */
  readonly isSlow?: true;
  /** Size of a body that is larger than the API accepts. */
  readonly tooLargeBytes?: number;
  /** HTTP status of its answer; absent: it gave none, or one that is no API's. */
  readonly status?: number;
}

/**
 * Posts to the API. Never throws: a missing response is a temporary failure. Posts can be repeated: a broken connection
 * is retried once, since a server may close the connection some time after it refused an earlier body. `about`: the
 * length of the answer's subject, if it exceeds the body's.
 */
export async function postJson(
  access: ApiAccess,
  path: string,
  body: unknown,
  about = 0,
): Promise<Result<Reply, ApiFailure>> {
  const text = JSON.stringify(body);
  const most = maxBytesOf(Math.max(about, text.length));
  const signal = AbortSignal.timeout(access.timeoutMs);
  const first = await tryPost(access, path, text, most, signal);
  const last = isCut(first) ? await tryPost(access, path, text, most, signal) : first;
  if (!("unanswered" in last)) return last;
  const bytes = Buffer.byteLength(text);
  const message = `${access.url}${path} does not answer (${last.unanswered})`;
  // a server or proxy that silently drops large bodies would otherwise be retried for ever
  const isTooLarge = isCut(first) && isCut(last) && bytes > LIMITS.bodyBytes;
  if (isTooLarge) return err({ message, final: true, tooLargeBytes: bytes });
  const isLate = last.unanswered === "TimeoutError";
  return err({ message, final: false, ...(isLate ? { isStuck: true, isSlow: true } : {}) });
}

/** Asks whether the API can record decisions. Another program that answers at the address does not count. */
export async function isReady({ url, timeoutMs, fetch }: ApiAccess): Promise<boolean> {
  const request = new Request(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
  try {
    const response = await fetch(request);
    const reply = await replyOf(response, MAX_WORDS);
    return response.ok && typeof reply === "object" && reply?.["status"] === "ready";
  } catch {
    return false;
  } finally {
    hold(request);
  }
}

/** The length up to which an answer that is no decision is read: an error, or the answer of /readyz. */
const MAX_WORDS = 2 ** 20;
/**
 * The maximum size of a decision about a snapshot of this length. A decision lists each container's files with reasons: up
 * to 12 times the snapshot for minimal pods, about as long as the snapshot for a usual node.
 */
const maxBytesOf = (length: number): number => Math.min(MAX_ANSWER_BYTES, 2 * 2 ** 20 + 24 * length);

/** Keeps a request reachable: its signal has no effect once it is garbage-collected. */
const hold = (_request: Request): void => {};

interface Unanswered {
  /** The system's code, or the error's name. */
  readonly unanswered: string;
}
type PostOutcome = Result<Reply, ApiFailure> | Unanswered;

async function tryPost(
  { url, token, fetch }: ApiAccess,
  path: string,
  text: string,
  most: number,
  signal: AbortSignal,
): Promise<PostOutcome> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  const request = new Request(url + path, { method: "POST", headers, body: text, signal });
  try {
    const response = await fetch(request);
    const reply = await replyOf(response, response.ok ? most : MAX_WORDS);
    const said = typeof reply === "object" && reply !== null ? reply : null;
    if (response.ok && said !== null) return ok(said);
    if (response.ok) {
      const type = response.headers.get("content-type") ?? "of no type";
      const held =
        reply === "too-long" ? `more than ${most} bytes, which no answer to this has` : `no JSON object (${type})`;
      const what = `${response.status} with ${held}`;
      return err({ message: `${url}${path} answered ${what}: is this the API?`, final: false });
    }
    const tooLarge = response.status === 413 ? { tooLargeBytes: Buffer.byteLength(text) } : {};
    return err({ ...failureOf(url + path, response.status, said), ...tooLarge });
  } catch (e) {
    return { unanswered: reason(e) };
  } finally {
    hold(request);
  }
}

/** Converts a problem response of the API into a failure for the caller. `place`: the URL that answered. */
export function failureOf(place: string, status: number, problem: Reply | null): ApiFailure {
  const message =
    `${place} answered ${status} ${String(problem?.["code"] ?? "")} ${String(problem?.["detail"] ?? "")}`.trimEnd();
  return { message, final: isFinal(status), status, ...(status >= 500 ? { isStuck: true } : {}) };
}
/** An answer that cannot be understood is not carried out. The next version of that API may answer better. */
export const invalidAnswer = (place: string, fault: string): ApiFailure => ({
  message: `${place} answered what is no decision of this node: ${fault}`,
  final: false,
});

/** The members of an answer, not checked. */
export type Reply = Readonly<Record<string, unknown>>;
/** The answer's body; null: it is no JSON object. Throws if the body breaks off. */
async function replyOf(response: Response, most: number): Promise<Reply | "too-long" | null> {
  const text = await answerText(response, most);
  if (text === null) return "too-long";
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Errors of an open connection on which no response came. */
const CUT: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);
const isCut = (tried: PostOutcome): boolean => "unanswered" in tried && CUT.has(tried.unanswered);

/**
 * Whether a retry cannot help. A person can fix a wrong token, and too many requests pass with time, so those are
 * retried.
 */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
function reason(e: unknown): string {
  const { cause } = e as { cause?: { code?: string } };
  return apiCertificateFault(cause) ?? cause?.code ?? (e as Error).name;
}
