import { unreachable } from "../../base/result.ts";
import {
  type Comparison,
  NOT_COMPARABLE,
  type NotComparable,
  OUTCOME_TRAITS,
  type Outcome,
  type Side,
  type SideValue,
} from "../../model/outcome.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { chooseProfileFor } from "../../profiles/index.ts";
import { compareClaims } from "./claims.ts";
import { type Basis, type Compared, notComparable } from "./compared.ts";
import { compareImageGc, compareProbes } from "./containers-and-images.ts";
import { asReportedSoon, statesBefore, timeOf } from "./node-state.ts";
import { compareAdmission, comparePreemption, compareResize, preemptedTogether } from "./pods.ts";
import { compareConditions, compareEviction } from "./pressure.ts";

/** The latest time at which the outcome had not happened yet, epoch ms: it is compared with the last snapshot up to then. */
export const notYetMs = (outcome: Outcome): number => Date.parse(outcome.after ?? outcome.at);

/**
 * Compares an outcome with what Nodewise would have decided on the last snapshot before it. `basis`: that snapshot, or a code if
 * there is none or it cannot be read. Whether the two can be compared depends on what is known, never on whether they are equal.
 */
export function compareOutcome(outcome: Outcome, basis: Basis | NotComparable): Comparison {
  if (typeof basis === "string") return comparisonOf(null, null, null, notComparable(basis, sideOf(outcome)));
  const { profile, note } = chooseProfileFor(basis.snapshot);
  const ageMs = notYetMs(outcome) - basis.observedAtMs;
  const own = note.exact ? whyNotAtAll(outcome, basis, ageMs) : "version_not_known";
  const compared = own === null ? comparedInEach(outcome, basis) : notComparable(own, sideOf(outcome));
  const isDecided = compared.nodewise !== null;
  return comparisonOf(basis.snapshotId, ageMs, isDecided ? profile.policyVersion : null, compared);
}

function whyNotAtAll(
  { kind, podLeftAt }: Outcome,
  { snapshot, observedAtMs }: Basis,
  ageMs: number,
): NotComparable | null {
  const { snapshotAgeMs, readsPods, readsConfiguration } = OUTCOME_TRAITS[kind];
  if (ageMs > snapshotAgeMs) return "snapshot_too_old";
  if (podLeftAt !== undefined && Date.parse(podLeftAt) >= observedAtMs && readsPods) return "pods_left";
  const isGiven = Object.keys(snapshot.kubeletConfiguration.given).length > 0;
  return isGiven || !readsConfiguration ? null : "configuration_not_known";
}

/** Compares in each possible state if the order within a second or the kubelet's pressure is unknown; all results must be equal. */
function comparedInEach(outcome: Outcome, basis: Basis): Compared {
  const [state, ...inOtherOrder] = statesFor(outcome, basis) as [EffectiveSnapshot, ...EffectiveSnapshot[]];
  const first = comparedOn(outcome, state, basis);
  const isOther = (other: EffectiveSnapshot): boolean =>
    JSON.stringify(comparedOn(outcome, other, basis)) !== JSON.stringify(first);
  const unless = (why: NotComparable) => notComparable(why, first.kubelet, { nodewise: first.nodewise });
  if (inOtherOrder.some(isOther)) return unless("order_not_known");
  const soon = OUTCOME_TRAITS[outcome.kind].admits ? asReportedSoon(state, basis.others, timeOf(outcome)) : null;
  return soon !== null && isOther(soon) ? unless("pressure_not_told") : first;
}

/** The possible states before an outcome; before a preemption, all its victims were present. */
function statesFor(outcome: Outcome, basis: Basis): readonly EffectiveSnapshot[] {
  const { snapshot, observedAtMs, others } = basis;
  const together = outcome.kind === "preemption" ? preemptedTogether(outcome, basis) : [outcome];
  const from = Math.min(...together.map(timeOf));
  return statesBefore(
    snapshot,
    observedAtMs,
    others.filter((one) => !together.some((other) => other === one)),
    from,
  );
}

function comparedOn(outcome: Outcome, state: EffectiveSnapshot, basis: Basis): Compared {
  switch (outcome.kind) {
    case "admission":
      return compareAdmission(outcome, state, basis);
    case "preemption":
      return comparePreemption(outcome, state, basis);
    case "eviction":
      return compareEviction(outcome, state, basis);
    case "conditions":
      return compareConditions(outcome, state, basis);
    case "resize":
      return compareResize(outcome, state, basis);
    case "claims":
      return compareClaims(outcome, state, basis);
    case "probes":
      return compareProbes(outcome, state, basis);
    case "image-gc":
      return compareImageGc(outcome, state, basis);
    default:
      return unreachable(outcome);
  }
}

/** The kubelet's side of an outcome that is not compared. */
function sideOf(outcome: Outcome): Side {
  switch (outcome.kind) {
    case "admission": {
      const { admitted, reason, message } = outcome;
      return admitted ? { admitted } : { admitted, reason, message };
    }
    case "conditions":
      return { [outcome.condition]: outcome.status };
    case "image-gc":
      return { removed: outcome.images.map(({ id, names }) => names[0] ?? id ?? "").sort() };
    case "resize":
      return { reason: outcome.reason, message: outcome.message };
    case "claims":
      return outcome.prepared ? { prepared: true } : { prepared: false, message: outcome.message };
    case "probes":
      return { container: outcome.container, probe: outcome.probe, message: outcome.message };
    default:
      return { pod: `${outcome.pod.namespace}/${outcome.pod.name}`, message: outcome.message };
  }
}

function comparisonOf(
  snapshotId: string | null,
  snapshotAgeMs: number | null,
  policyVersion: string | null,
  { kubelet, nodewise, measured, why }: Compared,
): Comparison {
  const difference = why === null && nodewise !== null ? firstDifference(kubelet, nodewise) : null;
  return {
    verdict: why !== null ? "not-comparable" : difference === null ? "agrees" : "differs",
    snapshotId,
    snapshotAgeMs,
    policyVersion,
    kubelet,
    nodewise,
    measured,
    difference,
    why: why && {
      code: why.code,
      message: why.detail === undefined ? NOT_COMPARABLE[why.code] : `${NOT_COMPARABLE[why.code]} (${why.detail})`,
      missing: why.missing,
    },
  };
}

/** The first difference, in the order of the kubelet's fields, then of fields that only Nodewise's decision has. */
function firstDifference(kubelet: Side, nodewise: Side): Comparison["difference"] {
  const fieldOf = (side: Side, field: string): SideValue => side[field] ?? null;
  for (const field of Object.keys({ ...kubelet, ...nodewise })) {
    const [theirs, ours] = [fieldOf(kubelet, field), fieldOf(nodewise, field)];
    if (JSON.stringify(theirs) !== JSON.stringify(ours)) return { field, kubelet: theirs, nodewise: ours };
  }
  return null;
}
