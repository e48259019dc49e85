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
): readonly Enforcement[] {
  const keys = enforcementOf(config);
  const result: Enforcement[] = [];
  for (const who of ["system-reserved", "kube-reserved"] as const) {
    const cgroup = (who === "system-reserved" ? config.systemReservedCgroup : config.kubeReservedCgroup) ?? "";
    const list = new Map(Object.entries(who === "system-reserved" ? reserved.system : reserved.kube));
    for (const key of [who, `${who}-compressible`]) {
      if (!keys.has(key) || cgroup === "") continue;
      result.push({ key, cgroup, values: nodeCgroupValues(list, key !== who, cgroup, reasons) });
    }
  }
  return result;
}

const VALID = [
  "pods",
  "system-reserved",
  "kube-reserved",
  "system-reserved-compressible",
  "kube-reserved-compressible",
  "none",
];

/** Settings of enforceNodeAllocatable with which the kubelet does not start. kubelet 1.36: ValidateKubeletConfiguration. */
export function enforcementErrors(config: KubeletConfiguration): readonly string[] {
  const keys = enforcementOf(config);
  const errors: string[] = [];
  const flag = "enforceNodeAllocatable (--enforce-node-allocatable)";
  if (config.cgroupsPerQOS === false && keys.size > 0) {
    errors.push(
      `invalid configuration: ${flag} is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true`,
    );
  }
  for (const key of keys) {
    if (!VALID.includes(key)) {
      errors.push(`invalid configuration: option "${key}" specified for ${flag}. Valid options are ${quoted(VALID)}`);
    }
  }
  if (keys.has("none") && keys.size > 1) {
    errors.push(`invalid configuration: ${flag} may not contain additional enforcements when "none" is specified`);
  }
  for (const who of ["system", "kube"] as const) errors.push(...reservedErrors(config, keys, who));
  if (
    (config.reservedSystemCPUs ?? "") !== "" &&
    ((config.systemReservedCgroup ?? "") !== "" || (config.kubeReservedCgroup ?? "") !== "")
  ) {
    errors.push(
      "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    );
  }
  return errors;
}
const quoted = (words: readonly string[]): string =>
  words.map((w, i) => (i === words.length - 1 ? `or "${w}"` : `"${w}",`)).join(" ");

function reservedErrors(
  config: KubeletConfiguration,
  keys: ReadonlySet<string>,
  who: "system" | "kube",
): readonly string[] {
  const plain = `${who}-reserved`;
  const compressible = `${plain}-compressible`;
  const errors: string[] = [];
  const cgroup = (who === "system" ? config.systemReservedCgroup : config.kubeReservedCgroup) ?? "";
  for (const key of [plain, compressible]) {
    if (!keys.has(key) || cgroup !== "") continue;
    errors.push(
      `invalid configuration: ${who}ReservedCgroup (--${who}-reserved-cgroup) must be specified when "${key}" contained in enforceNodeAllocatable (--enforce-node-allocatable)`,
    );
  }
  if (keys.has(plain) && keys.has(compressible)) {
    errors.push(
      `invalid configuration: both "${plain}" and "${compressible}" cannot be specified in enforceNodeAllocatable (--enforce-node-allocatable)`,
    );
  }
  return errors;
}
