import type { InputIssue } from "../../base/input-issue.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { machineIssues } from "../../model/decode.ts";
import type { Machine } from "../../model/machine.ts";
import { MAX_NUMA_NODES, type NumaNodes, numaNodes } from "../topology/hint.ts";
import type { CpuSet } from "./sets.ts";

/**
 * Cores, sockets, NUMA nodes or uncore caches. A CPU is identified by its position in `CpuTopology.cpus`, a group by
 * its index here.
 */
export interface CpuGroups {
  /** The groups' ids, ascending, so that the lower index has the lower id. */
  readonly ids: readonly number[];
  /** The group of each position. */
  readonly of: readonly number[];
  /** The positions of each group, ascending. */
  readonly members: readonly (readonly number[])[];
  /** The number of free CPUs at which the kubelet considers each group free. */
  readonly whole: readonly number[];
}

/** The online CPUs and their topology. kubelet 1.36: topology.CPUTopology. */
export interface CpuTopology {
  /** Ascending. */
  readonly cpus: readonly number[];
  readonly all: CpuSet;
  readonly positionOf: ReadonlyMap<number, number>;
  /** A core's id is its lowest CPU. */
  readonly cores: CpuGroups;
  readonly sockets: CpuGroups;
  /** The NUMA nodes that have CPUs. */
  readonly nodes: CpuGroups;
  /** All NUMA nodes of the machine, including those without CPUs. */
  readonly numa: NumaNodes;
  readonly caches: CpuGroups;
  /** Averages, rounded down; the kubelet uses nothing more exact. */
  readonly cpusPerCore: number;
  readonly cpusPerCache: number;
}

/**
 * The topology of `machine.cpus`, or its faults, each with the JSON path below `at`: a duplicate or missing CPU, a
 * core on two NUMA nodes. Core numbers are per socket, as in the kernel's files. kubelet 1.36: topology.Discover.
 */
export function cpuTopology(machine: Machine, at = "machine"): Result<CpuTopology, readonly InputIssue[]> {
  const issues = machineIssues(machine, at);
  if (issues.length > 0) return err(issues);
  const rows = (machine.cpus ?? []).toSorted((a, b) => a.cpu - b.cpu);
  // the kubelet's own words
  if (rows.length === 0) return err([{ path: `${at}.cpus`, message: "could not detect number of cpus" }]);
  const numa = numaNodes(new Set(machine.numaNodes?.map(({ id }) => id) ?? rows.map((row) => row.numa)));
  if (numa.ids.length > MAX_NUMA_NODES) {
    const path = machine.numaNodes === undefined ? `${at}.cpus` : `${at}.numaNodes`;
    return err([{ path, message: `has ${numa.ids.length} NUMA nodes; answered are at most ${MAX_NUMA_NODES}` }]);
  }
  return ok(fromRows(rows, numa));
}

type Row = NonNullable<Machine["cpus"]>[number];

/** `rows` ascending. */
function fromRows(rows: readonly Row[], numa: NumaNodes): CpuTopology {
  const cpus = rows.map((row) => row.cpu);
  const coreIds = lowestOfCores(rows);
  const sockets = groups(rows.map((row) => row.socket));
  const cores = groups(coreIds);
  // a machine without cache data counts as having one cache per socket
  const caches = groups(rows.map((row) => row.uncoreCache ?? row.socket));
  const cpusPerCore = average(cpus, cores);
  return {
    cpus,
    all: new Set(cpus),
    positionOf: new Map(cpus.map((cpu, position) => [cpu, position])),
    cores: { ...cores, whole: cores.ids.map(() => cpusPerCore) },
    sockets: { ...sockets, whole: sockets.ids.map(() => average(cpus, sockets)) },
    nodes: groups(rows.map((row) => row.numa)),
    numa,
    caches,
    cpusPerCore,
    cpusPerCache: average(cpus, caches),
  };
}
const average = (cpus: readonly number[], { ids }: CpuGroups): number => Math.floor(cpus.length / ids.length);

/** kubelet 1.36: getUniqueCoreID. */
function lowestOfCores(rows: readonly Row[]): readonly number[] {
  const lowest = new Map<string, number>();
  return rows.map(({ cpu, core, socket }) => {
    const key = `${socket}/${core}`;
    const known = lowest.get(key);
    if (known === undefined) lowest.set(key, cpu);
    return known ?? cpu;
  });
}

/** Groups positions. `idOf`: the group's id by position. */
function groups(idOf: readonly number[]): CpuGroups {
  const ids = [...new Set(idOf)].sort((a, b) => a - b);
  const index = new Map(ids.map((id, i) => [id, i]));
  const of = idOf.map((id) => index.get(id) as number);
  const members: number[][] = ids.map(() => []);
  for (const [position, group] of of.entries()) members[group]?.push(position);
  return { ids, of, members, whole: members.map((list) => list.length) };
}

/** The CPUs of the given positions. */
export const cpusAt = ({ cpus }: CpuTopology, positions: Iterable<number>): CpuSet => {
  const set = new Set<number>();
  for (const position of positions) set.add(cpus[position] as number);
  return set;
};
