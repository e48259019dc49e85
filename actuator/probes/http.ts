import { quote } from "../../api/decide/go/strconv.ts";
import { textOf } from "../../api/decide/go/url-text.ts";
import { hostAndPort } from "../../api/decide/go/url.ts";
import type { HttpHead } from "../../api/decide/probes/http-head.ts";
import { isRedirect, redirected } from "../../api/decide/probes/http-redirect.ts";
import { type HttpRequest, httpRequest } from "../../api/decide/probes/http-request.ts";
import { shownUrl, wireRequest } from "../../api/decide/probes/http-wire.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../api/model/probe.ts";
import { bounded, type Opened } from "./bounded.ts";
import { exchange } from "./http-exchange.ts";
import type { Exchanged } from "./http1.ts";
import type { ProbeTarget } from "./target.ts";

/** kubelet 1.36: pkg/probe/http, maxRespBodyLength. */
const MOST_BODY_BYTES = 10 * 1024;
/** Of an answer that leads elsewhere; a longer one is not read at all. Go 1.26: Client.do. */
const MOST_PASSED_BYTES = 2048;
const MOST_REQUESTS = 10;

/**
 * Asks for a page: 200 to 399 is a success, one that ends with a redirect a warning, everything else a failure; an answer
 * whose body breaks off is an error. No proxy, no check of certificates. kubelet 1.36: pkg/probe/http, DoHTTPProbe.
 */
export async function httpProbe(get: ProbeHttpGet, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const request = httpRequest(get, target.ports, target.podIP, "probe");
  return request.ok ? httpAttempt(request.value, timeoutMs) : { error: request.error };
}

/** Where an attempt stands: what is said of it when its time is over depends on that. */
interface Progress {
  request: HttpRequest;
  isInBody: boolean;
}

export function httpAttempt(request: HttpRequest, timeoutMs: number): Promise<ProbeOutcome> {
  const progress: Progress = { request, isInBody: false };
  const late = (): ProbeOutcome =>
    progress.isInBody
      ? { error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)" }
      : failure(progress.request, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
  const broken = (error: unknown): ProbeOutcome => ({ error: (error as Error).message });
  return bounded(timeoutMs, (opened) => follow(request, progress, opened), late, broken);
}

/** From one answer to the next, as long as they lead on. kubelet 1.36: RedirectChecker; Go 1.26: Client.do. */
async function follow(first: HttpRequest, progress: Progress, opened: Opened): Promise<ProbeOutcome> {
  for (let asked = 1; ; asked++) {
    const { request } = progress;
    const wire = wireRequest(request);
    if (!wire.ok) return failure(request, wire.error);
    let next: ReturnType<typeof redirected> | undefined;
    const wanted = (head: HttpHead): number => {
      const location = textOf(head.location);
      next = isRedirect(head.status, location) ? redirected(first, request, location) : undefined;
      progress.isInBody = next === undefined || (next.ok && next.value === null);
      if (progress.isInBody) return MOST_BODY_BYTES;
      // whatever comes of this body, it is the next answer that is waited for
      if (next?.ok === true && next.value !== null) progress.request = next.value;
      return next?.ok === true && head.length <= MOST_PASSED_BYTES ? MOST_PASSED_BYTES : 0;
    };
    const { hostname, port } = hostAndPort(request.url);
    const to = { isSecure: request.url.scheme === "https", host: hostname, port: portOf(request, port) };
    const answer = await exchange(to, wire.value, { wanted }, opened);
    if (answer.head === undefined) return failure(request, answer.error ?? "EOF");
    if (next === undefined || (next.ok && next.value === null)) return outcome(answer, answer.head);
    if (!next.ok) return failure(request, next.error);
    if (asked === MOST_REQUESTS) return stopped(answer.head.location);
  }
}
const portOf = (request: HttpRequest, port: string): number =>
  port !== "" ? Number(port) : request.url.scheme === "https" ? 443 : 80;

function outcome({ body, error }: Exchanged, { status }: HttpHead): ProbeOutcome {
  if (error !== undefined) return { error };
  if (status < 200 || status >= 400) {
    // never the body: it may tell what no event should
    return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  }
  const text = textOf(body);
  return status < 300
    ? { result: "success", output: text }
    : { result: "warning", output: `Probe terminated redirects, Response body: ${text}` };
}
const failure = ({ url }: HttpRequest, words: string): ProbeOutcome => ({
  result: "failure",
  output: `Get ${quote(shownUrl(url))}: ${words}`,
});
/** Of the location as it was given. */
const stopped = (location: string): ProbeOutcome => ({
  result: "failure",
  output: `Get ${quote(textOf(location))}: stopped after ${MOST_REQUESTS} redirects`,
});
