import type { ProbedContainer, ProbesDecision } from "../../model/probes-decision.ts";
import type { Reasons } from "../reasons.ts";

/** Why each container is started and ready when it is, how late a failure is noticed, and which quirks played a part. */
export function explain(decision: ProbesDecision, reasons: Reasons): void {
  for (const container of decision.containers) explainContainer(container, reasons);
  for (const { code, container, type, times } of decision.quirks) {
    reasons.add(`quirk_${code.replaceAll("-", "_")}`, container, type, { times, strict: decision.strict });
  }
}

function explainContainer({ container, probes, runs }: ProbedContainer, reasons: Reasons): void {
  const has = (type: string): boolean => probes.some((probe) => probe.type === type);
  if (!has("startup")) reasons.add("started_at_once", container, "started");
  if (!has("readiness")) reasons.add("ready_once_started", container, "ready");
  for (const { type, failureThreshold, periodSeconds, timeoutSeconds, reach } of probes) {
    const { slowestFailureMs } = reach;
    reasons.add("slowest_detection", container, type, {
      slowestFailureMs,
      failureThreshold,
      periodSeconds,
      timeoutSeconds,
    });
  }
  for (const { id, endedBy, endedAtMs } of runs) {
    if (endedBy !== null) reasons.add("ended_by_probe", container, "runs", { id, endedBy, endedAtMs: endedAtMs ?? "" });
  }
}
