import { ok, type Result } from "../../base/result.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { namespacedName } from "../../model/forms.ts";
import { podRef } from "../../model/pod.ts";
import type { Preemption, PreemptionAsk, PreemptionDecision, Shortage } from "../../model/preemption.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { findFailures, insufficientResource } from "../admission/predicates.ts";
import type { AdmissionContext } from "../admission/prepare.ts";
import { allocatableOf, type Prepared, prepare } from "../admission/prepare.ts";
import { counterfactualsOf } from "../preemption/counterfactuals.ts";
import { preemptFor } from "../preemption/handler.ts";
import { type ReasonRecorder, Reasons } from "../reasons.ts";
import { isCriticalPod } from "../resources/qos.ts";

/** Why a pod does not fit as it is. */
interface Failures {
  readonly shortages: readonly Shortage[];
  /** Names of the failed predicates that preemption cannot resolve. */
  readonly others: readonly string[];
}

/**
 * Chooses the pods that the kubelet preempts so that a pod fits: by the failures in the ask, or by those that the
 * predicates find. Errors: the ask has no pod or an unknown one; without failures, the node does not list its
 * allocatable. kubelet 1.36: CriticalPodAdmissionHandler.HandleAdmissionFailure.
 */
export function decidePreemption({
  snapshot,
  ask,
  explain,
}: EffectiveArguments<PreemptionAsk>): Result<DecidedOf<"preemption">, Refusal> {
  const reasons = new Reasons<ReasonCode<"preemption">>(explain);
  const prepared = prepare(snapshot, ask, reasons);
  if (!prepared.ok) return prepared;
  const { admitting } = prepared.value;
  const failures = ask.failureReasons === undefined ? foundIn(admitting) : ok(given(ask.failureReasons));
  if (!failures.ok) return failures;
  const decision = answer(prepared.value, failures.value);
  explainVictims(decision, reasons);
  return ok({
    decision,
    verdict: decision.admit ? "decided" : "refused",
    reasons: reasons.list,
    needs: [...admitting.needs],
    next: null,
  });
}

const given = (reasons: NonNullable<PreemptionAsk["failureReasons"]>): Failures => ({
  shortages: reasons.flatMap((r) =>
    "resourceName" in r
      ? [{ resource: r.resourceName, requested: r.requested, used: r.used, capacity: r.capacity }]
      : [],
  ),
  others: reasons.flatMap((r) => ("predicateName" in r ? [r.predicateName] : [])),
});

function foundIn(admitting: AdmissionContext): Result<Failures, Refusal> {
  const allocatable = allocatableOf(admitting.node);
  if (!allocatable.ok) return allocatable;
  const { incompatible, short, unmatched } = findFailures(admitting, allocatable.value, new Map());
  return ok({ shortages: short, others: [...incompatible, ...unmatched].map(({ reason }) => reason) });
}

function answer({ admitting, asked }: Prepared, { shortages, others }: Failures): PreemptionDecision {
  const { pod } = admitting;
  const preemption = preemptFor(pod, admitting.active, shortages);
  const critical = isCriticalPod(pod);
  const remaining = critical ? others : [...shortages.map((s) => insufficientResource(s).reason), ...others];
  // no pod is preempted for a pod that is refused anyway
  const { preempt, error } = remaining.length === 0 ? preemption : { preempt: [], error: null };
  return {
    ...preemption,
    preempt,
    error,
    pod: podRef(asked),
    admit: remaining.length === 0 && error === null,
    shortages,
    remainingReasons: remaining,
    counterfactuals: counterfactualsOf(pod, shortages, critical ? preemption : null, others.length),
  };
}

/** Explains why each victim was chosen, in the order of the choices. */
export function explainVictims(
  { critical, candidates, rounds, better }: Preemption,
  reasons: ReasonRecorder<ReasonCode<"preemption">>,
): void {
  if (!critical) {
    reasons.add("not_critical", "preemption", "preempt");
    return;
  }
  reasons.add("candidates", "preemption", "preempt", { candidates });
  for (const { qos, picks, candidates: tier } of rounds) {
    for (const [i, { chosen, distance, tied, open }] of picks.entries()) {
      const needed = open.map(({ resource, quantity }) => `${resource} ${quantity}`).join(", ");
      reasons.add("nearest", namespacedName(chosen), "preempt", {
        qos,
        open: needed,
        distance,
        among: tier.length - i,
      });
      if (tied.length > 0)
        reasons.add("tied", namespacedName(chosen), "preempt", { tied: tied.map(namespacedName).join(" ") });
    }
  }
  const cut = better !== null && !(better.exact.fewestPods && better.exact.leastRequests);
  if (cut) reasons.add("search_cut_short", "preemption", "better", { bound: better.bound });
}
