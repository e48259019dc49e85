import { own } from "../../base/own.ts";
import { ZERO } from "../../model/amount.ts";
import { namespacedName } from "../../model/forms.ts";
import type { Pod } from "../../model/pod.ts";
import type { Counterfactual, Preemption, Shortage, Victim, VictimSet } from "../../model/preemption.ts";
import { unitsOf } from "../resources/pod-resources.ts";
import { requirementsOf } from "./candidate.ts";

/**
 * The smallest changes that would change the answer: lower requests that admit a pod or spare all victims, and other victims.
 * `preemption`: null where the pod is not critical. `otherReasons` is how many would refuse the pod even then.
 */
export function counterfactualsOf(
  pod: Pod,
  shortages: readonly Shortage[],
  preemption: Preemption | null,
  otherReasons: number,
): readonly Counterfactual[] {
  const short = requirementsOf(shortages).filter(({ quantity }) => quantity > 0);
  const lower = (code: LowerRequestCode, index: number, less: number): Counterfactual =>
    lowerRequest(code, pod, shortages[index] as Shortage, less, otherReasons);
  if (preemption === null) {
    return markHopeless(short.map(({ index, quantity }) => lower("lower_request_admits", index, quantity)));
  }
  if (preemption.error === null) {
    const spared = short.map(({ index, quantity }) => lower("lower_request_spares_all", index, quantity));
    return [...betterSetsOf(preemption), ...spared];
  }
  const unmet = new Map(preemption.unmet.map(({ resource, quantity }) => [resource, quantity]));
  return markHopeless(
    short.flatMap(({ resource, index }) => {
      const less = unmet.get(resource);
      return less === undefined ? [] : [lower("lower_request_admits", index, less)];
    }),
  );
}
/** Marks all counterfactuals as hopeless if one resource is short whatever is requested. */
function markHopeless(list: readonly Counterfactual[]): readonly Counterfactual[] {
  const hopeless = list.filter(({ code }) => code === "no_request_helps").length;
  if (hopeless === 0) return list;
  return list.map(({ code, numbers }) =>
    code === "no_request_helps"
      ? { code, numbers }
      : { code, numbers: { ...numbers, otherReasons: Number(numbers["otherReasons"]) + hopeless } },
  );
}
type LowerRequestCode = "lower_request_admits" | "lower_request_spares_all";

/** A lower request of one resource that would pass: a request of 0 is not tested, and overhead cannot be reduced. */
function lowerRequest(
  code: LowerRequestCode,
  pod: Pod,
  { resource, requested }: Shortage,
  less: number,
  otherReasons: number,
): Counterfactual {
  const atMost = Math.max(0, requested - less);
  const overhead = unitsOf(resource, own(pod.spec.overhead, resource)?.amount ?? ZERO);
  if (resource === "pods" || overhead > atMost) {
    return { code: "no_request_helps", numbers: { resource, requested, atMost, overhead, otherReasons } };
  }
  return { code, numbers: { resource, requested, atMost, less: requested - atMost, overhead, otherReasons } };
}

/** The better sets, each beside what the kubelet takes. */
function betterSetsOf({ preempt, better, need }: Preemption): readonly Counterfactual[] {
  if (better === null) return [];
  const counterfactualOf = (code: Counterfactual["code"], { pods }: VictimSet, exact: boolean): Counterfactual => {
    const numbers: Record<string, string | number | boolean> = {
      pods: namesOf(pods),
      count: pods.length,
      kubelet: namesOf(preempt),
      kubeletCount: preempt.length,
      exact,
    };
    for (const { resource, quantity } of need) {
      numbers[`${resource} needed`] = quantity;
      numbers[`${resource} freed`] = freedOf(pods, resource);
      numbers[`${resource} freed by the kubelet`] = freedOf(preempt, resource);
    }
    return { code, numbers };
  };
  const { fewestPods, leastRequests, exact } = better;
  const isFewer = fewestPods !== null && fewestPods.pods.length < preempt.length;
  const isSame =
    fewestPods !== null && leastRequests !== null && namesOf(fewestPods.pods) === namesOf(leastRequests.pods);
  const first = isFewer ? "fewer_pods_would_do" : "smaller_pods_would_do";
  return [
    ...(fewestPods === null ? [] : [counterfactualOf(first, fewestPods, exact.fewestPods)]),
    ...(leastRequests === null || (isSame && !isFewer)
      ? []
      : [counterfactualOf("smaller_pods_would_do", leastRequests, exact.leastRequests)]),
  ];
}
const namesOf = (pods: readonly Victim[]): string => pods.map(namespacedName).join(" ");
const freedOf = (pods: readonly Victim[], resource: string): number =>
  pods.reduce((sum, { frees }) => sum + (frees.find((f) => f.resource === resource)?.quantity ?? 0), 0);
