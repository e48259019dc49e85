import { textOf } from "../../../api/decide/go/url.ts";
import { type HttpRequest, httpRequest } from "../../../api/decide/probes/http-request.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../../api/model/probe.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import type { ProbeTarget } from "../engine/probed.ts";
import { bounded, type Opened } from "../net/dial.ts";
import { follow, inGet, type LastAnswer, type Progress } from "./http-follow.ts";
import type { Stage } from "./http1.ts";

interface Prepared extends Pick<ProbeTarget, "podIP" | "ports"> {
  readonly request: HttpRequest;
}
const known = new WeakMap<ProbeHttpGet, Prepared>();

/** The request of a probe, which is the same each time as long as its pod is. Error: the kubelet's words. */
function prepared(get: ProbeHttpGet, { podIP, ports }: ProbeTarget): Result<HttpRequest, string> {
  const before = known.get(get);
  if (before !== undefined && before.podIP === podIP && before.ports === ports) return ok(before.request);
  const request = httpRequest(get, ports, podIP, "probe");
  if (request.ok) known.set(get, { podIP, ports, request: request.value });
  return request;
}

/** kubelet 1.36: pkg/probe/http, maxRespBodyLength. */
const MAX_BODY_BYTES = 10 * 1024;

/**
 * Asks for a page: 200 to 399 is a success, one that ends with a redirect a warning, everything else a failure; an answer
 * whose body breaks off is an error. No proxy, no check of certificates. kubelet 1.36: pkg/probe/http, DoHTTPProbe.
 */
export function httpProbe(get: ProbeHttpGet, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const request = prepared(get, target);
  return request.ok ? ask(request.value, timeoutMs) : Promise.resolve({ error: request.error });
}

function ask(request: HttpRequest, timeoutMs: number): Promise<ProbeOutcome> {
  const progress: Progress = { request, isInBody: false };
  const work = (opened: Opened): Promise<ProbeOutcome> => follow(progress, MAX_BODY_BYTES, opened).then(outcomeOf);
  const late = (): ProbeOutcome =>
    progress.isInBody
      ? {
          error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
          state: "failure",
        }
      : { result: "failure", output: inGet(progress.request, BEFORE_HEAD[progress.stage ?? "answer"]) };
  return bounded(timeoutMs, work, late, (error) => ({ error: (error as Error).message }));
}
/** Go has more words for some of them, and takes now these and now those. */
const NO_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
const BEFORE_HEAD: Readonly<Record<Stage, string>> = {
  answer: NO_HEADERS,
  handshake: "context deadline exceeded",
  retry: "context deadline exceeded",
};

function outcomeOf(answer: Result<LastAnswer, string>): ProbeOutcome {
  if (!answer.ok) return { result: "failure", output: answer.error };
  const { status, body, error } = answer.value;
  if (error !== undefined) return { error, state: "failure" };
  if (status < 200 || status >= 400) {
    // never the body: it may tell what no event should
    return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  }
  const text = textOf(body);
  return status < 300
    ? { result: "success", output: text }
    : { result: "warning", output: `Probe terminated redirects, Response body: ${text}` };
}
