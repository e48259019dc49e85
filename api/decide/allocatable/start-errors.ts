import { formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { cfsPeriod, gateOn } from "../config.ts";

const FLAG = "enforceNodeAllocatable (--enforce-node-allocatable)";
const VALID = [
  "pods",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
  "none",
];

/** Settings with which the kubelet does not start, in its own words. kubelet 1.36: ValidateKubeletConfiguration. */
export function startErrors(config: KubeletConfiguration, snapshot: Snapshot): readonly string[] {
  const keys = config.enforceNodeAllocatable ?? ["pods"];
  const errors = [...keyErrors(keys, config.cgroupsPerQOS !== false)];
  for (const who of ["system", "kube"] as const) errors.push(...reservedErrors(config, keys, who));
  const grouped = (config.systemReservedCgroup ?? "") !== "" || (config.kubeReservedCgroup ?? "") !== "";
  if ((config.reservedSystemCPUs ?? "") !== "" && grouped) {
    errors.push(
      "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    );
  }
  if (config.memoryReservationPolicy === "TieredReservation" && !gateOn(config, "MemoryQoS")) {
    errors.push(
      'invalid configuration: memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled',
    );
  }
  const period = cfsPeriod(config);
  if (!period.ok) errors.push(period.error);
  errors.push(...absentCpus(config, snapshot));
  return snapshot.cgroup?.version === 1 ? [...errors, ...v1Errors(config)] : errors;
}

function keyErrors(keys: readonly string[], cgroupsPerQos: boolean): readonly string[] {
  const errors: string[] = [];
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) errors.push(`invalid configuration: duplicated enforcements "${key}" in ${FLAG}`);
    seen.add(key);
    if (!VALID.includes(key)) {
      errors.push(`invalid configuration: option "${key}" specified for ${FLAG}. Valid options are ${quoted(VALID)}`);
    }
  }
  for (const key of cgroupsPerQos ? [] : seen) {
    if (key === "none") continue;
    errors.push(
      `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "${key}" contained in ${FLAG}`,
    );
  }
  if (seen.has("none") && seen.size > 1) {
    errors.push(`invalid configuration: ${FLAG} may not contain additional enforcements when "none" is specified`);
  }
  return errors;
}

/** reservedSystemCPUs names CPUs that the machine does not have. kubelet 1.36: getReservedCPUs. */
function absentCpus(config: KubeletConfiguration, snapshot: Snapshot): readonly string[] {
  const online = new Set((snapshot.machine?.cpus ?? []).map((c) => c.cpu));
  const reserved = parseCpuSet(config.reservedSystemCPUs ?? "") ?? [];
  if (online.size === 0 || reserved.every((cpu) => online.has(cpu))) return [];
  const list = formatCpuSet([...online].sort((a, b) => a - b));
  return [`reserved-cpus: ${config.reservedSystemCPUs} is not a subset of online-cpus: ${list}`];
}

const quoted = (words: readonly string[]): string =>
  `${words
    .slice(0, -1)
    .map((w) => `"${w}"`)
    .join(", ")} or "${words.at(-1)}"`;

function reservedErrors(
  config: KubeletConfiguration,
  keys: readonly string[],
  who: "system" | "kube",
): readonly string[] {
  const plain = `${who}-reserved`;
  const compressible = `${plain}-compressible`;
  const asked = [plain, compressible].filter((key) => keys.includes(key));
  if (asked.length === 0) return [];
  const cgroup = (who === "system" ? config.systemReservedCgroup : config.kubeReservedCgroup) ?? "";
  const errors: string[] = [];
  if (cgroup === "") {
    errors.push(
      `invalid configuration: ${who}ReservedCgroup (--${who}-reserved-cgroup) must be specified when "${plain}" or "${compressible}" included in ${FLAG}`,
    );
  }
  if (asked.length === 2) {
    errors.push(`invalid configuration: both "${plain}" and "${compressible}" cannot be specified together in ${FLAG}`);
  }
  return errors;
}

/** failCgroupV1 is true unless it is set: this kubelet is the last but one that runs on cgroup v1 at all. */
function v1Errors(config: KubeletConfiguration): readonly string[] {
  const errors: string[] = [];
  if (config.failCgroupV1 !== false) {
    errors.push(
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release",
    );
  }
  if (config.singleProcessOOMKill === false) {
    errors.push("invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1");
  }
  if (config.memorySwap?.swapBehavior === "LimitedSwap") {
    errors.push("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2");
  }
  return errors;
}
