import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Refusal } from "../../model/decision.ts";
import type { Placement, PodRefusal } from "../../model/managers.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Admission } from "../topology/admit.ts";
import { placementOf } from "../topology/placement.ts";
import { admit, type ManagedNode, type Managers, managedNode, managersOf } from "./node.ts";
import { askedPod } from "./pods.ts";

/** One question to a node's managers, answered once for all kinds that show a part of it. */
export interface Answered {
  readonly node: ManagedNode;
  readonly pod: Pod | null;
  /** As they were before the pod asked. */
  readonly before: Managers;
  /** As they are once it is in; where it is refused, as before. */
  readonly after: Managers;
  readonly admission: Admission | null;
  readonly placements: readonly Placement[];
  readonly refusal: PodRefusal | null;
}
/** The answer, or why the kubelet of this node does not start. */
export type Answer = Result<Answered, readonly string[]>;

/** Errors: what cannot be answered at all. */
export function askManagers({ snapshot, ask }: Asked<PodAsk>, needs: string[]): Result<Answer, Refusal> {
  const pod = askedPod(snapshot, ask);
  if (!pod.ok) return pod;
  const started = managedNode(snapshot, needs);
  if (!started.ok) return started;
  if (!started.value.ok) return ok(started.value);
  const node = started.value.value;
  const before = managersOf(node, null);
  if (pod.value === null) {
    return ok(ok({ node, pod: null, before, after: before, admission: null, placements: [], refusal: null }));
  }
  const after = managersOf(node, pod.value);
  const admission = admit(node, after, pod.value);
  if (!admission.ok) return err({ code: "too_large", message: admission.error.message, needs: [] });
  const { turns, refusal } = admission.value;
  const placements = turns.map((turn) => placementOf(node.numa, turn));
  const kept = refusal === null ? after : before;
  return ok(ok({ node, pod: pod.value, before, after: kept, admission: admission.value, placements, refusal }));
}

/** Init containers first, as they start. */
export const containersOf = (pod: Pod | null): readonly Container[] =>
  pod === null ? [] : [...(pod.spec.initContainers ?? []), ...pod.spec.containers];

/** How a decision about the managers ends. */
export const verdictOf = (answer: Answer): "decided" | "refused" | "kubelet-refuses" => {
  if (!answer.ok) return "kubelet-refuses";
  return answer.value.refusal === null ? "decided" : "refused";
};
