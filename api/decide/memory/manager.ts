import { type Container, containersOf, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import { ok, type Result } from "../../model/result.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { AllocateError, HintProvider, ResourceHints, TopologyHint } from "../topology/hint.ts";
import { type NumaNodes, numaNodes } from "../topology/numa-nodes.ts";
import { allocateContainer, type Desk, isManaged } from "./allocate.ts";
import { allocatePod } from "./allocate-pod.ts";
import { hintsOfBlocks, memoryHints, nodeSets } from "./hints.ts";
import { giveBack } from "./machine-memory.ts";
import { containerRequests, podRequests, sharedPoolFault } from "./requests.ts";
import { reusableMemory } from "./reuse.ts";
import type { Block, MemoryState } from "./state.ts";
import { takeBlocks, workingState } from "./working-state.ts";

export interface MemoryManagerInput {
  readonly policy: "None" | "Static";
  /** What it starts from: of `startMemory`, or `state` of another manager. It is not changed. */
  readonly state: MemoryState;
  /** The gate PodLevelResourceManagers is on. */
  readonly podLevel: boolean;
}
/** A container that lost its memory. */
export interface Removed {
  readonly podUid: string;
  readonly container: string;
}
export interface MemoryManager extends HintProvider {
  readonly numa: NumaNodes;
  /** What it is now; a working copy that later calls change. */
  readonly state: MemoryState;
  /** Gives a pod with pod-level resources its memory at once: with pod scope and the gate, instead of `allocate`. */
  allocatePod(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
  /** Takes a container's memory back; nothing happens where it has none. */
  removeContainer(uid: string, container: string): void;
  /** A container was created: the init containers before it have ended, and what is left of theirs goes back. */
  containerCreated(pod: Pod, container: string): void;
  /** Takes back what containers hold that are in none of the active pods, as before each admission once all sources are ready. */
  removeStale(active: readonly Pod[]): readonly Removed[];
  blocks(uid: string, container: string): readonly Block[];
  /** The ids of the NUMA nodes that hold its blocks, ascending: its cpuset.mems; undefined where the kubelet sets none. */
  numaNodesOf(uid: string, container: string): readonly number[] | undefined;
}

const NO_PREFERENCE: ResourceHints = new Map();

/** INVARIANT: every pod that is asked about has a uid. kubelet 1.36: memorymanager.manager. */
export function memoryManager(input: MemoryManagerInput): MemoryManager {
  const state = workingState(input.state);
  const numa = numaNodes(state.machineState.keys());
  const off = input.policy === "None";
  const ground = { numa, sets: off ? [] : nodeSets(numa.ids.length), machine: state.machineState };
  const desk: Desk = { ground, state, reusable: reusableMemory(numa), podLevel: input.podLevel };
  const removeContainer = (uid: string, container: string): void => {
    if (!off) remove(desk, uid, container);
  };
  const blocks = (uid: string, container: string) => state.entries.get(uid)?.get(container) ?? [];
  return {
    numa,
    state,
    containerHints: (pod, container) => (off ? NO_PREFERENCE : containerHints(desk, pod, container)),
    podHints: (pod) => (off ? NO_PREFERENCE : podHints(desk, pod)),
    allocate: (pod, container, affinity) => (off ? ok(undefined) : allocateContainer(desk, pod, container, affinity)),
    allocatePod: (pod, affinity) => (off ? ok(undefined) : allocatePod(desk, pod, affinity)),
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
function containerHints({ ground, state, reusable, podLevel }: Desk, pod: Pod, container: Container): ResourceHints {
  if (!isManaged(pod, podLevel)) return NO_PREFERENCE;
  const asked = containerRequests(pod, container, podLevel);
  if (asked === undefined) return NO_PREFERENCE;
  const held = state.entries.get(podUid(pod) as string)?.get(container.name);
  if (held !== undefined) return hintsOfBlocks(ground.numa, held, asked);
  return memoryHints(ground, asked, (set, type) => reusable.of(pod, set, type));
}

/** kubelet 1.36: staticPolicy.GetPodTopologyHints. */
function podHints({ ground, state, reusable, podLevel }: Desk, pod: Pod): ResourceHints {
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
function remove({ state, podLevel }: Desk, uid: string, container: string): void {
  const whole = podLevel ? state.podEntries.get(uid) : undefined;
  const blocks = takeBlocks(state, uid, container);
  if (whole === undefined) {
    giveBack(state.machineState, blocks ?? []);
  } else if (!state.entries.has(uid)) {
    // the last container of a pod that was given its memory as a whole
    giveBack(state.machineState, whole);
    state.podEntries.delete(uid);
  }
}
