import type { Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { allocatedPod } from "../../decide/pods/node-pods.ts";
import { Reasons } from "../../decide/reasons.ts";
import { resizeNodeOf, whyInfeasible } from "../../decide/resize/refusals.ts";
import { isCriticalPod, qosClass } from "../../decide/resources/qos.ts";
import type { AdmissionDecision } from "../../model/admission.ts";
import type { DecidedOf, Refusal } from "../../model/decision.ts";
import { namespacedName } from "../../model/forms.ts";
import type { Outcome, OutcomeOf, PodOutcome, Side } from "../../model/outcome.ts";
import { containersOf, isTerminal, type Pod, podUid } from "../../model/pod.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { type Basis, type Compared, type Comparer, notComparable, sides, undecided } from "./compared.ts";
import { hasContainers, timeOf, withoutStatus } from "./node-state.ts";
import { amountsIn } from "./words.ts";

const podIn = ({ pods = [] }: EffectiveSnapshot, uid: string): Pod | undefined =>
  pods.find((pod) => podUid(pod) === uid);

/** The pod as it was admitted: with a status only if it ran before, as after a restart of the kubelet. */
function askedPod(
  { pod: { uid }, object }: Pick<PodOutcome, "pod" | "object">,
  state: EffectiveSnapshot,
): Pod | undefined {
  const known = podIn(state, uid);
  if (known !== undefined && hasContainers(known)) return known;
  const pod = object ?? known;
  return pod === undefined ? undefined : withoutStatus(pod);
}

/** A decision on a state without the pod: a kubelet that has not admitted the pod does not count it. */
function admissionOf(state: EffectiveSnapshot, pod: Pod): Result<DecidedOf<"admission">, Refusal> {
  const known = podIn(state, podUid(pod) ?? "");
  const others = known === undefined || hasContainers(known) ? state : without(state, known);
  const asked = { snapshot: others, facts: {}, ask: { pod }, explain: "off" } as const;
  return decideKind("admission", asked) as Result<DecidedOf<"admission">, Refusal>;
}
const without = (state: EffectiveSnapshot, pod: Pod): EffectiveSnapshot => ({
  ...state,
  pods: (state.pods ?? []).filter((one) => one !== pod),
});

/** The missing inputs that matter for this pod: those of the resource managers, and the others. */
function missingFor(needs: readonly string[], pod: Pod, state: EffectiveSnapshot) {
  const isOfManagers = (path: string): boolean => /^(?:assignments|machine|devices|devicePlugins)\b/.test(path);
  const files = asksManagers(pod, state) ? needs.filter(isOfManagers) : [];
  return { files: [...files, ...missingDevices(pod, state)], others: needs.filter((path) => !isOfManagers(path)) };
}
/** Exclusive CPUs and memory are only for Guaranteed pods. */
function asksManagers(pod: Pod, state: EffectiveSnapshot): boolean {
  const { cpuManagerPolicy, memoryManagerPolicy, topologyManagerPolicy } = state.kubeletConfiguration;
  const hasPolicy =
    cpuManagerPolicy === "static" || memoryManagerPolicy === "Static" || topologyManagerPolicy !== "none";
  return asksDevices(pod, state) || (hasPolicy && qosClass(pod) === "Guaranteed");
}
/** Whether the pod requests devices. An extended resource that the node does not have belongs to no device plugin. */
function asksDevices(pod: Pod, { node }: EffectiveSnapshot): boolean {
  const allocatable = node?.status?.allocatable ?? {};
  const names = containersOf(pod).flatMap(({ resources }) =>
    Object.keys({ ...resources?.limits, ...resources?.requests }),
  );
  return names.some((name) => name.includes("/") && allocatable[name] !== undefined);
}
/** The missing inputs for devices: without them, a decision silently assumes a node without plugins. */
function missingDevices(pod: Pod, state: EffectiveSnapshot): readonly string[] {
  if (!asksDevices(pod, state)) return [];
  const checkpoint = state.assignments?.kubelet_internal_checkpoint;
  return [
    ...(state.devices === undefined ? ["devices"] : []),
    ...(checkpoint === undefined ? ["assignments.kubelet_internal_checkpoint"] : []),
  ];
}

/** The amounts in a refusal come first: if one of them differs, the rest may differ because of it. */
const refusalOf = (reason: string, message: string, amounts: Side = amountsIn(message)): Side => ({
  ...amounts,
  admitted: false,
  reason,
  message,
});

/** Nodewise's side. The amounts of a resource that the kubelet found short are listed even if Nodewise did not find it short. */
function decidedSide({ admit, reason, message, resources }: AdmissionDecision, theirReason: string): Side {
  const tested = resources.find(({ resource }) => theirReason === `OutOf${resource}`);
  const amounts = tested && { requested: tested.requested, used: tested.used, capacity: tested.capacity };
  return admit ? { ...amounts, admitted: true } : refusalOf(reason, message, amounts);
}

/** Compares an admitted or refused pod by the kubelet's exact message. */
export const compareAdmission: Comparer<OutcomeOf<"admission">> = (outcome, state, { snapshot }) => {
  const { admitted, reason, message, pod: ref } = outcome;
  const kubelet: Side = { starts: true, ...(admitted ? { admitted } : refusalOf(reason, message)) };
  const seen = podIn(snapshot, ref.uid);
  if (seen !== undefined && (admitted ? hasContainers(seen) : isTerminal(seen)))
    return notComparable("already_in_snapshot", kubelet);
  const pod = askedPod(outcome, state);
  if (pod === undefined) return notComparable("pod_not_known", kubelet, { missing: ["object"] });
  if (reason === "VolumeAttachmentLimitExceeded") return notComparable("not_decided_here", kubelet);
  // only systemd's signal to the kubelet shows this
  if (reason === "NodeShutdown" && state.kubelet?.shuttingDown === undefined)
    return notComparable("input_not_known", kubelet, { missing: ["kubelet.shuttingDown"] });
  const answer = admissionOf(state, pod);
  if (!answer.ok) return undecided(answer.error, kubelet);
  const { decision, needs } = answer.value;
  const nodewise = { starts: decision.startErrors.length === 0, ...decidedSide(decision, reason) };
  return unlessMissing(needs, pod, state, sides(kubelet, nodewise));
};

function unlessMissing(needs: readonly string[], pod: Pod, state: EffectiveSnapshot, compared: Compared): Compared {
  const { files, others } = missingFor(needs, pod, state);
  const { kubelet, nodewise } = compared;
  if (files.length > 0) return notComparable("state_files", kubelet, { nodewise, missing: [...new Set(files)] });
  return others.length > 0 ? notComparable("input_not_known", kubelet, { nodewise, missing: others }) : compared;
}

/** A kubelet terminates victims one after the other, with their grace periods, before it admits the critical pod. */
export const LONGEST_PREEMPTION_MS = 120_000;

/** The critical pod that was admitted next; null if none is known, or two were in the same second. */
function preemptorOf(
  { at }: Pick<Outcome, "at">,
  { others, snapshot }: Pick<Basis, "others" | "snapshot">,
): OutcomeOf<"admission"> | null {
  const [from, to] = [Date.parse(at), Date.parse(at) + LONGEST_PREEMPTION_MS];
  const critical = others
    .filter((one) => one.kind === "admission")
    .filter((one) => timeOf(one) >= from && timeOf(one) <= to)
    .filter((one) => {
      const pod = one.object ?? podIn(snapshot, one.pod.uid);
      return pod !== undefined && isCriticalPod(pod);
    })
    .sort((a, b) => timeOf(a) - timeOf(b));
  const [first, second] = critical;
  return first === undefined || (second !== undefined && timeOf(second) === timeOf(first)) ? null : first;
}

/** The victims of one preemption: those that make room for the same pod. */
export function preemptedTogether(outcome: OutcomeOf<"preemption">, basis: Basis): readonly OutcomeOf<"preemption">[] {
  const preemptor = preemptorOf(outcome, basis);
  const isSame = (one: Outcome): one is OutcomeOf<"preemption"> =>
    one.kind === "preemption" && preemptor !== null && preemptorOf(one, basis) === preemptor;
  return [outcome, ...basis.others.filter(isSame)];
}

/** Compares the victims of a preemption as a set: event times are too coarse to order them. */
export const comparePreemption: Comparer<OutcomeOf<"preemption">> = (outcome, state, basis) => {
  const victims = preemptedTogether(outcome, basis).map(({ pod }) => namespacedName(pod));
  const kubelet = { victims: victims.sort() };
  const preemptor = preemptorOf(outcome, basis);
  if (preemptor === null) return notComparable("preemptor_not_known", kubelet);
  const seen = podIn(basis.snapshot, outcome.pod.uid);
  if (seen !== undefined && isTerminal(seen)) return notComparable("already_in_snapshot", kubelet);
  const pod = askedPod(preemptor, state);
  if (pod === undefined) return notComparable("pod_not_known", kubelet, { missing: ["object"] });
  const answer = admissionOf(state, pod);
  if (!answer.ok) return undecided(answer.error, kubelet);
  const { decision, needs } = answer.value;
  const nodewise = { victims: decision.preempt.map(namespacedName).sort() };
  const picks = decision.preemption?.rounds.flatMap((round) => round.picks) ?? [];
  const equals = new Set(
    picks.flatMap(({ chosen, tied }) => (tied.length === 0 ? [] : [chosen, ...tied].map(namespacedName))),
  );
  const others = [...kubelet.victims, ...nodewise.victims].filter(
    (name) => !kubelet.victims.includes(name) || !nodewise.victims.includes(name),
  );
  if (
    kubelet.victims.length === nodewise.victims.length &&
    others.length > 0 &&
    others.every((name) => equals.has(name))
  )
    return notComparable("order_is_chance", kubelet, { nodewise });
  return unlessMissing(needs, pod, state, sides(kubelet, nodewise));
};

const NO_CAPACITY = "Node didn't have enough capacity: ";

/** Compares a resize that is deferred or infeasible. kubelet 1.36: podResizesAdmitHandler, then the same handlers as for a new pod. */
export const compareResize: Comparer<OutcomeOf<"resize">> = (outcome, state) => {
  const { reason, message, object: wanted, pod: ref } = outcome;
  const kubelet = { reason, ...amountsIn(message), message };
  const known = podIn(state, ref.uid);
  if (wanted === undefined || known === undefined)
    return notComparable("pod_not_known", kubelet, { missing: [wanted === undefined ? "object" : "pods"] });
  // newer kubelets leave this check to the API server
  if (message.startsWith(NO_CAPACITY) && state.kubeletConfiguration.profile.behaviour.resizesBeyondNode)
    return notComparable("not_decided_here", kubelet);
  const version = state.cgroup?.version;
  const allocatable = state.node?.status?.allocatable;
  const missing = [
    ...(version === undefined ? ["cgroup.version"] : []),
    ...(allocatable === undefined ? ["node.status.allocatable"] : []),
  ];
  if (version === undefined || allocatable === undefined) return notComparable("input_not_known", kubelet, { missing });
  const allocated = allocatedPod(known, state, "", new Reasons<string>("off"));
  const asked = withoutStatus(wanted);
  const never = whyInfeasible(asked, allocated, resizeNodeOf(state))?.message ?? null;
  if (never !== null) return sides(kubelet, { reason: "Infeasible", ...amountsIn(never), message: never });
  const answer = admissionOf(notAllocated(state, ref.uid), asked);
  if (!answer.ok) return undecided(answer.error, kubelet);
  const { decision, needs } = answer.value;
  const nodewise = decision.admit
    ? { reason: "" }
    : { reason: "Deferred", ...amountsIn(decision.message), message: decision.message };
  return unlessMissing(needs, asked, state, sides(kubelet, nodewise));
};

/** The state without the pod's own allocation: the decision is about its new one. */
function notAllocated(state: EffectiveSnapshot, uid: string): EffectiveSnapshot {
  const { assignments } = state;
  const file = assignments?.allocated_pods_state;
  if (file === undefined) return state;
  const { [uid]: _, ...entries } = file.entries ?? {};
  return { ...state, assignments: { ...assignments, allocated_pods_state: { ...file, entries } } };
}
