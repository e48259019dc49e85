import { podCapacity } from "../../api/decide/allocatable/capacity.ts";
import { unitsQuantity } from "../../api/model/quantity.ts";
import type { EffectiveConfiguration } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { MachineFacts } from "./facts.ts";
import { pageBytes } from "./proc-files.ts";

/**
 * `node.status.capacity` in the kubelet's canonical form (kubelet 1.36: nodestatus.MachineInfo). A resource of unknown size
 * is left out.
 */
function capacityOf(machine: MachineFacts, configuration: EffectiveConfiguration): Record<string, string> {
  const capacity: Record<string, string> = {};
  const put = (name: string, units: number | undefined, format: "DecimalSI" | "BinarySI"): void => {
    if (units !== undefined) capacity[name] = unitsQuantity(units, format).text;
  };
  const cpus = machine.cpus.length;
  put("cpu", cpus === 0 ? undefined : cpus, "DecimalSI");
  if (configuration.localStorageCapacityIsolation) {
    put("ephemeral-storage", machine.nodeFs?.capacityBytes, "BinarySI");
  }
  for (const [size, pages] of Object.entries(machine.hugepages))
    put(`hugepages-${size}`, pages * pageBytes(size), "BinarySI");
  put("memory", machine.memory.totalBytes, "BinarySI");
  put("pods", podCapacity(cpus, configuration), "DecimalSI");
  return capacity;
}

/** The name a kubelet gives its node (kubelet 1.36: nodeutil.GetHostname); `undefined` for a machine without one. */
export function nodeNameOf(machine: MachineFacts): string | undefined {
  return machine.system.hostname?.trim().toLowerCase() || undefined;
}

/**
 * The machine as a v1.Node, with the labels, address, capacity and nodeInfo that a kubelet registers. Fields that only a
 * kubelet or an API server knows (uid, conditions, taints, allocatable) are absent; versions of programs that were not
 * queried are empty, since v1.NodeSystemInfo requires the fields. `profile`: that of the simulated kubelet.
 */
export function nodeOf(
  machine: MachineFacts,
  name: string,
  configuration: EffectiveConfiguration,
  profile: Profile | undefined,
) {
  const { system, memory } = machine;
  const swap = memory.swapTotalBytes ?? 0;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "beta.kubernetes.io/arch": system.architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": system.architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
      },
    },
    spec: {},
    status: {
      addresses: [{ address: name, type: "Hostname" }],
      capacity: capacityOf(machine, configuration),
      nodeInfo: {
        architecture: system.architecture,
        bootID: system.bootID ?? "",
        containerRuntimeVersion: "",
        kernelVersion: system.kernelVersion ?? "",
        kubeProxyVersion: "",
        kubeletVersion: profile === undefined ? "" : `v${profile.release}`,
        machineID: system.machineID ?? "",
        operatingSystem: "linux",
        osImage: system.osImage ?? "Unknown",
        ...(swap > 0 ? { swap: { capacity: swap } } : {}),
        systemUUID: system.systemUUID ?? "",
      },
    },
  };
}
