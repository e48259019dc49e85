import type { Pod } from "../../model/pod.ts";
import type { Preemption, Shortage } from "../../model/preemption.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { betterSets } from "./better-sets.ts";
import { candidatesFor, victimOf } from "./candidate.ts";
import { amountsOf, type Requirement, requirementsOf, requirementsText, subtract } from "./requirement.ts";
import { chooseVictims } from "./rounds.ts";

/**
 * Which pods the kubelet ends so that a critical pod fits; nothing for a pod that is not critical. `pods`: the active
 * ones with their allocated resources, in the order that breaks the last ties (the kubelet's own is that of a Go map).
 * kubelet 1.36: CriticalPodAdmissionHandler.evictPodsToFreeRequests.
 */
export function preemptFor(preemptor: Pod, pods: readonly Pod[], shortages: readonly Shortage[]): Preemption {
  const critical = isCriticalPod(preemptor);
  const need = requirementsOf(shortages);
  const candidates = critical ? candidatesFor(preemptor, pods, need) : [];
  const unmet = critical ? subtract(need, candidates) : need;
  const told = { critical, need: amountsOf(need), unmet: amountsOf(unmet), candidates: candidates.length };
  const possible = critical && unmet.length === 0;
  if (!possible) {
    const error = critical ? errorText(unmet) : null;
    return { ...told, preempt: [], error, rounds: [], better: null };
  }
  const { victims, rounds } = chooseVictims(need, candidates);
  return {
    ...told,
    preempt: victims.map((victim) => victimOf(victim, need)),
    error: null,
    rounds,
    better: victims.length === 0 ? null : betterSets(need, candidates, victims),
  };
}

const errorText = (unmet: readonly Requirement[]): string =>
  `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${requirementsText(unmet)}`;
