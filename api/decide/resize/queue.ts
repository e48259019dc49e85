import { err, ok, type Result } from "../../base/result.ts";
import { compare, ZERO } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import { conditionIn, namespacedPodName, type Pod } from "../../model/pod.ts";
import type { ResizeAsk } from "../../model/resize.ts";
import { gateOn } from "../../profiles/effective.ts";
import { sortFunc } from "../go/sort-func.ts";
import { inForcePod, podLevelByGate } from "../pods/node-pods.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import { changesOf, desiredPod, patchedPod } from "./desired.ts";
import type { Infeasible, ResizeNode } from "./refusals.ts";
import { whyInvalid } from "./validation.ts";

/** A pod whose desired resources differ from its allocated ones. */
export interface PendingResize {
  /** The pod with the desired resources. */
  readonly desired: Pod;
  readonly allocated: Pod;
  /** Since when its status shows the resize as pending, in epoch ms; null: the kubelet has not tried it yet. */
  readonly sinceMs: number | null;
}

/** kubelet 1.36: isResizeIncreasingRequests. */
function takesMore({ desired, allocated }: PendingResize): boolean {
  const [before, after] = [podRequests(allocated), podRequests(desired)];
  return ["cpu", "memory"].some((name) => compare(after.get(name) ?? ZERO, before.get(name) ?? ZERO) > 0);
}

interface Ranked<P> {
  readonly resize: P;
  readonly takesMore: boolean;
  readonly priority: number;
  readonly isGuaranteed: boolean;
  readonly sinceMs: number | null;
}

/**
 * Whether `a` sorts before `b`, which precedes it; also true if neither requests more. kubelet 1.36:
 * sortPendingResizes.
 */
function precedes<P>(a: Ranked<P>, b: Ranked<P>): boolean {
  if (!a.takesMore || !b.takesMore) return !a.takesMore;
  if (a.priority !== b.priority) return a.priority > b.priority;
  if (a.isGuaranteed !== b.isGuaranteed) return a.isGuaranteed;
  if (a.sinceMs === null || b.sinceMs === null) return a.sinceMs !== null;
  return a.sinceMs < b.sinceMs;
}

/**
 * The order in which the kubelet tries resizes: those that increase neither CPU nor memory first, then by priority,
 * Guaranteed pods first, then the longest pending. `pushed`: in the order in which the kubelet received them. The
 * kubelet sorts its queue on every push with an inconsistent comparison (of two that do not increase, each is first;
 * of two untried ones, each is second), so Go's sort algorithm decides their order. kubelet 1.36: PushPendingResize,
 * sortPendingResizes.
 */
export function queueOf<P extends PendingResize>(pushed: readonly P[]): readonly P[] {
  const queue: Ranked<P>[] = [];
  for (const resize of pushed) {
    const { desired, sinceMs } = resize;
    const priority = desired.spec.priority ?? 0;
    const isGuaranteed = qosClass(desired) === "Guaranteed";
    queue.push({ resize, takesMore: takesMore(resize), priority, isGuaranteed, sinceMs });
    sortFunc(queue, precedes);
  }
  return queue.map(({ resize }) => resize);
}

/** A resize that is pending, in progress, or asked about. */
export interface Resize extends PendingResize {
  /** Why the API server rejects it; null: it accepts it, or has accepted it. */
  readonly invalid: Infeasible | null;
  /** Why an ask for several pods does not change this pod; empty: it does. */
  readonly untouched: string;
  readonly isAsked: boolean;
  readonly isRetried: boolean;
  /** The pod with the resources in force: the allocated ones, unless a resize is not fully applied yet. */
  readonly inForce: Pod;
}

const POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling";
/** Why an ask changes no pod at all; empty: it may change some. */
function leftOut({ spec, recommendation }: ResizeAsk, { config }: ResizeNode): string {
  if (recommendation?.containerRecommendations.length === 0) return "the autoscaler recommends nothing yet";
  if (spec?.resources === undefined || gateOn(config, POD_LEVEL)) return "";
  return `spec.resources is left out: the feature gate ${POD_LEVEL} is off`;
}

/**
 * The resizes in the order in which the kubelet received them: those in the specs as the pods are listed, then the
 * asked one.
 */
export function pendingOf(
  pods: readonly Pod[],
  allocated: readonly Pod[],
  ask: ResizeAsk,
  facts: ResizeNode,
): Result<readonly Resize[], Refusal> {
  const names = new Set([...(ask.pod === null ? [] : [ask.pod]), ...(ask.pods ?? [])]);
  const isAsked = names.size > 0;
  const isThoughtOf = ask.to !== undefined || ask.spec !== undefined || ask.recommendation !== undefined;
  const inSpec: Resize[] = [];
  const byName = new Map<string, Resize>();
  for (const [i, pod] of pods.entries()) {
    const before = allocated[i] as Pod;
    const name = namespacedPodName(pod);
    const isNew = names.has(name) && isThoughtOf;
    const posted = isNew ? patchedPod(pod, facts.config) : pod;
    const wanted = isNew ? desiredPod(posted, ask, facts.config) : ok(pod);
    if (!wanted.ok && ask.pods === undefined) {
      const { at, message } = wanted.error;
      return err({ code: "needs_input", message: `ask.${at}: ${name}: ${message}`, needs: [`ask.${at}`] });
    }
    const desired = podLevelByGate(wanted.ok ? wanted.value : posted, facts.config);
    const waits = conditionIn(pod, "PodResizePending");
    const since = isNew || waits?.lastTransitionTime === undefined ? null : Date.parse(waits.lastTransitionTime);
    // if the ask repeats the spec, the change is everything that is not allocated yet
    const from = changesOf(desired, posted).length === 0 ? patchedPod(before, facts.config) : posted;
    const resize: Resize = {
      desired,
      allocated: before,
      sinceMs: since,
      invalid: isNew && wanted.ok ? whyInvalid(desired, from, facts) : null,
      untouched: wanted.ok ? (isNew ? leftOut(ask, facts) : "") : wanted.error.message,
      isAsked: names.has(name),
      isRetried: isNew || waits?.reason !== "Infeasible",
      inForce: inForcePod(before),
    };
    const isOpen = changesOf(desired, before).length > 0 || conditionIn(pod, "PodResizeInProgress") !== undefined;
    if (names.has(name)) byName.set(name, resize);
    else if (isOpen) inSpec.push(resize);
  }
  const missing = [...names].find((name) => !byName.has(name));
  if (missing !== undefined)
    return err({ code: "no_such_pod", message: `the node has no pod \`${missing}\` that runs`, needs: ["pods"] });
  const asked = [...names].map((name) => byName.get(name) as Resize);
  return ok(isAsked ? [...inSpec.filter(({ isRetried }) => isRetried), ...asked] : inSpec);
}

/** The resizes in the kubelet's order; those that it would not retry by itself come last. */
export const retryOrder = (pushed: readonly Resize[]): readonly Resize[] => [
  ...queueOf(pushed.filter(({ isRetried }) => isRetried)),
  ...pushed.filter(({ isRetried }) => !isRetried),
];
