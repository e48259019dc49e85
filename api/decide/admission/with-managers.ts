import type { AdmissionDecision } from "../../model/admission.ts";
import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { type Pod, podUid } from "../../model/pod.ts";
import { ok, type Result } from "../../model/result.ts";
import { nextState } from "../managers/next-state.ts";
import { admit, type ManagedNode, type Managers, managedNode, managersOf } from "../managers/node.ts";
import { withUid } from "../managers/pods.ts";
import type { Admission } from "../topology/admit.ts";
import { assignedOf } from "../topology/assigned.ts";
import { decideAdmission, type ManagersAtHand } from "./decide.ts";

/** The kubelet's whole answer to a pod: its handlers, and among them the resource managers as the snapshot has them. */
export function decideWithManagers(asked: Asked<PodAsk>): Result<Decided<AdmissionDecision>, Refusal> {
  const needs: string[] = [];
  const started = managedNode(asked.snapshot, needs);
  if (!started.ok) {
    // without the machine's topology the other handlers still answer
    return started.error.code === "needs_input" ? withNeeds(decideAdmission(asked), started.error.needs) : started;
  }
  if (!started.value.ok) return withStartErrors(decideAdmission(asked), started.value.error);
  const { next, ...hands } = atHand(started.value.value);
  const answer = withNeeds(decideAdmission(asked, hands), needs);
  return answer.ok && answer.value.decision.admit ? ok({ ...answer.value, next: next() }) : answer;
}

type Answer = Result<Decided<AdmissionDecision>, Refusal>;

const withNeeds = (answer: Answer, needs: readonly string[]): Answer =>
  answer.ok ? ok({ ...answer.value, needs: [...new Set([...answer.value.needs, ...needs])] }) : answer;

/** A kubelet that does not start lets nobody in, whatever its handlers would have said. */
function withStartErrors(answer: Answer, startErrors: readonly string[]): Answer {
  if (!answer.ok) return answer;
  const because = startErrors.map((message) => ({
    code: "kubelet_does_not_start",
    field: "admit",
    numbers: { message },
  }));
  return ok({
    ...answer.value,
    decision: notStarted(answer.value.decision, startErrors),
    verdict: "kubelet-refuses",
    reasons: [...answer.value.reasons, { at: "node", because }],
  });
}

/** No handler's words would be shown, and no change of the pod would let it in. */
const notStarted = (decision: AdmissionDecision, startErrors: readonly string[]): AdmissionDecision => ({
  ...decision,
  startErrors,
  admit: false,
  reason: "",
  message: "",
  preempt: [],
  wouldRefuse: decision.wouldRefuse.map((refusal) => ({ ...refusal, shown: false })),
  counterfactuals: [],
});

interface Tried {
  readonly managers: Managers;
  readonly admission: Admission | null;
}

/** Each pod is tried once, in working copies of its own. `next`: the state files once the last one is in. */
function atHand(node: ManagedNode): ManagersAtHand & { readonly next: () => unknown } {
  const tried = new Map<string, Tried>();
  const tryOne = (asking: Pod): Tried & { readonly pod: Pod } => {
    const pod = withUid(asking);
    const uid = podUid(pod) as string;
    const known = tried.get(uid);
    if (known !== undefined) return { ...known, pod };
    const managers = managersOf(node, pod);
    const admission = admit(node, managers, pod);
    const done = { managers, admission: admission.ok ? admission.value : null };
    tried.set(uid, done);
    return { ...done, pod };
  };
  return {
    managers: (asking) => {
      const refusal = tryOne(asking).admission?.refusal ?? null;
      return refusal === null ? null : { reason: refusal.reason, message: refusal.message };
    },
    assigned: (asking) => {
      const { managers, pod } = tryOne(asking);
      return assignedOf(managers, pod);
    },
    heldDevices: (asking) => {
      const { managers, pod } = tryOne(asking);
      const { state } = managers.devices;
      return state.pods.has(podUid(pod) as string) ? state.allocated() : new Map();
    },
    next: () => {
      const last = [...tried.values()].at(-1);
      return last === undefined ? null : nextState(node, last.managers);
    },
  };
}
