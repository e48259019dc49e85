import { milliValue, value } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/decision.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import type { Quantity } from "../../model/quantity.ts";
import { type Bytes, bytes } from "../../model/units.ts";
import { milliCpuToShares } from "../cgroups/cpu-convert.ts";
import { enforcementOf } from "../config.ts";
import { hugePageLimits } from "../hugepages.ts";
import type { Reasons } from "../reasons.ts";
import type { Reserved } from "./reservation.ts";

type Quantities = ReadonlyMap<string, Quantity>;

/** The cgroup values of a list of node-level resources. kubelet 1.36: getCgroupConfigInternal. */
export function nodeCgroupValues(
  list: Quantities,
  compressibleOnly: boolean,
  at: string,
  reasons: Reasons,
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
  const hugePages: Record<string, Bytes> | undefined = hugePageLimits(
    new Map([...list].map(([n, q]) => [n, q.amount])),
  );
  if (hugePages !== undefined) values.hugePageLimit = hugePages;
  return values;
}

export interface Enforcement {
  readonly key: string;
  /** As configured: a cgroupfs path, or a slice under the systemd driver. */
  readonly cgroup: string;
  readonly values: CgroupValues;
}

/** The kube-reserved and system-reserved cgroups that enforceNodeAllocatable asks for. kubelet 1.36: enforceNodeAllocatableCgroups. */
export function reservedEnforcements(
  config: KubeletConfiguration,
  reserved: Reserved,
  reasons: Reasons,
  pathOf: (cgroup: string) => string = (cgroup) => cgroup,
): readonly Enforcement[] {
  const keys = enforcementOf(config);
  const result: Enforcement[] = [];
  for (const who of ["system-reserved", "kube-reserved"] as const) {
    const cgroup = (who === "system-reserved" ? config.systemReservedCgroup : config.kubeReservedCgroup) ?? "";
    const list = new Map(Object.entries(who === "system-reserved" ? reserved.system : reserved.kube));
    for (const key of [who, `${who}-compressible`]) {
      if (!keys.has(key) || cgroup === "") continue;
      result.push({ key, cgroup, values: nodeCgroupValues(list, key !== who, pathOf(cgroup), reasons) });
    }
  }
  return result;
}
