import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { endsPod, OUTCOME_TRAITS, type Outcome, type OutcomeOf } from "../../model/outcome.ts";
import { type Pod, podUid } from "../../model/pod.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";

/** Object timestamps are whole seconds, rounded down. */
const SECOND_MS = 1000;
export const timeOf = ({ at }: Pick<Outcome, "at">): number => Date.parse(at);

/** Pods and conditions at the time of an outcome, derived from the last snapshot and from what happened since. */
interface NodeMoment {
  /** Epoch ms of the snapshot. */
  readonly sinceMs: number;
  readonly atMs: number;
  /** True: outcomes in the same second count as earlier; their real order is unknown. */
  readonly isSameSecondBefore: boolean;
}

/**
 * The node just before an outcome. `others`: all other known outcomes of the node, in any order. Two states if something happened
 * in the same second: without it and with it.
 */
export function statesBefore(
  snapshot: EffectiveSnapshot,
  sinceMs: number,
  others: readonly Outcome[],
  atMs: number,
): readonly EffectiveSnapshot[] {
  const state = (isSameSecondBefore: boolean) => stateAt(snapshot, others, { sinceMs, atMs, isSameSecondBefore });
  const isUncertain = others.some((one) => timeOf(one) === atMs && changesNode(one));
  return isUncertain ? [state(false), state(true)] : [state(false)];
}
const changesNode = ({ kind }: Outcome): boolean => OUTCOME_TRAITS[kind].changes !== "nothing";

function stateAt(snapshot: EffectiveSnapshot, others: readonly Outcome[], at: NodeMoment): EffectiveSnapshot {
  const pods = new Map((snapshot.pods ?? []).map((pod) => [podUid(pod) ?? "", pod]));
  const turned = new Map<string, OutcomeOf<"conditions">["status"]>();
  for (const one of others.toSorted((a, b) => timeOf(a) - timeOf(b))) {
    const hasHappened = timeOf(one) < at.atMs || (timeOf(one) === at.atMs && at.isSameSecondBefore);
    const isSince = timeOf(one) >= Math.floor(at.sinceMs / SECOND_MS) * SECOND_MS;
    if (one.kind === "admission") applyAdmission(pods, one, hasHappened, isSince);
    else if (!hasHappened || !isSince) continue;
    else if ("pod" in one && endsPod(one)) pods.delete(one.pod.uid);
    else if (one.kind === "conditions") turned.set(one.condition, one.status);
  }
  return { ...snapshot, pods: [...pods.values()], ...withConditions(snapshot, turned) };
}

const isPressure = (type: string): boolean => PRESSURE_CONDITIONS.some((one) => one === type);

/**
 * How long a kubelet takes to report pressure, ms: it writes the node status every nodeStatusUpdateFrequency, up to 4 % late, and
 * the write takes time. kubelet 1.37: Run of pkg/kubelet.
 */
export const statusWithinMs = ({ kubeletConfiguration }: Pick<EffectiveSnapshot, "kubeletConfiguration">): number =>
  kubeletConfiguration.nodeStatusUpdateFrequency.millis * 1.04 + WRITING_MS;
const WRITING_MS = 1600;

/**
 * The node as the kubelet may already have known it: with the conditions of its next status, and without those that end before
 * then. Null if there is no difference. kubelet 1.37: nodeStatusUpdateFrequency, evictionPressureTransitionPeriod.
 */
export function asReportedSoon(
  state: EffectiveSnapshot,
  others: readonly Outcome[],
  atMs: number,
): EffectiveSnapshot | null {
  const turned = new Map<string, "True" | "False">();
  const withinMs = statusWithinMs(state);
  if (state.kubeletConfiguration.evictionPressureTransitionPeriod.millis < withinMs)
    for (const { type, status } of state.node?.status?.conditions ?? [])
      if (status === "True" && isPressure(type)) turned.set(type, "False");
  for (const one of others.toSorted((a, b) => timeOf(b) - timeOf(a)))
    if (one.kind === "conditions" && timeOf(one) >= atMs && timeOf(one) <= atMs + withinMs)
      turned.set(one.condition, one.status);
  const conditions = withConditions(state, turned);
  return conditions && { ...state, ...conditions };
}

/** A pod that is not admitted, or never was, uses no resources although the API server has bound it to the node. */
function applyAdmission(
  pods: Map<string, Pod>,
  { pod: { uid }, object, admitted }: OutcomeOf<"admission">,
  hasHappened: boolean,
  isSince: boolean,
): void {
  const known = pods.get(uid);
  const ran = known !== undefined && hasContainers(known);
  if (!admitted && (hasHappened || !ran)) pods.delete(uid);
  else if (admitted && !hasHappened && !ran) pods.delete(uid);
  else if (admitted && hasHappened && isSince && known === undefined && object !== undefined)
    pods.set(uid, withoutStatus(object));
}
export const hasContainers = ({ status }: Pod): boolean =>
  [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].some(
    ({ state }) => state?.running !== undefined || state?.terminated !== undefined,
  );
/** The pod as it was when it was admitted. */
export function withoutStatus({ status: _, ...pod }: Pod): Pod {
  return pod;
}

function withConditions(
  { node }: EffectiveSnapshot,
  turned: ReadonlyMap<string, "True" | "False">,
): Pick<EffectiveSnapshot, "node"> | null {
  if (turned.size === 0 || node?.status?.conditions === undefined) return null;
  const kept = node.status.conditions.filter(({ type }) => !turned.has(type));
  const now = PRESSURE_CONDITIONS.flatMap((type) => {
    const status = turned.get(type);
    return status === undefined ? [] : [{ type, status }];
  });
  return { node: { ...node, status: { ...node.status, conditions: [...kept, ...now] } } };
}
