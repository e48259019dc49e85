import type { KubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import { unitsQuantity } from "../../api/model/quantity.ts";
import type { MachineFacts } from "./facts.ts";
import { pageBytes } from "./hugepages.ts";

const DEFAULT_MAX_PODS = 110;

/**
 * `node.status.capacity` in the kubelet's canonical texts (kubelet 1.36: nodestatus.MachineInfo). A resource whose size is
 * not known is left out.
 */
export function capacityOf(machine: MachineFacts, configuration: KubeletConfiguration): Record<string, string> {
  const capacity: Record<string, string> = {};
  const put = (name: string, units: number | undefined, format: "DecimalSI" | "BinarySI"): void => {
    if (units !== undefined) capacity[name] = unitsQuantity(units, format).text;
  };
  const cpus = machine.cpus.length;
  put("cpu", cpus === 0 ? undefined : cpus, "DecimalSI");
  if (configuration.localStorageCapacityIsolation !== false) {
    put("ephemeral-storage", machine.nodeFs?.capacityBytes, "BinarySI");
  }
  for (const [size, pages] of Object.entries(machine.hugepages))
    put(`hugepages-${size}`, pages * pageBytes(size), "BinarySI");
  put("memory", machine.memory.totalBytes, "BinarySI");
  put("pods", podsOf(configuration, cpus), "DecimalSI");
  return capacity;
}

function podsOf(configuration: KubeletConfiguration, cpus: number): number {
  const maxPods = configuration.maxPods ?? DEFAULT_MAX_PODS;
  const perCore = configuration.podsPerCore ?? 0;
  return perCore > 0 ? Math.min(maxPods, perCore * cpus) : maxPods;
}
