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

/** Posts to the API. Never throws: no answer in time is a failure that passes. */
export async function postJson(
  { url, token, timeoutMs, fetch }: ApiAccess,
  path: string,
  body: unknown,
): Promise<Result<Readonly<Record<string, unknown>>, ApiFailure>> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  const text = JSON.stringify(body);
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(new Request(url + path, { method: "POST", headers, body: text, signal }));
    const reply = (await response.json().catch(() => ({}))) as Record<string, unknown>;
    if (response.ok) return ok(reply);
    const message =
      `${url}${path} answered ${response.status} ${String(reply["code"] ?? "")} ${String(reply["detail"] ?? "")}`.trimEnd();
    const tooLarge = response.status === 413 ? { tooLargeBytes: Buffer.byteLength(text) } : {};
    return err({ message, final: isFinal(response.status), ...tooLarge });
  } catch (e) {
    return err({ message: `${url}${path} does not answer (${reason(e)})`, final: false });
  }
}

/** A wrong or missing token is mended by a person, and too many requests by time: those are asked again. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
function reason(e: unknown): string {
  const cause = (e as { cause?: { code?: string } }).cause?.code;
  return cause ?? (e as Error).name;
}
