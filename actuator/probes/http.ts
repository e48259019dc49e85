import { textOf } from "../../api/decide/go/url-text.ts";
import type { HttpRequest } from "../../api/decide/probes/http-request.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../api/model/probe.ts";
import type { Result } from "../../api/model/result.ts";
import { bounded, type Opened } from "./bounded.ts";
import { follow, inGet, type LastAnswer, type Progress } from "./http-follow.ts";
import type { Stage } from "./http1.ts";
import { prepared } from "./prepared.ts";
import type { ProbeTarget } from "./target.ts";

/** kubelet 1.36: pkg/probe/http, maxRespBodyLength. */
const MOST_BODY_BYTES = 10 * 1024;

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
  const work = (opened: Opened): Promise<ProbeOutcome> => follow(progress, MOST_BODY_BYTES, opened).then(outcomeOf);
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
