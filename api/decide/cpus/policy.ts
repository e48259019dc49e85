import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, isZero, milliValue } from "../../model/amount.ts";
import type { OptionGates } from "../../profiles/profile.ts";
import { BY_SOCKET, type StaticOptions, staticOptions } from "./options.ts";
import { type CpuSet, cpuText, holdsAll, minus, NO_CPUS, parseCpus } from "./sets.ts";
import { endlessSearchMessage, type Spread, spreadSearch } from "./spread.ts";
import { type CpuGroups, type CpuTopology, cpusAt } from "./topology.ts";

export interface StaticPolicy {
  readonly name: "static";
  readonly topology: CpuTopology;
  readonly options: StaticOptions;
  /** CPUs that are never assigned exclusively. */
  readonly reserved: CpuSet;
  /** The reserved CPUs and the other threads of their cores. */
  readonly reservedCores: CpuSet;
}
export type CpuPolicy = StaticPolicy | { readonly name: "none" };

interface Setting {
  readonly topology: CpuTopology;
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
  /** The setting `topologyManagerPolicy`. */
  readonly topologyPolicy: string;
}
export interface CpuPolicySetting extends Setting {
  /** The setting `cpuManagerPolicy`. */
  readonly policy: string;
  /** The CPU of systemReserved and kubeReserved together. */
  readonly reservedCpu: Amount;
  /** The setting `reservedSystemCPUs`, which replaces `reservedCpu`; empty: not set. */
  readonly reservedSystemCpus: string;
}

/** The policy that a configuration selects; the error says why the kubelet does not start. kubelet 1.36: NewManager. */
export function cpuPolicy(setting: CpuPolicySetting): Result<CpuPolicy, string> {
  const { policy, topology, reservedSystemCpus, reservedCpu } = setting;
  const named = systemCpus(reservedSystemCpus, topology);
  if (!named.ok) return named;
  if (policy === "none") return nonePolicy(setting.options);
  if (policy !== "static") return err(`unknown policy: "${policy}"`);
  // the kubelet leaves a reserve of zero out of its sums, so its message about zero never appears
  if (named.value.size === 0 && isZero(reservedCpu)) {
    return err(NO_RESERVED_CPU);
  }
  const numReserved = named.value.size > 0 ? named.value.size : Math.ceil(milliValue(reservedCpu) / 1000);
  const made = staticPolicy({ ...setting, numReserved, reserved: named.value });
  return made.ok ? made : err(newStaticPolicyError(made.error));
}

export const newStaticPolicyError = (why: string): string => `new static policy error: ${why}`;
export const NO_RESERVED_CPU = "[cpumanager] unable to determine reserved CPU resources for static policy";

/** Policy `none`, which has no options. kubelet 1.36: NewNonePolicy. */
export function nonePolicy(options: Readonly<Record<string, string>>): Result<CpuPolicy, string> {
  const list = Object.keys(options).sort();
  if (list.length === 0) return ok({ name: "none" });
  const shown = list.map((name) => `${name}:${options[name]}`).join(" ");
  return err(`new none policy error: None policy: received unsupported options=map[${shown}]`);
}

/** The CPUs of `reservedSystemCPUs`, for any policy. kubelet 1.36: getReservedCPUs. */
function systemCpus(text: string, { all }: CpuTopology): Result<CpuSet, string> {
  const cpus = parseCpus(text);
  if (!cpus.ok) return err(`unable to parse reserved-cpus list: ${cpus.error}`);
  if (holdsAll(all, cpus.value)) return cpus;
  return err(`reserved-cpus: ${text} is not a subset of online-cpus: ${cpuText(all)}`);
}

export interface StaticSetting extends Setting {
  readonly numReserved: number;
  /** The reserved CPUs; empty: the policy chooses as many as it needs. */
  readonly reserved: CpuSet;
}
/** kubelet 1.36: NewStaticPolicy. */
export function staticPolicy(setting: StaticSetting): Result<StaticPolicy, string> {
  const { topology, numReserved } = setting;
  const options = staticOptions(setting.options, setting.gates);
  if (!options.ok) return options;
  const unfit = options.value.alignBySocket
    ? (unfitForTopology(setting.topologyPolicy) ?? unfitForSockets(topology))
    : undefined;
  if (unfit !== undefined) return err(unfit);
  const reserved = setting.reserved.size > 0 ? setting.reserved : chosen(topology, options.value, numReserved);
  if (reserved.size !== numReserved) {
    return err(
      `[cpumanager] unable to reserve the required amount of CPUs (size of ${cpuText(reserved)} did not equal ${numReserved})`,
    );
  }
  const [unknown] = minus(reserved, topology.all);
  if (unknown !== undefined) {
    return err(
      `[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: ${unknown}`,
    );
  }
  const reservedCores = coresOf(topology, reserved);
  return ok({ name: "static", topology, options: options.value, reserved, reservedCores });
}
function chosen(topology: CpuTopology, options: StaticOptions, count: number): CpuSet {
  const taken = takeCpus({ topology, options }, topology.all, count);
  return taken.ok ? taken.value : NO_CPUS;
}

/** kubelet 1.36: ValidateStaticPolicyOptions. */
export function unfitForTopology(topologyPolicy: string): string | undefined {
  if (topologyPolicy !== "single-numa-node") return undefined;
  return `Topolgy manager ${topologyPolicy} policy is incompatible with CPUManager ${BY_SOCKET} policy option`;
}
function unfitForSockets({ sockets, nodes }: CpuTopology): string | undefined {
  if (sockets.ids.length <= nodes.ids.length) return undefined;
  return "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA";
}

function coresOf(topology: CpuTopology, cpus: CpuSet): CpuSet {
  const { cores, positionOf } = topology;
  const indexes = new Set([...cpus].map((cpu) => cores.of[positionOf.get(cpu) as number] as number));
  return cpusAt(
    topology,
    [...indexes].flatMap((core) => cores.members[core] as readonly number[]),
  );
}

/** Takes `count` of the available CPUs as the options require. kubelet 1.36: takeByTopology. */
export function takeCpus(
  { topology, options }: Pick<StaticPolicy, "topology" | "options">,
  available: CpuSet,
  count: number,
): Result<CpuSet, string> {
  const spread = options.distributeAcrossCores;
  if (!options.distributeAcrossNuma) {
    return takePacked(topology, available, count, { spread, byCache: options.preferUncoreCache });
  }
  const group = options.fullPcpusOnly ? topology.cpusPerCore : 1;
  return takeDistributed(topology, available, count, { group, spread, bySocket: options.distributesBySocket });
}

interface Distribution {
  /** The size of the groups in which CPUs are assigned. */
  readonly group: number;
  readonly spread: boolean;
  /** True: nodes of one socket come first. */
  readonly bySocket: boolean;
}

/**
 * Takes `count` of the available CPUs from as few NUMA nodes as possible, an equal share from each; packs them if that
 * is not possible. kubelet 1.36: takeByTopologyNUMADistributed.
 */
function takeDistributed(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  { group, spread, bySocket }: Distribution,
): Result<CpuSet, string> {
  const packed = () => takePacked(topology, available, count, { spread, byCache: false });
  if (count % group !== 0) return packed();
  if (count < 1) return ok(NO_CPUS);
  const accumulator = newAccumulator(topology, available, count);
  if (freeCount(accumulator) < count) return err(notEnough(count, available));
  const nodes = inOrder(accumulator, topology.nodes);
  const inOneSocket = bySocket ? (chosen: readonly number[]) => areInOneSocket(topology, chosen) : undefined;
  const search = spreadSearch({ nodes, free: freeIn(accumulator, topology.nodes), count, group, inOneSocket });
  const groups = Math.ceil(count / group);
  const groupsPerNode = Math.ceil(Math.ceil(topology.cpus.length / group) / topology.nodes.ids.length);
  const most = Math.min(groups, new Set(nodes).size);
  for (let size = Math.ceil(groups / groupsPerNode); size <= most; size++) {
    const found = search(size);
    if (!found.ok) return found;
    if (found.value !== undefined) return takeSpread(accumulator, found.value, { group, spread, bySocket });
  }
  return packed();
}

/** kubelet 1.37: AreNUMANodesInSameSocket. */
function areInOneSocket({ nodes, sockets }: CpuTopology, chosen: readonly number[]): boolean {
  const touched = chosen.flatMap((node) => (nodes.members[node] as readonly number[]).map((cpu) => sockets.of[cpu]));
  return new Set(touched).size <= 1;
}

function takeSpread(
  accumulator: CpuAccumulator,
  { nodes, share, remainder }: Spread,
  how: Distribution,
): Result<CpuSet, string> {
  let rest = accumulator.needed - share * nodes.length;
  for (const node of nodes) takeOfNode(accumulator, node, share, how.spread);
  while (rest > 0) {
    const before = rest;
    for (const node of remainder) {
      if (rest === 0) break;
      if (freeOf(accumulator, accumulator.topology.nodes.members[node] as readonly number[]).length < how.group)
        continue;
      takeOfNode(accumulator, node, how.group, how.spread);
      rest -= how.group;
    }
    if (rest === before) return err(endlessSearchMessage(rest, how.group));
  }
  if (accumulator.needed === 0) return ok(accumulator.taken);
  const fault = accumulator.needed > 0 ? "not enough" : "too many";
  return err(`accounting error, ${fault} CPUs allocated, remaining: ${accumulator.needed}`);
}

/** Takes CPUs of a node; if it has too few, takes nothing, and the total stays short. */
function takeOfNode(accumulator: CpuAccumulator, node: number, count: number, spread: boolean): void {
  const { topology } = accumulator;
  const free = freeOf(accumulator, topology.nodes.members[node] as readonly number[]);
  const cpus = takePacked(topology, cpusAt(topology, free), count, { spread, byCache: false });
  if (!cpus.ok) return;
  take(
    accumulator,
    [...cpus.value].map((cpu) => topology.positionOf.get(cpu) as number),
  );
}

interface Packing {
  /** True: takes threads one by one over as many cores as possible, instead of whole cores. */
  readonly spread: boolean;
  /** True: takes whole uncore caches before whole cores, then a cache with room for the rest. */
  readonly byCache: boolean;
}

/**
 * Takes `count` of the available CPUs close together: whole sockets and NUMA nodes, then whole cores, then threads; at
 * each level where the fewest CPUs are free. The error is the kubelet's. kubelet 1.36: takeByTopologyNUMAPacked.
 */
function takePacked(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  { spread, byCache }: Packing,
): Result<CpuSet, string> {
  if (count < 1) return ok(NO_CPUS);
  const accumulator = newAccumulator(topology, available, count);
  if (freeCount(accumulator) < count) return err(notEnough(count, available));
  const { outer, inner } = levelsOf(topology);
  takeWhole(accumulator, outer, outerInOrder);
  takeWhole(accumulator, inner, innerInOrder);
  if (accumulator.needed > 0 && byCache) takeCaches(accumulator);
  if (!spread) takeWhole(accumulator, topology.cores, coresInOrder);
  if (accumulator.needed > 0) takeRest(accumulator, spread);
  return accumulator.needed > 0 ? err("failed to allocate cpus") : ok(accumulator.taken);
}
/** The kubelet's message if more CPUs are requested than available. */
const notEnough = (requested: number, available: CpuSet): string =>
  `not enough cpus available to satisfy request: requested=${requested}, available=${available.size}`;

/**
 * Takes as many whole groups as needed. If cores or sockets differ in size, the kubelet considers a group free if it
 * has as many free CPUs as the average group, and then takes all its CPUs, including those that others hold.
 */
function takeWhole(
  accumulator: CpuAccumulator,
  groups: CpuGroups,
  order: (accumulator: CpuAccumulator) => readonly number[],
): void {
  const counts = freeIn(accumulator, groups);
  const sizeOf = (group: number): number => (groups.members[group] as readonly number[]).length;
  const isWhole = (group: number): boolean =>
    counts[group] === groups.whole[group] && sizeOf(group) <= accumulator.needed;
  // skips the sort if no group is whole
  if (!counts.some((_, group) => isWhole(group))) return;
  for (const group of order(accumulator).filter(isWhole)) {
    if (sizeOf(group) <= accumulator.needed) take(accumulator, groups.members[group] as readonly number[]);
  }
}

/** kubelet 1.36: takeUncoreCache. */
function takeCaches(accumulator: CpuAccumulator): void {
  const { caches, cpusPerCache } = accumulator.topology;
  const order = cachesInOrder(accumulator);
  if (accumulator.needed >= cpusPerCache) takeWhole(accumulator, caches, () => order);
  for (const cache of order) {
    if (accumulator.needed < 1) return;
    takeInCache(accumulator, cache);
  }
}

/**
 * Takes all the rest from one cache, cores of the lowest number first, or takes nothing. kubelet 1.36:
 * takePartialUncore.
 */
function takeInCache(accumulator: CpuAccumulator, cache: number): void {
  const { caches, cores, cpusPerCore } = accumulator.topology;
  const inCache = freeOf(accumulator, caches.members[cache] as readonly number[]);
  const coresThere = [...new Set(inCache.map((position) => cores.of[position] as number))].sort((a, b) => a - b);
  const chosen = coresThere.slice(0, Math.ceil(accumulator.needed / cpusPerCore));
  let cpus = chosen.flatMap((core) => freeOf(accumulator, cores.members[core] as readonly number[]));
  if (accumulator.needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > accumulator.needed) {
    cpus = cpus.sort((a, b) => a - b).slice(0, -1);
  }
  if (cpus.length === accumulator.needed) take(accumulator, cpus);
}

function takeRest(accumulator: CpuAccumulator, spread: boolean): void {
  for (const position of cpusInOrder(accumulator, spread)) {
    take(accumulator, [position]);
    if (accumulator.needed < 1) return;
  }
}

/** The CPUs taken for one request. kubelet 1.36: cpuAccumulator. */
interface CpuAccumulator {
  readonly topology: CpuTopology;
  /** 1 for each CPU that is free to take, by position. */
  readonly free: Uint8Array;
  /** Ids of the CPUs taken so far. */
  readonly taken: Set<number>;
  /** The number of CPUs still to take. */
  needed: number;
}

/** Starts a request for `needed` CPUs. `available`: ids; those that the machine does not have are ignored. */
function newAccumulator(topology: CpuTopology, available: CpuSet, needed: number): CpuAccumulator {
  const free = new Uint8Array(topology.cpus.length);
  for (const cpu of available) {
    const position = topology.positionOf.get(cpu);
    if (position !== undefined) free[position] = 1;
  }
  return { topology, free, taken: new Set(), needed };
}
/** The number of CPUs that are free to take. */
function freeCount({ free }: CpuAccumulator): number {
  let count = 0;
  for (const one of free) count += one;
  return count;
}

/** Takes CPUs. INVARIANT: as in the kubelet, CPUs that were taken before count again. */
function take(accumulator: CpuAccumulator, positions: readonly number[]): void {
  for (const position of positions) {
    accumulator.free[position] = 0;
    accumulator.taken.add(accumulator.topology.cpus[position] as number);
  }
  accumulator.needed -= positions.length;
}

/** Free CPUs of each group. */
function freeIn({ free }: CpuAccumulator, { members }: CpuGroups): number[] {
  return members.map((positions) => {
    let count = 0;
    for (const position of positions) count += free[position] as number;
    return count;
  });
}
/** The free ones of the positions, in the same order. */
const freeOf = ({ free }: CpuAccumulator, positions: readonly number[]): number[] =>
  positions.filter((position) => free[position] === 1);

/** The kubelet's order of groups: fewest free CPUs first, then the lower id. `groups` ascending. */
const fewestFirst = (counts: readonly number[], groups: number[]): number[] =>
  groups.sort((a, b) => (counts[a] as number) - (counts[b] as number));

/**
 * For each group of `outer`, in order, the groups of `inner` that share a free CPU with it. An inner group that spans
 * two outer ones occurs twice.
 */
function nested(accumulator: CpuAccumulator, outer: CpuGroups, inner: CpuGroups): number[][] {
  const inside: number[][] = outer.ids.map(() => []);
  for (const [group, positions] of inner.members.entries()) {
    for (const position of positions) {
      if (accumulator.free[position] === 0) continue;
      const groups = inside[outer.of[position] as number] as number[];
      if (groups.at(-1) !== group) groups.push(group);
    }
  }
  const counts = freeIn(accumulator, inner);
  return inside.map((groups) => fewestFirst(counts, groups));
}
function within(accumulator: CpuAccumulator, outer: CpuGroups, order: readonly number[], inner: CpuGroups): number[] {
  const inside = nested(accumulator, outer, inner);
  return order.flatMap((group) => inside[group] as number[]);
}

/** Which of sockets and NUMA nodes contains the other: the level with fewer groups is the outer one. */
const levelsOf = ({ sockets, nodes }: CpuTopology): { outer: CpuGroups; inner: CpuGroups } =>
  sockets.ids.length >= nodes.ids.length ? { outer: nodes, inner: sockets } : { outer: sockets, inner: nodes };

/** Groups of the outer level with free CPUs, in the kubelet's order. kubelet 1.36: sortAvailableNUMANodes, -Sockets. */
function outerInOrder(accumulator: CpuAccumulator): number[] {
  const counts = freeIn(accumulator, levelsOf(accumulator.topology).outer);
  const there = [...counts.keys()].filter((group) => counts[group] !== 0);
  return fewestFirst(counts, there);
}
/** Groups of the inner level, outer group by outer group. */
function innerInOrder(accumulator: CpuAccumulator): number[] {
  const { outer, inner } = levelsOf(accumulator.topology);
  return within(accumulator, outer, outerInOrder(accumulator), inner);
}
/** The groups' indexes at their level (`nodes` or `sockets`), in the kubelet's order. */
const inOrder = (accumulator: CpuAccumulator, groups: CpuGroups): number[] =>
  groups === levelsOf(accumulator.topology).outer ? outerInOrder(accumulator) : innerInOrder(accumulator);

/** Uncore caches, grouped by NUMA node. kubelet 1.36: sortAvailableUncoreCaches. */
function cachesInOrder(accumulator: CpuAccumulator): number[] {
  const { nodes, caches } = accumulator.topology;
  return within(accumulator, nodes, inOrder(accumulator, nodes), caches);
}
/** Cores, grouped by inner group. kubelet 1.36: sortAvailableCores. */
function coresInOrder(accumulator: CpuAccumulator): number[] {
  const { topology } = accumulator;
  return within(accumulator, levelsOf(topology).inner, innerInOrder(accumulator), topology.cores);
}

/**
 * Free positions, core by core; with `spread`, socket by socket in the order of numbers, which on most machines
 * alternates between cores.
 */
function cpusInOrder(accumulator: CpuAccumulator, spread: boolean): number[] {
  const { cores, sockets } = accumulator.topology;
  const groups = spread ? sockets : cores;
  const order = spread ? inOrder(accumulator, sockets) : coresInOrder(accumulator);
  return order.flatMap((group) => freeOf(accumulator, groups.members[group] as readonly number[]));
}
