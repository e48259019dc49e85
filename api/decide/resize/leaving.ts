import { type Pod, podRef, podUid } from "../../model/pod.ts";
import type { AdmissionDecision, Victim } from "../../model/preemption.ts";
import { requestsOf, requirementsOf, subtract, victimOf } from "../preemption/candidate.ts";
import { isCriticalPod, qosClass } from "../resources/qos.ts";

/**
 * Of the lowest priority first, and no more than it takes: none of them is needless, and no smaller one of no higher priority would do
 * in its place. A pod of higher priority stays even where it is the smaller one. The kubelet ends nobody here, so this is not its choice
 * of victims, which goes by QoS class and is blind to priorities among those that it may preempt (kubelet 1.36: getPodsToPreempt).
 */
export function leavingFor(
  desired: Pod,
  pods: readonly Pod[],
  { resources }: AdmissionDecision,
): readonly Victim[] | null {
  const need = requirementsOf(resources.filter(({ insufficient }) => insufficient > 0));
  if (need.length === 0) return null;
  const priority = (pod: Pod): number => pod.spec.priority ?? 0;
  const others = pods
    .filter((p) => podUid(p) !== podUid(desired) && !isCriticalPod(p) && priority(p) <= priority(desired))
    .map((pod) => {
      const request = requestsOf(pod);
      const frees = need.map(({ resource }) => request(resource));
      return { pod, ref: podRef(pod), qos: qosClass(pod), frees };
    })
    .filter(({ frees }) => frees.some((amount) => amount > 0))
    .sort((a, b) => priority(a.pod) - priority(b.pod) || (b.frees[0] as number) - (a.frees[0] as number));
  let taken: typeof others = [];
  for (const one of others) {
    if (subtract(need, taken).length === 0) break;
    taken.push(one);
  }
  if (subtract(need, taken).length > 0) return null;
  const smallest = others.toReversed();
  for (const one of taken.toReversed()) {
    const rest = taken.filter((other) => other !== one);
    const isEnough = (other: (typeof others)[number]): boolean =>
      priority(other.pod) <= priority(one.pod) &&
      !rest.includes(other) &&
      subtract(need, [...rest, other]).length === 0;
    taken = subtract(need, rest).length === 0 ? rest : [...rest, smallest.find(isEnough) ?? one];
  }
  return taken.map(({ pod, ref, qos, frees }) => victimOf({ pod, ref, qos, frees, memory: 0, cpu: 0 }, need));
}
