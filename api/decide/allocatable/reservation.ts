import { err, ok, type Result } from "../../base/result.ts";
import { fromNanos, milliValue, toNanos, value } from "../../model/amount.ts";
import type { CgroupValues, NodeLevelReason } from "../../model/cgroups.ts";
import { countCpus, cpuSetFault } from "../../model/cpu-set.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Quantity, quantityOf, unitsQuantity } from "../../model/quantity.ts";
import { type Bytes, bytes } from "../../model/units.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import { parseThreshold, thresholdQuantity } from "../eviction/threshold.ts";
import { hugePageLimits } from "../hugepages.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { milliCpuToShares } from "../resources/cpu-convert.ts";

export interface Reserved {
  readonly kube: ResourceList;
  readonly system: ResourceList;
}

/** kubelet 1.36: parseResourceList. */
export const RESERVABLE: readonly string[] = ["cpu", "memory", "ephemeral-storage", "pid"];

export const cannotReserve = (name: string): string => `cannot reserve "${name}" resource`;

/** Rounds millionths of a CPU up, as the kubelet does. kubelet 1.37: parseResourceList. */
function roundedCpu(reserve: ResourceList): ResourceList {
  const { cpu } = reserve;
  // whole thousandths, the usual case, need no rounding
  if (cpu === undefined || typeof cpu.amount === "number") return reserve;
  const micros = (toNanos(cpu.amount) + 999n) / 1000n;
  return { ...reserve, cpu: quantityOf(fromNanos(((micros + 500n) / 1000n) * 1_000_000n), cpu.format) };
}

/** kubeReserved and systemReserved; reservedSystemCPUs replaces the cpu of both. kubelet 1.36: cmd/kubelet/app run. */
export function reservedOf(config: EffectiveConfiguration): Result<Reserved, string> {
  const { reservedSystemCPUs: list, profile } = config;
  const round = profile.behaviour.roundsReservedCpu ? roundedCpu : (reserve: ResourceList) => reserve;
  const [kube, system] = [round(config.kubeReserved), round(config.systemReserved)];
  for (const [field, reserve] of [
    ["kubeReserved", kube],
    ["systemReserved", system],
  ] as const) {
    const odd = Object.keys(reserve).find((name) => !RESERVABLE.includes(name));
    if (odd !== undefined) return err(`kubeletConfiguration.${field}: ${cannotReserve(odd)}`);
  }
  if (list === "") return ok({ kube, system });
  const cpus = countCpus(list);
  if (cpus === undefined) {
    return err(`kubeletConfiguration.reservedSystemCPUs: \`${list.slice(0, 100)}\` ${cpuSetFault(list)}`);
  }
  const { cpu: _dropped, ...kubeWithoutCpu } = kube;
  return ok({ kube: kubeWithoutCpu, system: { ...system, cpu: unitsQuantity(cpus, "DecimalSI") } });
}

const EVICTION_RESOURCE: Readonly<Record<string, string>> = {
  "memory.available": "memory",
  "nodefs.available": "ephemeral-storage",
};

/** Computes the memory and ephemeral-storage that hard eviction reserves. kubelet 1.36: hardEvictionReservation. */
export function evictionReservation(
  config: EffectiveConfiguration,
  capacity: ReadonlyMap<string, Quantity>,
): Result<Map<string, Quantity>, string> {
  const reserved = new Map<string, Quantity>();
  for (const [signal, text] of Object.entries(config.evictionHard)) {
    const threshold = parseThreshold(signal, text);
    if (!threshold.ok) return err(`kubeletConfiguration.evictionHard: ${threshold.error}`);
    const resource = EVICTION_RESOURCE[signal];
    if (resource === undefined || threshold.value === null) continue;
    reserved.set(resource, thresholdQuantity(threshold.value, capacity.get(resource)?.amount ?? 0));
  }
  return ok(reserved);
}

type Quantities = ReadonlyMap<string, Quantity>;

/** The cgroup values of a list of node-level resources. kubelet 1.36: getCgroupConfigInternal. */
export function nodeCgroupValues(
  list: Quantities,
  compressibleOnly: boolean,
  at: string,
  reasons: ReasonRecorder<NodeLevelReason>,
): CgroupValues {
  const values: { -readonly [K in keyof CgroupValues]: CgroupValues[K] } = {};
  const cpu = list.get("cpu");
  if (cpu !== undefined) {
    values.cpuShares = milliCpuToShares(milliValue(cpu.amount));
    reasons.add("shares_from_cpu", at, "cpuShares", { milliCpu: milliValue(cpu.amount), cpuShares: values.cpuShares });
  }
  if (compressibleOnly) return values;
  const memory = list.get("memory");
  if (memory !== undefined) {
    values.memory = bytes(value(memory.amount));
    reasons.add("limit_from_memory", at, "memory", { bytes: values.memory });
  }
  const pid = list.get("pid");
  if (pid !== undefined) {
    values.pidsLimit = value(pid.amount);
    reasons.add("limit_from_process_ids", at, "pidsLimit", { pidsLimit: values.pidsLimit });
  }
  const hugePages: Record<string, Bytes> | undefined = hugePageLimits(list, ({ amount }) => amount);
  if (hugePages !== undefined) values.hugePageLimit = hugePages;
  return values;
}

interface Enforcement {
  readonly key: string;
  /** The cgroup as configured: a cgroupfs path, or a slice under the systemd driver. */
  readonly cgroup: string;
  readonly values: CgroupValues;
}

/** The kube-reserved and system-reserved cgroups that enforceNodeAllocatable asks for. kubelet 1.36: enforceNodeAllocatableCgroups. */
export function reservedEnforcements(
  config: EffectiveConfiguration,
  reserved: Reserved,
  reasons: ReasonRecorder<NodeLevelReason>,
  pathOf: (cgroup: string) => string = (cgroup) => cgroup,
): readonly Enforcement[] {
  const result: Enforcement[] = [];
  for (const who of ["system-reserved", "kube-reserved"] as const) {
    const cgroup = who === "system-reserved" ? config.systemReservedCgroup : config.kubeReservedCgroup;
    for (const key of [who, `${who}-compressible`]) {
      if (cgroup === "" || !config.enforceNodeAllocatable.includes(key)) continue;
      const list = new Map(Object.entries(who === "system-reserved" ? reserved.system : reserved.kube));
      result.push({ key, cgroup, values: nodeCgroupValues(list, key !== who, pathOf(cgroup), reasons) });
    }
  }
  return result;
}
