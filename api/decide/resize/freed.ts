import type { AdmissionDecision } from "../../model/admission.ts";
import type { Amounts } from "../../model/aggregate.ts";
import { ZERO } from "../../model/amount.ts";
import type { PodRef } from "../../model/forms.ts";
import { isTerminating, type Pod, podRef, podUid } from "../../model/pod.ts";
import type { Victim } from "../../model/preemption.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import { countedRequests } from "../admission/counted.ts";
import { type Requirement, subtract, victimOf } from "../preemption/candidate.ts";
import { nodeClaimsOf } from "../resources/node-claims.ts";
import { podRequests, unitsOf } from "../resources/pod-resources.ts";
import { isCriticalPod, qosClass } from "../resources/qos.ts";

export interface FreedResources {
  /**
   * Pods that are being deleted and hold some of the missing resources: when they are gone, the kubelet retries the
   * resize.
   */
  readonly terminating: readonly PodRef[];
  /**
   * Pods with a pending smaller size that still count with their old size: once the smaller size is written, the
   * kubelet tries this resize again.
   */
  readonly shrinks: readonly PodRef[];
  /**
   * Further pods whose termination would free enough; empty: none needed; null: nothing is short, or they would not
   * free enough.
   */
  readonly leave: readonly Victim[] | null;
}

/**
 * A waiting resize: the missing amounts, and the additional amounts that it takes once it is accepted, in the units
 * of each resource.
 */
export interface PendingResize {
  readonly short: ReadonlyMap<string, number>;
  readonly takes: ReadonlyMap<string, number>;
}
export function pendingResize(
  allocated: Pod,
  { resources }: AdmissionDecision,
  config: EffectiveConfiguration,
): PendingResize {
  const has = podRequests(allocated, nodeClaimsOf(config));
  const short = resources.filter(({ insufficient }) => insufficient > 0);
  return {
    short: new Map(short.map(({ resource, insufficient }) => [resource, insufficient])),
    takes: new Map(
      resources.map(({ resource, requested }) => [
        resource,
        Math.max(0, requested - unitsOf(resource, has.get(resource) ?? ZERO)),
      ]),
    ),
  };
}

/** What must be freed before the resize fits: earlier resizes that fit then take their share first. */
function shortBehind(short: PendingResize["short"], ahead: readonly PendingResize[]): PendingResize["short"] {
  let need = short;
  for (const _each of ahead) {
    const taken = new Map<string, number>();
    const takenOf = (resource: string): number => taken.get(resource) ?? 0;
    for (const one of ahead) {
      const fits = [...one.short].every(([name, amount]) => amount + takenOf(name) <= (need.get(name) ?? 0));
      for (const [name, amount] of fits ? one.takes : []) taken.set(name, takenOf(name) + amount);
    }
    const before = need;
    need = new Map([...short].map(([name, amount]) => [name, amount + takenOf(name)]));
    if ([...need].every(([name, amount]) => amount === before.get(name))) break;
  }
  return need;
}

/**
 * The pods whose termination would free the room that a pending resize needs. kubelet 1.36: retryPendingResizes, after
 * a pod's status shows lower resources, and HandlePodCleanups, after a pod is gone.
 */
export function freedResources(
  desired: Pod,
  pods: readonly Pod[],
  { short }: PendingResize,
  ahead: readonly PendingResize[],
  config: EffectiveConfiguration,
): FreedResources {
  const need = [...shortBehind(short, ahead)].map(([resource, quantity], index) => ({ resource, quantity, index }));
  if (need.length === 0) return { terminating: [], shrinks: [], leave: null };
  const claims = nodeClaimsOf(config);
  const unitsIn = (amounts: Amounts): readonly number[] =>
    need.map(({ resource }) => unitsOf(resource, amounts.get(resource) ?? ZERO));
  const others = pods
    .filter((pod) => podUid(pod) !== podUid(desired))
    .map((pod) => {
      const keeps = unitsIn(isTerminating(pod) ? new Map() : podRequests(pod, claims));
      const frees = unitsIn(countedRequests(pod, config)).map((held, i) => Math.max(0, held - (keeps[i] as number)));
      return { pod, keeps, frees };
    });
  const freeing = others.filter(({ frees }) => frees.some((amount) => amount > 0));
  const refs = (list: typeof others): readonly PodRef[] => list.map(({ pod }) => podRef(pod));
  return {
    terminating: refs(freeing.filter(({ pod }) => isTerminating(pod))),
    shrinks: refs(freeing.filter(({ pod }) => !isTerminating(pod))),
    leave: leavingFor(desired, others, subtract(need, freeing)),
  };
}

/**
 * Chooses pods of the lowest priority first, and only as many as needed: none could be left out, or replaced by a
 * smaller pod of no higher priority. A pod of higher priority stays even if it is smaller. The kubelet preempts nobody
 * here, so its own choice (by QoS class, without priorities among preemptible pods; kubelet 1.36: getPodsToPreempt)
 * does not apply.
 */
function leavingFor(
  desired: Pod,
  pods: readonly { readonly pod: Pod; readonly keeps: readonly number[] }[],
  need: readonly Requirement[],
): readonly Victim[] | null {
  const [most] = need;
  if (most === undefined) return [];
  const priority = (pod: Pod): number => pod.spec.priority ?? 0;
  const others = pods
    .filter(({ pod }) => !isCriticalPod(pod) && priority(pod) <= priority(desired))
    .map(({ pod, keeps }) => ({ pod, ref: podRef(pod), qos: qosClass(pod), frees: keeps }))
    .filter(({ frees }) => need.some(({ index }) => (frees[index] as number) > 0))
    .sort(
      (a, b) => priority(a.pod) - priority(b.pod) || (b.frees[most.index] as number) - (a.frees[most.index] as number),
    );
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
