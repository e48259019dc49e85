import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { podRef } from "../../model/pod.ts";
import type { PreemptionDecision, Shortage } from "../../model/preemption.ts";
import type { PreemptionAsk } from "../../model/preemption-ask.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Admitting } from "../admission/admitting.ts";
import { findFailures, outOf } from "../admission/predicates.ts";
import { allocatableOf, type Prepared, prepare } from "../admission/prepare.ts";
import { Reasons } from "../reasons.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { counterfactualsOf } from "./counterfactuals.ts";
import { explainVictims } from "./explain.ts";
import { preemptFor } from "./handler.ts";

/** Why a pod does not fit as it is. */
interface Failures {
  readonly shortages: readonly Shortage[];
  /** Names of the failed predicates that no victim can help. */
  readonly others: readonly string[];
}

/**
 * Whom the kubelet ends so that a pod fits: by the failures in the ask, or by those that the predicates find.
 * Errors: no pod in the ask, one that is not there; without failures a node that does not say what it can give.
 * kubelet 1.36: CriticalPodAdmissionHandler.HandleAdmissionFailure.
 */
export function decidePreemption({
  snapshot,
  ask,
  explain,
}: Asked<PreemptionAsk>): Result<Decided<PreemptionDecision>, Refusal> {
  const reasons = new Reasons(explain);
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

function foundIn(admitting: Admitting): Result<Failures, Refusal> {
  const allocatable = allocatableOf(admitting.node);
  if (!allocatable.ok) return allocatable;
  const { incompatible, short, unmatched } = findFailures(admitting, allocatable.value, new Map());
  return ok({ shortages: short, others: [...incompatible, ...unmatched].map(({ reason }) => reason) });
}

function answer({ admitting, asked }: Prepared, { shortages, others }: Failures): PreemptionDecision {
  const { pod } = admitting;
  const preemption = preemptFor(pod, admitting.others, shortages);
  const critical = isCriticalPod(pod);
  const remaining = critical ? others : [...shortages.map((s) => outOf(s).reason), ...others];
  // nobody is ended for a pod that is refused anyway
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
