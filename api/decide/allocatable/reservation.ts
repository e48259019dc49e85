import { countCpus, cpuSetFault } from "../../model/cpu-set.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { type Quantity, unitsQuantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { evictionHardOf } from "../eviction/configuration.ts";
import { parseThreshold, thresholdQuantity } from "../eviction/threshold.ts";

export interface Reserved {
  readonly kube: ResourceList;
  readonly system: ResourceList;
}

/** kubelet 1.36: parseResourceList. */
export const RESERVABLE: readonly string[] = ["cpu", "memory", "ephemeral-storage", "pid"];

export const cannotReserve = (name: string): string => `cannot reserve "${name}" resource`;

/** kubeReserved and systemReserved; reservedSystemCPUs replaces the cpu of both. kubelet 1.36: cmd/kubelet/app run. */
export function reservedOf(config: KubeletConfiguration): Result<Reserved, string> {
  const kube = config.kubeReserved ?? {};
  const system = config.systemReserved ?? {};
  for (const [field, reserve] of [
    ["kubeReserved", kube],
    ["systemReserved", system],
  ] as const) {
    const odd = Object.keys(reserve).find((name) => !RESERVABLE.includes(name));
    if (odd !== undefined) return err(`kubeletConfiguration.${field}: ${cannotReserve(odd)}`);
  }
  const list = config.reservedSystemCPUs ?? "";
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

/** What hard eviction keeps back of memory and ephemeral-storage. kubelet 1.36: hardEvictionReservation. */
export function evictionReservation(
  config: KubeletConfiguration,
  capacity: ReadonlyMap<string, Quantity>,
): Result<Map<string, Quantity>, string> {
  const reserved = new Map<string, Quantity>();
  for (const [signal, text] of Object.entries(evictionHardOf(config))) {
    const threshold = parseThreshold(signal, text);
    if (!threshold.ok) return err(`kubeletConfiguration.evictionHard: ${threshold.error}`);
    const resource = EVICTION_RESOURCE[signal];
    if (resource === undefined || threshold.value === null) continue;
    reserved.set(resource, thresholdQuantity(threshold.value, capacity.get(resource)?.amount ?? 0));
  }
  return ok(reserved);
}
