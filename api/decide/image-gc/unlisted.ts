import type { Asked, Decided } from "../../model/decision.ts";
import type { ImageGcAsk, ImageGcDecision } from "../../model/image-gc.ts";
import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import { Reasons } from "../reasons.ts";
import type { ImageGcInput } from "./input.ts";

/**
 * A pass that ended before it began, since the runtime did not list what it has: nothing goes, nothing is forgotten, and
 * from the second failure in a row on there is an event. kubelet 1.36: GarbageCollect, StartGarbageCollection.
 */
export function unlisted(
  { ask: { operation }, explain }: Asked<ImageGcAsk>,
  { policy, before, beganAtMs, now }: ImageGcInput,
  error: string,
): Decided<ImageGcDecision> {
  const { maxAgeNanos: _, ...told } = policy;
  const isTimed = operation === "garbage-collect" && policy.timer;
  const isRepeated = isTimed && before?.failed === true;
  const reasons = new Reasons(explain);
  reasons.add("runtime_list_failed", "image-gc", "error", { message: error });
  const decision: ImageGcDecision = {
    operation,
    policy: told,
    fileSystem: null,
    remove: [],
    keep: [],
    freedBytes: 0,
    freedOnceBytes: null,
    error,
    events: isRepeated ? [{ type: "Warning", reason: "ImageGCFailed", message: error }] : [],
    pulledAgain: [],
  };
  const next: ImageGcFacts = {
    beganAtMs: beganAtMs ?? now,
    records: [],
    removed: [],
    ...before,
    atMs: now,
    failed: isTimed || (before?.failed ?? false),
  };
  return { decision, verdict: "fails", reasons: reasons.list, needs: [], next };
}
