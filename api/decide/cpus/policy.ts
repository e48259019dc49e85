import { type Amount, isZero, milliValue } from "../../model/amount.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { parseCpus } from "./go-cpu-set.ts";
import { BY_SOCKET, type OptionGates, type StaticOptions, staticOptions } from "./options.ts";
import { type CpuSet, cpuText, holdsAll, minus, NO_CPUS } from "./sets.ts";
import { takeDistributed } from "./take-distributed.ts";
import { takePacked } from "./take-packed.ts";
import { type CpuTopology, cpusAt } from "./topology.ts";

export interface StaticPolicy {
  readonly name: "static";
  readonly topology: CpuTopology;
  readonly options: StaticOptions;
  /** Never given to one container alone. */
  readonly reserved: CpuSet;
  /** Those and the other threads of their cores. */
  readonly reservedCores: CpuSet;
}
export type CpuPolicy = StaticPolicy | { readonly name: "none" };

interface Setting {
  readonly topology: CpuTopology;
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
  /** `topologyManagerPolicy`. */
  readonly topologyPolicy: string;
}
export interface CpuPolicySetting extends Setting {
  /** `cpuManagerPolicy`. */
  readonly policy: string;
  /** CPUs of systemReserved and kubeReserved together. */
  readonly reservedCpu: Amount;
  /** `reservedSystemCPUs`; empty: not set. It takes the place of `reservedCpu`. */
  readonly reservedSystemCpus: string;
}

/** The policy of a kubelet's configuration; the error is what keeps it from starting. kubelet 1.36: NewManager. */
export function cpuPolicy(setting: CpuPolicySetting): Result<CpuPolicy, string> {
  const { policy, topology, reservedSystemCpus, reservedCpu } = setting;
  const named = systemCpus(reservedSystemCpus, topology);
  if (!named.ok) return named;
  if (policy === "none") return nonePolicy(setting.options);
  if (policy !== "static") return err(`unknown policy: "${policy}"`);
  // a reserve of zero is left out of the sums that the kubelet looks at, so its words about zero are never said
  if (named.value.size === 0 && isZero(reservedCpu)) {
    return err(NO_RESERVED_CPU);
  }
  const numReserved = named.value.size > 0 ? named.value.size : Math.ceil(milliValue(reservedCpu) / 1000);
  const made = staticPolicy({ ...setting, numReserved, reserved: named.value });
  return made.ok ? made : err(newStaticPolicyError(made.error));
}

export const newStaticPolicyError = (why: string): string => `new static policy error: ${why}`;
export const NO_RESERVED_CPU = "[cpumanager] unable to determine reserved CPU resources for static policy";

/** `none` has no options. kubelet 1.36: NewNonePolicy. */
export function nonePolicy(options: Readonly<Record<string, string>>): Result<CpuPolicy, string> {
  const list = Object.keys(options).sort();
  if (list.length === 0) return ok({ name: "none" });
  const shown = list.map((name) => `${name}:${options[name]}`).join(" ");
  return err(`new none policy error: None policy: received unsupported options=map[${shown}]`);
}

/** `reservedSystemCPUs`, whatever the policy. kubelet 1.36: getReservedCPUs. */
function systemCpus(text: string, { all }: CpuTopology): Result<CpuSet, string> {
  const cpus = parseCpus(text);
  if (!cpus.ok) return err(`unable to parse reserved-cpus list: ${cpus.error}`);
  if (holdsAll(all, cpus.value)) return cpus;
  return err(`reserved-cpus: ${text} is not a subset of online-cpus: ${cpuText(all)}`);
}

export interface StaticSetting extends Setting {
  readonly numReserved: number;
  /** Empty: the policy chooses as many as it needs. */
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

/** `count` of the available CPUs, the way the options say. kubelet 1.36: takeByTopology. */
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
  return takeDistributed(topology, available, count, { group, spread });
}
