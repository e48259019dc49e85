import { type HttpRequest, httpRequest } from "../../api/decide/probes/http-request.ts";
import { ok, type Result } from "../../api/model/result.ts";
import type { LifecycleHandler } from "../lifecycle/pod.ts";
import { Opened } from "../probes/bounded.ts";
import { follow } from "../probes/http-follow.ts";

export type HttpGet = Extract<LifecycleHandler, { http: unknown }>["http"];

/**
 * Asks for a hook's address. Any answer will do, whatever its status; one that leads on is followed on the same host.
 * Certificates are not checked. Error: why there was no answer, in Go's words. kubelet 1.36: runHTTPHandler.
 * @param host of the pod, where the hook names none
 */
export async function httpGet(get: HttpGet, host: string, signal: AbortSignal): Promise<Result<null, string>> {
  const scheme = get.scheme === "https" ? "HTTPS" : "HTTP";
  const request = httpRequest({ ...get, scheme }, [], host, "lifecycle");
  if (!request.ok) return request;
  const first = await ask(request.value, signal);
  // some serve plain HTTP where a pod says HTTPS
  return first.ok || !first.error.includes(IS_PLAIN) ? first : ask(plain(request.value), signal);
}
const IS_PLAIN = "server gave HTTP response to HTTPS client";
/** Without credentials, which would go readable over the wire. */
function plain({ url, host, headers }: HttpRequest): HttpRequest {
  const kept = [...headers].filter(([name]) => name !== "Authorization");
  return { url: { ...url, scheme: "http", user: null }, host, headers: new Map(kept) };
}

async function ask(request: HttpRequest, signal: AbortSignal): Promise<Result<null, string>> {
  const opened = new Opened();
  const stop = (): void => opened.closeAll();
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) stop();
    const answer = await follow({ request, isInBody: false }, 0, opened);
    return answer.ok ? ok(null) : answer;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}
