import type { ContainerGcAsk, ContainerGcDecision } from "../../model/container-gc.ts";
import type { Asked, Decided } from "../../model/decision.ts";
import { Reasons } from "../reasons.ts";
import type { GcInput } from "./input.ts";

/**
 * A pass that ended before it began, since the runtime did not list what it has: nothing goes, and the timer's pass tells of
 * it in an event each time. kubelet 1.36: StartGarbageCollection.
 */
export function unlisted(
  { snapshot, ask: { operation }, explain }: Asked<ContainerGcAsk>,
  { minAgeMs, maxPerPodContainer, maxContainers }: GcInput,
  error: string,
): Decided<ContainerGcDecision> {
  const reasons = new Reasons(explain);
  reasons.add("runtime_list_failed", "container-gc", "error", { message: error });
  const isTimed = operation === "garbage-collect";
  const decision: ContainerGcDecision = {
    operation,
    policy: { minAgeMs, maxPerPodContainer, maxContainers },
    allSourcesReady: snapshot.kubelet?.sourcesReady ?? true,
    remove: [],
    keep: [],
    error,
    events: isTimed ? [{ type: "Warning", reason: "ContainerGCFailed", message: error }] : [],
  };
  return { decision, verdict: "fails", reasons: reasons.list, needs: [], next: null };
}
