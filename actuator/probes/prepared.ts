import { type HttpRequest, httpRequest } from "../../api/decide/probes/http-request.ts";
import type { ProbeHttpGet } from "../../api/model/probe.ts";
import { ok, type Result } from "../../api/model/result.ts";
import type { ProbeTarget } from "./target.ts";

interface Prepared extends Pick<ProbeTarget, "podIP" | "ports"> {
  readonly request: HttpRequest;
}
const known = new WeakMap<ProbeHttpGet, Prepared>();

/** The request of a probe, which is the same each time as long as its pod is. Error: the kubelet's words. */
export function prepared(get: ProbeHttpGet, { podIP, ports }: ProbeTarget): Result<HttpRequest, string> {
  const before = known.get(get);
  if (before !== undefined && before.podIP === podIP && before.ports === ports) return ok(before.request);
  const request = httpRequest(get, ports, podIP, "probe");
  if (request.ok) known.set(get, { podIP, ports, request: request.value });
  return request;
}
