import { compare } from "../../model/amount.ts";
import {
  type ConditionState,
  type EvictionFacts,
  PRESSURE_CONDITIONS,
  type PressureCondition,
} from "../../model/eviction.ts";
import type { Toleration } from "../../model/placement.ts";
import type { Pod } from "../../model/pod.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import { isCriticalPod, qosClass } from "../resources/qos.ts";
import { isMet, type Observations } from "./observe.ts";
import { keyOf, refOf, SIGNALS, type Threshold, type ThresholdValue } from "./threshold.ts";

interface PressureInput {
  readonly watched: readonly Threshold[];
  readonly seen: Observations;
  readonly before: EvictionFacts | undefined;
  readonly now: EpochMs;
  readonly transitionMs: number;
}
/** A threshold that is met, or was met and has not reached its minimum reclaim yet. */
interface OpenThreshold {
  readonly threshold: Threshold;
  readonly state: "below" | "unreclaimed";
  readonly firstObservedAt: EpochMs;
}
export interface Pressure {
  readonly open: readonly OpenThreshold[];
  readonly conditions: readonly ConditionState[];
  /** When each condition was last observed, for the next pass. */
  readonly lastObserved: ReadonlyMap<PressureCondition, EpochMs>;
  /** Met thresholds past their grace period; the next pass compares them with their minimum reclaim. */
  readonly pastGrace: readonly Threshold[];
  /** Those of `pastGrace` whose stats are newer than at the last pass; the first is reclaimed first. */
  readonly driving: readonly Threshold[];
}

/** Which thresholds and conditions hold now, given what was remembered. kubelet 1.36: synchronize, down to the updated stats. */
export function pressureOf({ watched, seen, before, now, transitionMs }: PressureInput): Pressure {
  const firstBefore = new Map(before?.thresholdsFirstObservedAt.map((e) => [keyOf(e.threshold), e.atMs]));
  const metBefore = new Set(before?.thresholdsMet.map(keyOf));
  const open: OpenThreshold[] = [];
  const put = (threshold: Threshold, state: OpenThreshold["state"]): void => {
    const key = keyOf(refOf(threshold));
    // two thresholds with equal texts count as one
    if (open.some((o) => keyOf(refOf(o.threshold)) === key)) return;
    open.push({ threshold, state, firstObservedAt: epochMs(firstBefore.get(key) ?? now) });
  };
  for (const t of watched) if (isMet(t, seen, false)) put(t, "below");
  const below = open.map((o) => o.threshold);
  for (const t of watched) {
    const held = metBefore.has(keyOf(refOf(t))) && isMet(t, seen, true);
    if (held && !below.some((b) => isEqual(b, t))) put(t, "unreclaimed");
  }
  const pastGrace = byUrgency(
    open.filter((o) => now - o.firstObservedAt >= o.threshold.graceMs).map((o) => o.threshold),
  );
  const { conditions, lastObserved } = conditionsOf(open, before, now, transitionMs);
  return {
    open,
    conditions,
    lastObserved,
    pastGrace,
    driving: pastGrace.filter((t) => hasNewerStats(t, seen, before)),
  };
}

/** Whether two thresholds are equal apart from their minimum reclaim. kubelet 1.36: hasThreshold. */
const isEqual = (a: Threshold, b: Threshold): boolean =>
  a.signal === b.signal && a.graceMs === b.graceMs && sameValue(a.value, b.value);
const sameValue = (a: ThresholdValue, b: ThresholdValue): boolean =>
  "quantity" in a
    ? "quantity" in b && compare(a.quantity.amount, b.quantity.amount) === 0
    : "percentage" in b && a.percentage === b.percentage;

/**
 * Sorts thresholds by urgency. The kubelet follows a Go map, so it may choose another; this is the order that results
 * if the map starts at its first entry: memory last to first, then the rest as they were met. kubelet 1.36:
 * byEvictionPriority.
 */
function byUrgency(thresholds: readonly Threshold[]): readonly Threshold[] {
  const isMemory = (t: Threshold): boolean => SIGNALS[t.signal].resource === "memory";
  return [...thresholds.filter(isMemory).reverse(), ...thresholds.filter((t) => !isMemory(t))];
}

/** kubelet 1.36: thresholdsUpdatedStats. */
export function hasNewerStats({ signal }: Threshold, seen: Observations, before: EvictionFacts | undefined): boolean {
  const observed = seen.get(signal);
  if (observed === undefined) return false;
  const last = before?.lastObservations.find((o) => o.signal === signal);
  return last === undefined || last.atMs === null || observed.atMs === null || observed.atMs > last.atMs;
}

/** kubelet 1.36: nodeConditionsLastObservedAt, nodeConditionsObservedSince. */
function conditionsOf(
  open: readonly OpenThreshold[],
  before: EvictionFacts | undefined,
  now: EpochMs,
  transitionMs: number,
): Pick<Pressure, "conditions" | "lastObserved"> {
  const observed = new Set(open.map((o) => SIGNALS[o.threshold.signal].condition));
  const lastObserved = new Map<PressureCondition, EpochMs>();
  const conditions: ConditionState[] = [];
  for (const type of PRESSURE_CONDITIONS) {
    const then = before?.nodeConditionsLastObservedAt.find((c) => c.condition === type)?.atMs;
    const at = observed.has(type) ? now : then;
    if (at === undefined) continue;
    const lastObservedAtMs = epochMs(at);
    lastObserved.set(type, lastObservedAtMs);
    if (now - at >= transitionMs) continue;
    const untilMs = epochMs(Math.ceil(at + transitionMs));
    conditions.push({ type, observed: observed.has(type), lastObservedAtMs, untilMs });
  }
  return { conditions, lastObserved };
}

interface PressureRefusal {
  readonly reason: "Evicted";
  readonly message: string;
}

/**
 * Decides whether a node under pressure admits a pod: null, or the refusal for the pod's status. The kubelet lists
 * several conditions in the order of a Go map; here the order is memory, disk, process ids. kubelet 1.36: the eviction
 * manager's Admit.
 */
export function refusalUnderPressure(pod: Pod, conditions: readonly PressureCondition[]): PressureRefusal | null {
  const present = PRESSURE_CONDITIONS.filter((c) => conditions.includes(c));
  if (present.length === 0 || isCriticalPod(pod)) return null;
  const onlyMemory = present.length === 1 && present[0] === "MemoryPressure";
  if (onlyMemory && (qosClass(pod) !== "BestEffort" || (pod.spec.tolerations ?? []).some(toleratesMemoryPressure))) {
    return null;
  }
  return { reason: "Evicted", message: `The node had condition: [${present.join(" ")}]. ` };
}

/**
 * Checks that a toleration covers the taint node.kubernetes.io/memory-pressure:NoSchedule, which has no value. kubernetes 1.36:
 * ToleratesTaint.
 */
function toleratesMemoryPressure({ key = "", operator = "", value = "", effect = "" }: Toleration): boolean {
  if (effect !== "" && effect !== "NoSchedule") return false;
  if (key !== "" && key !== "node.kubernetes.io/memory-pressure") return false;
  return operator === "Exists" || ((operator === "" || operator === "Equal") && value === "");
}
