import { type Container, containersOf, type Pod, podUid } from "../../model/pod.ts";
import { ok, type Result } from "../../model/result.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { AllocateError, HintProvider, ResourceHints, TopologyHint } from "../topology/hint.ts";
import { allocateContainer } from "./allocate.ts";
import { allocatePod } from "./allocate-pod.ts";
import { cpuHints } from "./hints.ts";
import type { CpuPolicy, StaticPolicy } from "./policy.ts";
import { exclusiveCpus, podExclusiveCpus, sharedPoolFault } from "./request.ts";
import { type CpuSet, minus, NO_CPUS, union } from "./sets.ts";
import type { CpuState } from "./state.ts";
import { release, reusable, standing, type WorkingState, workingState } from "./working-state.ts";

/** Who has which CPUs. kubelet 1.36: cpumanager.Manager. */
export interface CpuManager extends HintProvider {
  /** False with policy `none`. */
  readonly isManaging: boolean;
  /** The container's own CPUs; undefined: it runs in the shared pool. */
  cpusOf(uid: string, container: string): CpuSet | undefined;
  /** The assignments and the shared pool as they are now. */
  state(): CpuState;
  /** What may still be given to one container: the shared pool without the reserved CPUs. None with policy `none`. */
  available(): CpuSet;
  /** Gives a container's CPUs back; what other containers of the pod hold stays theirs. */
  removeContainer(uid: string, container: string): void;
  /** Removes every container that none of the active pods has. kubelet 1.36: removeStaleState. */
  removeStale(active: Iterable<Pod>): void;
  allocatePod(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
}

/**
 * `state`: as `startState` gives it, a kubelet with another one does not start; it is not changed. `podLevel`: the gate
 * PodLevelResourceManagers.
 */
export function cpuManager(policy: CpuPolicy, state: CpuState, podLevel = false): CpuManager {
  return policy.name === "none" ? idleManager(state) : staticManager(policy, workingState(state), podLevel);
}

const NO_HINTS: ResourceHints = new Map();
const hints = (list: readonly TopologyHint[]): ResourceHints => new Map([["cpu", list]]);
const UNPLACEABLE = hints([]);
const uidOf = (pod: Pod): string => podUid(pod) ?? "";

/** Gives nothing and takes nothing, also of what an earlier policy gave. */
function idleManager(state: CpuState): CpuManager {
  return {
    isManaging: false,
    containerHints: () => NO_HINTS,
    podHints: () => NO_HINTS,
    allocate: () => ok(undefined),
    allocatePod: () => ok(undefined),
    cpusOf: () => undefined,
    state: () => state,
    available: () => NO_CPUS,
    removeContainer: () => {},
    removeStale: () => {},
  };
}

/** kubelet 1.36: staticPolicy. */
function staticManager(policy: StaticPolicy, state: WorkingState, podLevel: boolean): CpuManager {
  return {
    isManaging: true,
    cpusOf: (uid, container) => state.held.get(uid)?.get(container),
    state: () => standing(state),
    available: () => minus(state.pool, policy.reserved),
    removeContainer: (uid, container) => release(state, uid, container),
    removeStale(active) {
      const names = new Map(Array.from(active, (pod) => [uidOf(pod), new Set(containersOf(pod).map((c) => c.name))]));
      for (const [uid, containers] of [...state.held]) {
        for (const name of [...containers.keys()]) if (!names.get(uid)?.has(name)) release(state, uid, name);
      }
    },
    allocate(pod, container, affinity) {
      const count = exclusiveCpus(pod, container, podLevel);
      if (count === 0) return ok(undefined);
      return allocateContainer(policy, state, { uid: uidOf(pod), pod, container, count, affinity });
    },
    allocatePod: (pod, affinity) => (podLevel ? allocatePod(policy, state, uidOf(pod), pod, affinity) : ok(undefined)),
    containerHints(pod, container) {
      const count = exclusiveCpus(pod, container, podLevel);
      return count === 0 ? NO_HINTS : containerHints(policy, state, pod, container, count);
    },
    podHints(pod) {
      const count = podExclusiveCpus(pod, podLevel);
      if (count === 0) return NO_HINTS;
      if (podLevel && isPodLevelResourcesSet(pod) && sharedPoolFault(pod) !== undefined) return UNPLACEABLE;
      return podHints(policy, state, pod, count, podLevel);
    },
  };
}

/** kubelet 1.36: GetTopologyHints. */
function containerHints(
  policy: StaticPolicy,
  state: WorkingState,
  pod: Pod,
  { name }: Container,
  count: number,
): ResourceHints {
  const uid = uidOf(pod);
  const known = state.held.get(uid)?.get(name);
  if (known === undefined) {
    return hints(cpuHints(policy, minus(state.pool, policy.reserved), reusable(state, uid), count));
  }
  return known.size === count ? hints(cpuHints(policy, known, NO_CPUS, count)) : UNPLACEABLE;
}

/** kubelet 1.36: GetPodTopologyHints. */
function podHints(
  policy: StaticPolicy,
  state: WorkingState,
  pod: Pod,
  count: number,
  podLevel: boolean,
): ResourceHints {
  const uid = uidOf(pod);
  let assigned = NO_CPUS;
  for (const container of containersOf(pod)) {
    const known = state.held.get(uid)?.get(container.name);
    if (known === undefined) continue;
    if (known.size !== exclusiveCpus(pod, container, podLevel)) return UNPLACEABLE;
    assigned = union(assigned, known);
  }
  if (assigned.size === count) return hints(cpuHints(policy, assigned, NO_CPUS, count));
  const available = minus(state.pool, policy.reserved);
  return hints(cpuHints(policy, available, union(reusable(state, uid), assigned), count));
}
