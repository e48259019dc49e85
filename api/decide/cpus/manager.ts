import { err, ok, type Result } from "../../base/result.ts";
import { type Container, containersOf, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import {
  type AllocateError,
  countNodes,
  type HintProvider,
  type NumaMask,
  type ResourceHints,
  type TopologyHint,
} from "../topology/hint.ts";
import type { CpuState } from "./checkpoint.ts";
import { type CpuPolicy, type StaticPolicy, takeCpus } from "./policy.ts";
import { exclusiveCpus, podExclusiveCpus, sharedPoolFault } from "./request.ts";
import { type CpuSet, filtered, minus, NO_CPUS, union } from "./sets.ts";
import type { CpuTopology } from "./topology.ts";

/** The sums by which hints are compared, for each NUMA node with CPUs. */
interface NodeSum {
  readonly bit: NumaMask;
  readonly cpus: number;
  /** The number of available and reusable CPUs. */
  readonly matching: number;
  /** A bit mask of the sockets with CPUs on the node. */
  readonly sockets: number;
}

/**
 * The sets of NUMA nodes with room for `request` CPUs, fewest nodes first; each set includes every reusable CPU. Sets
 * with as few nodes as an empty machine would need are preferred. At most 2^n hints: `MAX_ALIGNED_NODES` bounds n.
 * kubelet 1.36: generateCPUTopologyHints.
 */
function cpuHints(policy: StaticPolicy, available: CpuSet, reusable: CpuSet, request: number): readonly TopologyHint[] {
  const { topology } = policy;
  const nodes = nodeSums(topology, available, reusable);
  const must = nodesOf(topology, reusable);
  const found: { readonly mask: NumaMask; readonly sockets: number }[] = [];
  let fewest = nodes.length;
  const extend = (from: number, left: number, sum: NodeSum): void => {
    if (left === 0) {
      if (sum.cpus >= request) fewest = Math.min(fewest, countNodes(sum.bit));
      if ((sum.bit & must) === must && sum.matching >= request) found.push({ mask: sum.bit, sockets: sum.sockets });
      return;
    }
    for (let i = from; i <= nodes.length - left; i++) extend(i + 1, left - 1, plus(sum, nodes[i] as NodeSum));
  };
  for (let size = 1; size <= nodes.length; size++) extend(0, size, NONE);
  const fewestSockets = policy.options.alignBySocket ? socketsFor(topology, fewest) : -1;
  return found.map(({ mask, sockets }) => ({
    nodes: mask,
    preferred: countNodes(mask) === fewest || countNodes(sockets) === fewestSockets,
  }));
}
const NONE: NodeSum = { bit: 0, cpus: 0, matching: 0, sockets: 0 };
const plus = (a: NodeSum, b: NodeSum): NodeSum => ({
  bit: a.bit | b.bit,
  cpus: a.cpus + b.cpus,
  matching: a.matching + b.matching,
  sockets: a.sockets | b.sockets,
});

function nodeSums({ nodes, numa, sockets, positionOf }: CpuTopology, ...matching: CpuSet[]): readonly NodeSum[] {
  const counts = nodes.ids.map(() => 0);
  for (const cpu of matching.flatMap((set) => [...set])) {
    const node = nodes.of[positionOf.get(cpu) as number] as number;
    counts[node] = (counts[node] as number) + 1;
  }
  return nodes.ids.map((id, i) => {
    const members = nodes.members[i] as readonly number[];
    return {
      bit: numa.bitOf.get(id) as NumaMask,
      cpus: members.length,
      matching: counts[i] as number,
      // read only with align-by-socket, which requires no more sockets than nodes
      sockets: members.reduce((bits, position) => bits | (1 << (sockets.of[position] as number)), 0),
    };
  });
}

function nodesOf({ nodes, numa, positionOf }: CpuTopology, cpus: CpuSet): NumaMask {
  let mask = 0;
  for (const cpu of cpus) {
    const node = nodes.of[positionOf.get(cpu) as number] as number;
    mask |= numa.bitOf.get(nodes.ids[node] as number) as NumaMask;
  }
  return mask;
}

/**
 * The minimum number of sockets that this many NUMA nodes are on; -1: sockets are not considered. kubelet 1.36:
 * isHintSocketAligned.
 */
function socketsFor({ nodes, sockets }: CpuTopology, fewestNodes: number): number {
  const nodesPerSocket = Math.floor(nodes.ids.length / sockets.ids.length);
  return nodesPerSocket === 0 ? -1 : Math.ceil(fewestNodes / nodesPerSocket);
}

/** Tracks which container has which CPUs. kubelet 1.36: cpumanager.Manager. */
export interface CpuManager extends HintProvider {
  /** False with policy `none`. */
  readonly isManaging: boolean;
  /** The container's own CPUs; undefined: it runs in the shared pool. */
  cpusOf(uid: string, container: string): CpuSet | undefined;
  /** The assignments and the shared pool as they are now. */
  state(): CpuState;
  /**
   * Returns the CPUs that a container may still get exclusively: the shared pool without the reserved CPUs. None with
   * policy `none`.
   */
  available(): CpuSet;
  /** Releases a container's CPUs; CPUs that other containers of the pod hold stay assigned. */
  removeContainer(uid: string, container: string): void;
  /** Removes every container that none of the active pods has. kubelet 1.36: removeStaleState. */
  removeStale(active: Iterable<Pod>): void;
  allocatePod(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
}

/**
 * Creates a manager. `state`: from `startState`, since a kubelet does not start with an invalid one; it is not
 * changed. `podLevel`: the gate PodLevelResourceManagers.
 */
export function cpuManager(policy: CpuPolicy, state: CpuState, podLevel = false): CpuManager {
  return policy.name === "none" ? idleManager(state) : staticManager(policy, workingState(state), podLevel);
}

const NO_HINTS: ResourceHints = new Map();
const hints = (list: readonly TopologyHint[]): ResourceHints => new Map([["cpu", list]]);
const UNPLACEABLE = hints([]);
const uidOf = (pod: Pod): string => podUid(pod) ?? "";

/** The manager of policy `none`: it assigns nothing, and releases nothing that an earlier policy assigned. */
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
    state: () => copyState(state),
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

/**
 * Assigns CPUs to a pod with pod-level resources, and divides them: a container gets what it requests for itself, the
 * others share the rest. Only with pod scope and the gate PodLevelResourceManagers. After an error the pod's CPUs stay
 * out of the pool if there were enough. kubelet 1.36: staticPolicy.AllocatePod.
 */
function allocatePod(
  policy: StaticPolicy,
  state: WorkingState,
  uid: string,
  pod: Pod,
  affinity: TopologyHint,
): Result<void, AllocateError> {
  const count = podExclusiveCpus(pod, true);
  if (count === 0) return ok(undefined);
  const empty = sharedPoolFault(pod);
  if (empty !== undefined) return err({ reason: "EmptyPodSharedPoolError", message: empty });
  const fault = smtFault(policy, state.pool, count);
  if (fault !== undefined) return err(fault);
  const whole = takeFromPool(policy, state, NO_CPUS, count, affinity);
  if (!whole.ok) return whole;
  state.podCpus.set(uid, whole.value);
  const shares = sharesOf(policy, pod, whole.value);
  if (!shares.ok) return err({ message: shares.error });
  for (const { name } of containersOf(pod)) {
    assign(state, uid, name, shares.value.own.get(name) ?? shares.value.shared);
  }
  return ok(undefined);
}

interface Shares {
  readonly own: ReadonlyMap<string, CpuSet>;
  /** The pod's CPUs that all other containers share while the pod runs. */
  readonly shared: CpuSet;
}
function sharesOf(policy: StaticPolicy, pod: Pod, whole: CpuSet): Result<Shares, string> {
  const own = new Map<string, CpuSet>();
  let left = whole;
  for (const container of pod.spec.initContainers ?? []) {
    const count = exclusiveCpus(pod, container, true);
    const cpus = count > 0 ? takeCpus(policy, left, count) : ok(left);
    if (!cpus.ok) return cpus;
    // a container that ends before the next starts gets all CPUs that the sidecars so far do not hold
    if (count > 0 || !isSidecar(container)) own.set(container.name, cpus.value);
    if (count > 0 && isSidecar(container)) left = minus(left, cpus.value);
  }
  for (const container of pod.spec.containers) {
    const count = exclusiveCpus(pod, container, true);
    if (count === 0) continue;
    const cpus = takeCpus(policy, left, count);
    if (!cpus.ok) return cpus;
    own.set(container.name, cpus.value);
    left = minus(left, cpus.value);
  }
  return ok({ own, shared: left });
}

/** One container's request for CPUs. */
interface CpuAsk {
  readonly uid: string;
  readonly pod: Pod;
  readonly container: Container;
  readonly count: number;
  readonly affinity: TopologyHint;
}

/** Gives a container `count` CPUs, unless it has its CPUs already. kubelet 1.36: staticPolicy.Allocate. */
function allocateContainer(policy: StaticPolicy, state: WorkingState, ask: CpuAsk): Result<void, AllocateError> {
  const { uid, pod, container, count, affinity } = ask;
  let cpus = state.held.get(uid)?.get(container.name);
  // without keepsHeldCpus, a running container may fail after a kubelet restart
  const isKept = cpus !== undefined && policy.options.keepsHeldCpus;
  const fault = isKept ? undefined : smtFault(policy, state.pool, count);
  if (fault !== undefined) return err(fault);
  const left = reusable(state, uid);
  if (cpus === undefined) {
    const given = takeFromPool(policy, state, left, count, affinity);
    if (!given.ok) return given;
    cpus = given.value;
    assign(state, uid, container.name, cpus);
  }
  state.reuse = { uid, cpus: isOnlyInit(pod, container) ? union(left, cpus) : minus(left, cpus) };
  return ok(undefined);
}
/** Whether a container is an init container but no sidecar, which keeps running beside later containers. */
const isOnlyInit = ({ spec }: Pod, { name }: Container): boolean => {
  const init = spec.initContainers?.find((c) => c.name === name);
  return init !== undefined && !isSidecar(init);
};

/**
 * Takes CPUs from the pool and from `left`: as many as possible within the affinity, the rest anywhere. kubelet 1.36:
 * allocateCPUs.
 */
function takeFromPool(
  policy: StaticPolicy,
  state: WorkingState,
  left: CpuSet,
  count: number,
  { nodes }: TopologyHint,
): Result<CpuSet, AllocateError> {
  const allocatable = union(minus(state.pool, policy.reserved), left);
  const near = nodes === null ? NO_CPUS : nearCpus(policy, nodes, allocatable);
  const aligned = takeCpus(policy, near, Math.min(count, near.size));
  if (!aligned.ok) return err({ message: aligned.error });
  const rest = takeCpus(policy, minus(allocatable, aligned.value), count - aligned.value.size);
  if (!rest.ok) return err({ message: rest.error });
  const cpus = union(aligned.value, rest.value);
  state.pool = minus(state.pool, cpus);
  return ok(cpus);
}

/**
 * The CPUs within the affinity; with align-by-socket, all on the sockets of those nodes. kubelet 1.36: getAlignedCPUs.
 */
function nearCpus({ topology, options }: StaticPolicy, mask: NumaMask, allocatable: CpuSet): CpuSet {
  const { nodes, sockets, numa, positionOf } = topology;
  const bits = nodes.ids.map((id) => numa.bitOf.get(id) as NumaMask);
  const isNear = (position: number): boolean => ((bits[nodes.of[position] as number] as NumaMask) & mask) !== 0;
  const at = (cpu: number): number => positionOf.get(cpu) as number;
  if (!options.alignBySocket) return filtered(allocatable, (cpu) => isNear(at(cpu)));
  const near = new Set(sockets.of.filter((_, position) => isNear(position)));
  return filtered(allocatable, (cpu) => near.has(sockets.of[at(cpu)] as number));
}

/**
 * Why full-pcpus-only refuses this number of CPUs; undefined: it does not. Cores with a reserved CPU do not count as
 * free. kubelet 1.36: enforceSMTAlignment.
 */
function smtFault({ options, topology, reservedCores }: StaticPolicy, pool: CpuSet, count: number) {
  if (!options.fullPcpusOnly) return undefined;
  const perCore = topology.cpusPerCore;
  if (count % perCore !== 0) return fault(`requested ${count} cpus not multiple cpus per core = ${perCore}`);
  const free = minus(pool, reservedCores).size;
  if (count <= free) return undefined;
  return fault(
    `not enough free physical CPUs: available physical CPUs = ${free}, requested CPUs = ${count}, CPUs per core = ${perCore}`,
  );
}
const fault = (what: string): AllocateError => ({
  message: `SMT Alignment Error: ${what}`,
  reason: "SMTAlignmentError",
});

/** A `CpuState` that one decision changes, with what the manager remembers only during it. */
interface WorkingState {
  pool: CpuSet;
  readonly held: Map<string, Map<string, CpuSet>>;
  readonly podCpus: Map<string, CpuSet>;
  /** The CPUs that init containers of the current pod leave to later ones; forgotten when another pod is handled. */
  reuse: { readonly uid: string; readonly cpus: CpuSet };
}

/** Copies the state, to work on. */
const workingState = ({ defaultCpus, assignments, podCpus }: CpuState): WorkingState => ({
  pool: defaultCpus,
  held: new Map(Array.from(assignments, ([uid, containers]) => [uid, new Map(containers)])),
  podCpus: new Map(podCpus),
  reuse: { uid: "", cpus: NO_CPUS },
});
/** Copies the current state. */
const copyState = ({ pool, held, podCpus }: WorkingState): CpuState => ({
  defaultCpus: pool,
  assignments: new Map(Array.from(held, ([uid, containers]) => [uid, new Map(containers)])),
  podCpus: new Map(podCpus),
});

/** Records the container's CPUs; the caller has taken them out of the pool. */
function assign({ held }: WorkingState, uid: string, container: string, cpus: CpuSet): void {
  const containers = held.get(uid) ?? new Map<string, CpuSet>();
  held.set(uid, containers.set(container, cpus));
}

/**
 * Releases a container's CPUs, except those that others of its pod hold. CPUs of a pod as a whole are released with
 * its last container. kubelet 1.36: RemoveContainer.
 */
function release(state: WorkingState, uid: string, container: string): void {
  const { held, podCpus } = state;
  const containers = held.get(uid);
  const cpus = containers?.get(container);
  if (containers === undefined || cpus === undefined) return;
  containers.delete(container);
  if (containers.size === 0) held.delete(uid);
  const whole = podCpus.get(uid);
  if (whole === undefined) state.pool = union(state.pool, [...containers.values()].reduce(minus, cpus));
  else if (containers.size === 0) {
    state.pool = union(state.pool, whole);
    podCpus.delete(uid);
  }
}

/** The CPUs that the pod's init containers have left. */
const reusable = ({ reuse }: WorkingState, uid: string): CpuSet => (reuse.uid === uid ? reuse.cpus : NO_CPUS);
