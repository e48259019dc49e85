import type { ProbeType } from "../../model/probe.ts";
import type { AttemptOutcome, WorkerEffect } from "./worker-state.ts";

const TITLE: Readonly<Record<ProbeType, string>> = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" };

/** What the kubelet says of an attempt, in its words; null of a plain success. kubelet 1.36: prober.probe. */
export function probeEvent(
  type: ProbeType,
  outcome: AttemptOutcome,
): Extract<WorkerEffect, { readonly kind: "event" }> | null {
  const title = TITLE[type];
  if ("error" in outcome) {
    const message = `${title} probe errored and resulted in ${outcome.state ?? "unknown"} state: ${outcome.error}`;
    return { kind: "event", reason: "Unhealthy", message };
  }
  if (outcome.result === "success") return null;
  if (outcome.result === "warning") {
    return { kind: "event", reason: "ProbeWarning", message: `${title} probe warning: ${outcome.output}` };
  }
  return { kind: "event", reason: "Unhealthy", message: `${title} probe failed: ${outcome.output}` };
}
