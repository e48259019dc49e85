import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { Placement, PodRefusal } from "../../model/managers.ts";
import type { Pod } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";
import type { Admission } from "../topology/admit.ts";
import { placementOf } from "../topology/placement.ts";
import { tooManyHints } from "./hint-bound.ts";
import { nextState } from "./next-state.ts";
import { admit, type ManagedNode, type Managers, managedNode, managersOf } from "./node.ts";
import { askedPod, podNames } from "./pods.ts";
import { explainRefusal } from "./refusal.ts";
import { fileWarnings, warningsOf } from "./warnings.ts";

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
  /** The managers as they were when the pod was refused; else as `after`. */
  readonly tried: Managers;
  readonly warnings: readonly string[];
}
/** The answer, or why the kubelet of this node does not start. */
type Answer = Result<Answered, readonly string[]>;

/** Errors: what cannot be answered at all. */
function askManagers({ snapshot, ask }: Asked<PodAsk>, needs: string[]): Result<Answer, Refusal> {
  const pod = askedPod(snapshot, ask);
  if (!pod.ok) return pod;
  const started = managedNode(snapshot, needs);
  if (!started.ok) return started;
  if (!started.value.ok) return ok(started.value);
  const node = started.value.value;
  const before = managersOf(node, null);
  const nothing = { admission: null, placements: [], refusal: null, tried: before };
  if (pod.value === null) {
    const warnings = warningsOf(node, before, before, podNames(node.active));
    return ok(ok({ node, pod: null, before, after: before, ...nothing, warnings }));
  }
  const tooLarge = tooManyHints(node.topology, node.numa, [pod.value], "pod");
  if (tooLarge !== undefined) return err({ code: "too_large", message: tooLarge, needs: [] });
  const tried = managersOf(node, pod.value);
  const admission = admit(node, tried, pod.value);
  if (!admission.ok) return err({ code: "too_large", message: admission.error.message, needs: [] });
  const { turns, refusal } = admission.value;
  const placements = turns.map((turn) => placementOf(node.numa, turn));
  const after = refusal === null ? tried : before;
  const warnings = warningsOf(node, before, after, podNames([...node.active, pod.value]));
  const answered = { node, pod: pod.value, before, after, admission: admission.value, placements, refusal, tried };
  return ok(ok({ ...answered, warnings }));
}

/** What a kind makes of an answer of the managers. */
interface Forms<D> {
  /** Errors: what cannot be answered at all. */
  readonly decided: (answered: Answered, reasons: Reasons, needs: string[]) => Result<D, Refusal>;
  /** Of a node whose kubelet does not start. */
  readonly notStarted: (startErrors: readonly string[], warnings: readonly string[]) => D;
}

/** The decision of a kind that shows a part of what the managers answer. */
export function decideWith<D>(asked: Asked<PodAsk>, forms: Forms<D>): Result<Decided<D>, Refusal> {
  const reasons = new Reasons(asked.explain);
  const needs: string[] = [];
  const answer = askManagers(asked, needs);
  if (!answer.ok) return answer;
  if (!answer.value.ok) {
    const warnings = fileWarnings(asked.snapshot);
    const decision = forms.notStarted(answer.value.error, warnings);
    for (const message of answer.value.error) reasons.add("kubelet_does_not_start", "node", "startErrors", { message });
    return ok({ decision, verdict: "kubelet-refuses", reasons: reasons.list, needs, next: null });
  }
  const answered = answer.value.value;
  const decision = forms.decided(answered, reasons, needs);
  if (!decision.ok) return decision;
  explainRefusal(answered, reasons);
  const verdict = answered.refusal === null ? "decided" : "refused";
  return ok({
    decision: decision.value,
    verdict,
    reasons: reasons.list,
    needs,
    next: nextState(answered.node, answered.after),
  });
}
