import { err, ok, type Result } from "../../base/result.ts";
import { type Container, containersOf, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import {
  type AllocateError,
  type HintProvider,
  idsOf,
  maskOf,
  type NumaMask,
  type NumaNodes,
  numaNodes,
  type ResourceHints,
  type TopologyHint,
} from "../topology/hint.ts";
import {
  bestHint,
  breaksGroups,
  hasFree,
  hintsOfBlocks,
  memoryHints,
  type NumaMemory,
  nodeSets,
  type Reusable,
  unknownType,
} from "./hints.ts";
import {
  type Block,
  containerRequests,
  copyMachine,
  type MemoryState,
  NIL_POINTER,
  NOT_INT64,
  type OpenMachine,
  podRequests,
  type Requests,
  releaseBlocks,
  sharedPoolFault,
  take,
} from "./machine-memory.ts";

interface MemoryManagerInput {
  readonly policy: "None" | "Static";
  /** The state that it starts from: the one of `startMemory`, or `state` of another manager. It is not changed. */
  readonly state: MemoryState;
  /** The gate PodLevelResourceManagers is on. */
  readonly podLevel: boolean;
  readonly behaviour: Behaviour;
}
/** A container that lost its memory. */
interface Removed {
  readonly podUid: string;
  readonly container: string;
}
export interface MemoryManager extends HintProvider {
  readonly numa: NumaNodes;
  /** The present state; a working copy that later calls change. */
  readonly state: MemoryState;
  /** Gives a pod with pod-level resources its memory at once: with pod scope and the gate, instead of `allocate`. */
  allocatePod(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
  /** Takes a container's memory back; nothing happens where it has none. */
  removeContainer(uid: string, container: string): void;
  /**
   * Records that a container was created: the init containers before it have ended, and their remaining memory is
   * released.
   */
  containerCreated(pod: Pod, container: string): void;
  /** Takes back what containers hold that are in none of the active pods, as before each admission once all sources are ready. */
  removeStale(active: readonly Pod[]): readonly Removed[];
  blocks(uid: string, container: string): readonly Block[];
  /** The ids of the NUMA nodes that hold its blocks, ascending: its cpuset.mems; undefined where the kubelet sets none. */
  numaNodesOf(uid: string, container: string): readonly number[] | undefined;
}

const NO_PREFERENCE: ResourceHints = new Map();

/** Creates a manager. INVARIANT: every pod that it is asked about has a uid. kubelet 1.36: memorymanager.manager. */
export function memoryManager(input: MemoryManagerInput): MemoryManager {
  const state = workingState(input.state);
  const numa = numaNodes(state.machineState.keys());
  const off = input.policy === "None";
  const ground = { numa, sets: off ? [] : nodeSets(numa.ids.length), machine: state.machineState };
  const policy: StaticPolicy = {
    ground,
    state,
    reusable: reusableMemory(numa),
    podLevel: input.podLevel,
    behaviour: input.behaviour,
  };
  const removeContainer = (uid: string, container: string): void => {
    if (!off) remove(policy, uid, container);
  };
  const blocks = (uid: string, container: string) => state.entries.get(uid)?.get(container) ?? [];
  return {
    numa,
    state,
    containerHints: (pod, container) => (off ? NO_PREFERENCE : containerHints(policy, pod, container)),
    podHints: (pod) => (off ? NO_PREFERENCE : podHints(policy, pod)),
    allocate: (pod, container, affinity) => (off ? ok(undefined) : allocateContainer(policy, pod, container, affinity)),
    allocatePod: (pod, affinity) => (off ? ok(undefined) : allocatePod(policy, pod, affinity)),
    removeContainer,
    containerCreated: (pod, container) => {
      for (const init of pod.spec.initContainers ?? []) {
        if (init.name === container) return;
        if (!isSidecar(init)) removeContainer(podUid(pod) as string, init.name);
      }
    },
    removeStale: (active) => {
      const names = new Map(active.map((pod) => [podUid(pod), new Set(containersOf(pod).map(({ name }) => name))]));
      const held = [...state.entries].flatMap(([uid, list]) =>
        [...list.keys()].map((container) => ({ podUid: uid, container })),
      );
      const gone = off ? [] : held.filter((h) => names.get(h.podUid)?.has(h.container) !== true);
      for (const { podUid: uid, container } of gone) removeContainer(uid, container);
      return gone;
    },
    blocks,
    numaNodesOf: (uid, container) => {
      const ids = new Set(blocks(uid, container).flatMap((block) => block.numaAffinity));
      return ids.size === 0 ? undefined : [...ids].sort((a, b) => a - b);
    },
  };
}

/** kubelet 1.36: staticPolicy.GetTopologyHints. */
function containerHints(
  { ground, state, reusable, podLevel }: StaticPolicy,
  pod: Pod,
  container: Container,
): ResourceHints {
  if (!isManaged(pod, podLevel)) return NO_PREFERENCE;
  const asked = containerRequests(pod, container, podLevel);
  if (asked === undefined) return NO_PREFERENCE;
  const held = state.entries.get(podUid(pod) as string)?.get(container.name);
  if (held !== undefined) return hintsOfBlocks(ground.numa, held, asked);
  return memoryHints(ground, asked, (set, type) => reusable.of(pod, set, type));
}

/** kubelet 1.36: staticPolicy.GetPodTopologyHints. */
function podHints({ ground, state, reusable, podLevel }: StaticPolicy, pod: Pod): ResourceHints {
  if (!isManaged(pod, podLevel)) return NO_PREFERENCE;
  const asked = podRequests(pod, podLevel);
  if (asked === undefined) return NO_PREFERENCE;
  if (isPodLevelResourcesSet(pod) && sharedPoolFault(pod) !== undefined) {
    return new Map([...asked.keys()].map((type) => [type, []]));
  }
  if (asked.size === 0) return NO_PREFERENCE;
  const holding = state.entries.get(podUid(pod) as string);
  const first = containersOf(pod).find(({ name }) => holding?.has(name));
  if (first !== undefined) return hintsOfBlocks(ground.numa, holding?.get(first.name) ?? [], asked);
  return memoryHints(ground, asked, (set, type) => reusable.of(pod, set, type));
}

/** kubelet 1.36: staticPolicy.RemoveContainer. */
function remove({ state, podLevel }: StaticPolicy, uid: string, container: string): void {
  const whole = podLevel ? state.podEntries.get(uid) : undefined;
  const blocks = takeBlocks(state, uid, container);
  if (whole === undefined) {
    releaseBlocks(state.machineState, blocks ?? []);
  } else if (!state.entries.has(uid)) {
    // the last container of a pod that was given its memory as a whole
    releaseBlocks(state.machineState, whole);
    state.podEntries.delete(uid);
  }
}

/**
 * Gives a pod with pod-level resources its memory as a whole, and lists it by container: what a container asks for itself,
 * what is left for those that share it, and for an init container that shares all that the sidecars before it leave. Only
 * with pod scope and the gate PodLevelResourceManagers. A pod that has its memory is given it once more: the kubelet does not
 * look. kubelet 1.36: staticPolicy.AllocatePod.
 */
function allocatePod(policy: StaticPolicy, pod: Pod, affinity: TopologyHint): Result<void, AllocateError> {
  const { ground, state } = policy;
  if (qosClass(pod) !== "Guaranteed") return ok(undefined);
  const whole = podRequests(pod, policy.podLevel);
  if (whole === undefined) return ok(undefined);
  const fault = sharedPoolFault(pod);
  if (fault !== undefined) return err({ reason: "EmptyPodSharedPoolError", message: fault });
  const placed = placeMemory(ground, whole, affinity, (set, type) => policy.reusable.of(pod, set, type));
  if (!placed.ok) return err({ message: placed.error });
  const uid = podUid(pod) as string;
  const numaAffinity = idsOf(ground.numa, placed.value);
  const blocksOf = (sizes: Requests): readonly Block[] =>
    [...sizes].filter(([, size]) => size > 0).map(([type, size]) => ({ numaAffinity, type, size }));
  state.podEntries.set(uid, blocksOf(whole));
  for (const [type, size] of whole) take(state.machineState, numaAffinity, type, size);
  for (const [name, sizes] of shares(pod, whole)) setBlocks(state, uid, name, blocksOf(sizes));
  return ok(undefined);
}

/**
 * The shares by container, init containers first. The API allows no container to request more than its pod, so none is
 * negative.
 */
function shares(pod: Pod, whole: Requests): ReadonlyMap<string, Requests> {
  const own = (name: string): Requests => asked.get(name) ?? new Map();
  const inits = pod.spec.initContainers ?? [];
  const all = [...inits, ...pod.spec.containers];
  const asked = new Map(all.map((c) => [c.name, containerRequests(pod, c, true) ?? new Map<string, number>()]));
  const shared = new Map<string, Requests>();
  let left = whole;
  for (const c of inits) {
    if (own(c.name).size > 0 && isSidecar(c)) left = minus(left, own(c.name));
    else if (!isSidecar(c)) shared.set(c.name, left);
  }
  for (const c of pod.spec.containers) left = minus(left, own(c.name));
  return new Map(all.map((c) => [c.name, own(c.name).size > 0 ? own(c.name) : (shared.get(c.name) ?? left)]));
}
const minus = (sizes: Requests, less: Requests): Requests =>
  new Map([...sizes].map(([type, size]) => [type, Math.max(0, size - (less.get(type) ?? 0))]));

/** The Static policy with its working data. kubelet 1.36: memorymanager.staticPolicy. */
interface StaticPolicy {
  readonly ground: NumaMemory;
  /** The manager's state, whose `machineState` is the ground's machine. */
  readonly state: WorkingState;
  readonly reusable: ReusableMemory;
  /** The gate PodLevelResourceManagers is on (PodLevelResources with it, or the kubelet would not start). */
  readonly podLevel: boolean;
  readonly behaviour: Behaviour;
}

/** Checks that the policy handles a pod: Guaranteed, and with pod-level resources only under the gate. */
const isManaged = (pod: Pod, podLevel: boolean): boolean =>
  qosClass(pod) === "Guaranteed" && (podLevel || !isPodLevelResourcesSet(pod));

/**
 * Gives a container its memory. The kubelet's state lists the kinds of memory of a container in the order of a Go map; here
 * they stand in the order of their names. kubelet 1.36: staticPolicy.Allocate.
 */
function allocateContainer(
  policy: StaticPolicy,
  pod: Pod,
  container: Container,
  affinity: TopologyHint,
): Result<void, AllocateError> {
  const { ground, state, reusable, podLevel, behaviour } = policy;
  if (!isManaged(pod, podLevel)) return ok(undefined);
  const uid = podUid(pod) as string;
  const held = state.entries.get(uid)?.get(container.name);
  const asked = containerRequests(pod, container, podLevel);
  if (behaviour.memoryRequestsFirst && asked?.size === 0) return ok(undefined);
  if (held !== undefined && (asked !== undefined || !behaviour.memoryRequestsFirst)) {
    reusable.settle(pod, container, held);
    return ok(undefined);
  }
  if (asked === undefined) return err({ message: NOT_INT64 });
  const placed = placeMemory(ground, asked, affinity, (set, type) => reusable.of(pod, set, type));
  if (!placed.ok) return err({ message: placed.error });
  const numaAffinity = idsOf(ground.numa, placed.value);
  const blocks = [...asked].map(([type, size]) => ({ numaAffinity, type, size }));
  for (const { type, size } of blocks) {
    take(state.machineState, numaAffinity, type, Math.max(0, size - reusable.of(pod, placed.value, type)));
  }
  reusable.settle(pod, container, blocks);
  setBlocks(state, uid, container.name, blocks);
  shrinkInitBlocks(state, ground.numa, pod, container, blocks);
  return ok(undefined);
}

const fail = (what: string): Result<never, string> => err(`[memorymanager] ${what}`);

/**
 * Selects the nodes for a request: those of `affinity`, else of the best hint, and more if they have too little.
 * Errors, in the kubelet's words: no nodes have the memory; more nodes are needed than preferred; groups would break.
 */
function placeMemory(
  ground: NumaMemory,
  asked: Requests,
  affinity: TopologyHint,
  reusable: Reusable,
): Result<NumaMask, string> {
  if (unknownType(ground, asked) !== undefined) return err(NIL_POINTER);
  const hints = () => memoryHints(ground, asked, reusable);
  let chosen = affinity;
  if (chosen.nodes === null) {
    const found = hints();
    if (found.size === 0) {
      return fail("failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    }
    // every kind of memory has the same hints, and the kubelet uses those for memory
    const best = bestHint(found.get("memory") ?? []);
    if (best === undefined) return err(NIL_POINTER);
    if (!best.preferred && chosen.preferred) return fail("failed to find the default preferred hint");
    chosen = best;
  }
  const wanted = chosen.nodes as NumaMask;
  if (!hasFree(ground, wanted, asked)) {
    const wider = (hints().get("memory") ?? []).filter(({ nodes }) => ((nodes as NumaMask) & wanted) === wanted);
    const best = bestHint(wider);
    if (best === undefined) return fail("failed to find NUMA nodes to extend the current topology hint");
    if (!best.preferred && chosen.preferred) return fail("failed to find the extended preferred hint");
    chosen = best;
  }
  const set = chosen.nodes as NumaMask;
  return breaksGroups(ground, set) ? fail("preferred hint violates NUMA node allocation") : ok(set);
}

/**
 * The memory that init containers of the current pod hold and its next containers may have, on the same nodes. Sidecars keep
 * theirs. kubelet 1.36: initContainersReusableMemory.
 */
interface ReusableMemory {
  /** Bytes of `type` on exactly these nodes. */
  of(pod: Pod, set: NumaMask, type: string): number;
  /**
   * Records the blocks of a container: those of an init container can be reused, those of others use up the reusable
   * ones.
   */
  settle(pod: Pod, container: Container, blocks: readonly Block[]): void;
}

function reusableMemory(numa: NumaNodes): ReusableMemory {
  const left = new Map<string, number>();
  let owner: string | undefined;
  const keyOf = (set: NumaMask, type: string): string => `${set} ${type}`;
  const of = (pod: Pod, set: NumaMask, type: string): number =>
    podUid(pod) === owner ? (left.get(keyOf(set, type)) ?? 0) : 0;
  return {
    of,
    settle: (pod, container, blocks) => {
      if (podUid(pod) !== owner) left.clear();
      owner = podUid(pod);
      const init = pod.spec.initContainers?.some(({ name }) => name === container.name) && !isSidecar(container);
      for (const { numaAffinity, type, size } of blocks) {
        const set = maskOf(numa, numaAffinity);
        const before = of(pod, set, type);
        left.set(keyOf(set, type), init ? Math.max(before, size) : Math.max(0, before - size));
      }
    },
  };
}

/**
 * Shrinks the blocks of the init containers before `container` by what it uses of them, so that the blocks of a pod sum up to
 * what was taken off the nodes. kubelet 1.36: updateInitContainersMemoryBlocks.
 */
function shrinkInitBlocks(
  state: WorkingState,
  numa: NumaNodes,
  pod: Pod,
  container: Container,
  blocks: readonly Block[],
): void {
  const uid = podUid(pod) as string;
  const inits = pod.spec.initContainers ?? [];
  const own = inits.findIndex(({ name }) => name === container.name);
  const before = own < 0 ? inits : inits.slice(0, own);
  for (const { numaAffinity, type, size } of blocks) {
    const set = maskOf(numa, numaAffinity);
    let left = size;
    for (const init of before) {
      const held = state.entries.get(uid)?.get(init.name);
      if (isSidecar(init) || held === undefined || held.length === 0) continue;
      const shrunk = held.map((block) => {
        if (block.type !== type || maskOf(numa, block.numaAffinity) !== set) return block;
        const used = Math.min(left, block.size);
        left -= used;
        return { ...block, size: block.size - used };
      });
      setBlocks(state, uid, init.name, shrunk);
    }
  }
}

/** A working copy of a MemoryState. kubelet 1.36: state.State. */
interface WorkingState {
  readonly machineState: OpenMachine;
  readonly entries: Map<string, Map<string, readonly Block[]>>;
  readonly podEntries: Map<string, readonly Block[]>;
}

const workingState = (state: MemoryState): WorkingState => ({
  machineState: copyMachine(state.machineState),
  entries: new Map([...state.entries].map(([uid, containers]) => [uid, new Map(containers)])),
  podEntries: new Map(state.podEntries),
});

function setBlocks({ entries }: WorkingState, uid: string, container: string, blocks: readonly Block[]): void {
  const containers = entries.get(uid) ?? new Map<string, readonly Block[]>();
  entries.set(uid, containers.set(container, blocks));
}

/** The container's blocks, which it no longer has. A pod without containers is no longer there. */
function takeBlocks({ entries }: WorkingState, uid: string, container: string): readonly Block[] | undefined {
  const containers = entries.get(uid);
  const blocks = containers?.get(container);
  containers?.delete(container);
  if (containers?.size === 0) entries.delete(uid);
  return blocks;
}
