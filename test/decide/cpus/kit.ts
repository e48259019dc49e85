import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type CpuManager, cpuManager } from "../../../api/decide/cpus/manager.ts";
import {
  type CpuPolicy,
  nonePolicy,
  type StaticPolicy,
  type StaticSetting,
  staticPolicy,
} from "../../../api/decide/cpus/policy.ts";
import { cpuText } from "../../../api/decide/cpus/sets.ts";
import { freshState, startState } from "../../../api/decide/cpus/start.ts";
import { type CpuTopology, cpuTopology } from "../../../api/decide/cpus/topology.ts";
import { ANY_NODE, type TopologyHint } from "../../../api/decide/topology/hint.ts";
import { formatCpuSet, gapsIn, parseCpuSet } from "../../../api/model/cpu-set.ts";
import { type Machine, machine } from "../../../api/model/machine.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { container, sidecar } from "../../kit/containers.ts";
import { decodedPod, namedPod } from "../../kit/pods.ts";
import { ALL_OPTIONS } from "../../kit/profiles.ts";
import type { Json } from "../../kit/snapshots.ts";

type Row = NonNullable<Machine["cpus"]>[number];

/** A topology with these CPUs; missing numbers are offline CPUs. */
export function topologyOf(cpus: readonly Row[]): CpuTopology {
  const offlineCpus = formatCpuSet(gapsIn(cpus.map(({ cpu }) => cpu)));
  const topology = cpuTopology(machine.parse({ cpus, offlineCpus }));
  if (!topology.ok) throw new Error(JSON.stringify(topology.error));
  return topology.value;
}

interface Shape {
  readonly sockets?: number;
  /** The total number. */
  readonly nodes?: number;
  readonly caches?: number;
  /** The total number; each core has two threads, the second with a CPU number that is higher by `cores`. */
  readonly cores: number;
  readonly threads?: number;
}
/** A usual machine, on which all sockets, NUMA nodes and caches have the same size. */
export function evenMachine({ sockets = 1, nodes = sockets, caches = nodes, cores, threads = 2 }: Shape): CpuTopology {
  const rows = Array.from({ length: cores * threads }, (_, cpu): Row => {
    const core = cpu % cores;
    const of = (groups: number): number => Math.floor((core * groups) / cores);
    return { cpu, core, socket: of(sockets), numa: of(nodes), uncoreCache: of(caches) };
  });
  return topologyOf(rows);
}

export const cpus = (text: string): ReadonlySet<number> => new Set(parseCpuSet(text));

/** A static policy with CPU 0 reserved and the options of these names. */
export function policyOn(
  topology: CpuTopology,
  options: readonly string[] = [],
  setting: Partial<StaticSetting> = {},
): StaticPolicy {
  const policy = staticPolicy({
    topology,
    options: Object.fromEntries(options.map((name) => [name, "true"])),
    gates: ALL_OPTIONS,
    topologyPolicy: "none",
    numReserved: 1,
    reserved: cpus(""),
    ...setting,
  });
  if (!policy.ok) throw new Error(policy.error);
  return policy.value;
}
export function nonePolicyOf(): CpuPolicy {
  const policy = nonePolicy({});
  if (!policy.ok) throw new Error(policy.error);
  return policy.value;
}
export const freshManager = (policy: StaticPolicy): CpuManager => cpuManager(policy, freshState(policy));
/** A manager whose state file contains this pool and these CPUs, by pod and container. */
export function managerWith(
  policy: StaticPolicy,
  defaultCpuSet: string,
  entries: Readonly<Record<string, Readonly<Record<string, string>>>>,
): CpuManager {
  const state = startState({
    policy,
    file: JSON.stringify({ policyName: "static", defaultCpuSet, entries }),
    profile: NEWEST,
    podLevel: false,
  });
  if (!state.ok) throw new Error(state.error);
  return cpuManager(policy, state.value);
}

/** The CPUs requested by each container; names of init containers end in `-init`, names of sidecars in `-side`. */
export function cpuPod(uid: string, asked: Readonly<Record<string, number | string>>, more: object = {}): Pod {
  const all = Object.entries(asked).map(([name, cpu]) => {
    const amounts = { cpu: String(cpu), memory: "1Gi" };
    return name.endsWith("-side") ? sidecar(name, amounts, amounts) : container(name, amounts, amounts);
  });
  const isInit = ({ name }: Json): boolean => /-(?:init|side)$/.test(String(name));
  const initContainers = all.filter(isInit);
  const containers = all.filter((c) => !isInit(c));
  return decodedPod({ ...namedPod(uid, containers, { initContainers }), ...more });
}

/** Allocates CPUs to each container until one fails; returns that error's message. */
export function admit(manager: CpuManager, pod: Pod, hint: TopologyHint = ANY_NODE): string | undefined {
  for (const container of containersOf(pod)) {
    const given = manager.allocate(pod, container, hint);
    if (!given.ok) return given.error.message;
  }
  return undefined;
}
/** The CPUs of each `pod/container`, and the shared pool. */
export function shown(manager: CpuManager): Readonly<Record<string, string>> {
  const { assignments, defaultCpus } = manager.state();
  const held = [...assignments].flatMap(([uid, containers]) =>
    Array.from(containers, ([name, set]) => [`${uid}/${name}`, cpuText(set)] as const),
  );
  return { ...Object.fromEntries(held), pool: cpuText(defaultCpus) };
}

/** The cases in a file of recorded answers. */
export function linesOf<Case>(file: string): readonly Case[] {
  const text = gunzipSync(readFileSync(join(import.meta.dirname, "../../data/cpu-manager", file))).toString();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Case);
}
