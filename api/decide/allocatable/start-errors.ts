import { formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { cfsPeriod } from "../resources/cpu-convert.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";

const FLAG = "enforceNodeAllocatable (--enforce-node-allocatable)";
/** Values of enforceNodeAllocatable. kubelet 1.36: ValidateKubeletConfiguration. */
export const ENFORCEABLE = [
  "pods",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
  "none",
];

/**
 * Settings with which the kubelet does not start, in the kubelet's words. kubelet 1.36: ValidateKubeletConfiguration.
 */
export function startFaults(config: EffectiveConfiguration, snapshot: Snapshot): readonly SettingFault[] {
  const keys = config.enforceNodeAllocatable;
  const faults = keyErrors(keys, config.cgroupsPerQOS).map((text) => settingFault("enforceNodeAllocatable", text));
  for (const who of ["system", "kube"] as const) faults.push(...reservedFaults(config, keys, who));
  const grouped = config.systemReservedCgroup !== "" || config.kubeReservedCgroup !== "";
  if (config.reservedSystemCPUs !== "" && grouped) {
    const text =
      "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)";
    faults.push(settingFault("reservedSystemCPUs", text));
  }
  if (config.memoryReservationPolicy === "TieredReservation" && !gateOn(config, "MemoryQoS")) {
    const text =
      'invalid configuration: memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled';
    faults.push(settingFault("memoryReservationPolicy", text));
  }
  const period = cfsPeriod(config);
  if (!period.ok) faults.push(settingFault("cpuCFSQuotaPeriod", period.error));
  for (const text of absentCpus(config, snapshot)) faults.push(settingFault("reservedSystemCPUs", text));
  return snapshot.cgroup?.version === 1 ? [...faults, ...v1Faults(config)] : faults;
}

function keyErrors(keys: readonly string[], cgroupsPerQos: boolean): readonly string[] {
  const errors: string[] = [];
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) errors.push(`invalid configuration: duplicated enforcements "${key}" in ${FLAG}`);
    seen.add(key);
    if (!ENFORCEABLE.includes(key)) {
      errors.push(
        `invalid configuration: option "${key}" specified for ${FLAG}. Valid options are ${quoted(ENFORCEABLE)}`,
      );
    }
  }
  for (const key of cgroupsPerQos ? [] : seen) {
    if (key === "none" || !ENFORCEABLE.includes(key)) continue;
    errors.push(
      `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "${key}" contained in ${FLAG}`,
    );
  }
  if (seen.has("none") && keys.length > 1) {
    errors.push(`invalid configuration: ${FLAG} may not contain additional enforcements when "none" is specified`);
  }
  return errors;
}

/** CPUs in reservedSystemCPUs that the machine does not have. kubelet 1.36: getReservedCPUs. */
function absentCpus(config: EffectiveConfiguration, snapshot: Snapshot): readonly string[] {
  if (config.reservedSystemCPUs === "") return [];
  const online = new Set((snapshot.machine?.cpus ?? []).map((c) => c.cpu));
  const reserved = parseCpuSet(config.reservedSystemCPUs) ?? [];
  if (online.size === 0 || reserved.every((cpu) => online.has(cpu))) return [];
  const list = formatCpuSet([...online].sort((a, b) => a - b));
  return [`reserved-cpus: ${config.reservedSystemCPUs} is not a subset of online-cpus: ${list}`];
}

const quoted = (words: readonly string[]): string =>
  `${words
    .slice(0, -1)
    .map((w) => `"${w}"`)
    .join(", ")} or "${words.at(-1)}"`;

function reservedFaults(
  config: EffectiveConfiguration,
  keys: readonly string[],
  who: "system" | "kube",
): readonly SettingFault[] {
  const plain = `${who}-reserved`;
  const compressible = `${plain}-compressible`;
  const asked = [plain, compressible].filter((key) => keys.includes(key));
  if (asked.length === 0) return [];
  const field = `${who}ReservedCgroup` as const;
  const faults: SettingFault[] = [];
  if (config[field] === "") {
    const text = `invalid configuration: ${field} (--${who}-reserved-cgroup) must be specified when "${plain}" or "${compressible}" included in ${FLAG}`;
    faults.push(settingFault(field, text));
  }
  if (asked.length === 2) {
    const text = `invalid configuration: both "${plain}" and "${compressible}" cannot be specified together in ${FLAG}`;
    faults.push(settingFault("enforceNodeAllocatable", text));
  }
  return faults;
}

/** Settings with which a kubelet does not start on a machine with cgroup v1. */
function v1Faults(config: EffectiveConfiguration): readonly SettingFault[] {
  const faults: SettingFault[] = [];
  if (config.failCgroupV1) faults.push(settingFault("failCgroupV1", config.profile.words.cgroupV1Refused));
  if (config.singleProcessOOMKill === false) {
    const text = "invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1";
    faults.push(settingFault("singleProcessOOMKill", text));
  }
  if (config.memorySwap.swapBehavior === "LimitedSwap") {
    const text = "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2";
    faults.push(settingFault("memorySwap.swapBehavior", text));
  }
  return faults;
}
