import type { KubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import { capacityOf } from "./capacity.ts";
import type { MachineFacts } from "./facts.ts";

/** The name a kubelet gives its node (kubelet 1.36: nodeutil.GetHostname); `undefined` for a machine without one. */
export function nodeNameOf(machine: MachineFacts): string | undefined {
  return machine.system.hostname?.trim().toLowerCase() || undefined;
}

/**
 * The machine as a v1.Node, with the labels, address, capacity and nodeInfo that a kubelet registers. What only a kubelet
 * or an API server knows (uid, conditions, taints, allocatable) is not there; versions of programs that were not asked
 * are empty, as v1.NodeSystemInfo requires the fields.
 */
export function nodeOf(machine: MachineFacts, name: string, configuration: KubeletConfiguration) {
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
        kubeletVersion: "",
        machineID: system.machineID ?? "",
        operatingSystem: "linux",
        osImage: system.osImage ?? "Unknown",
        ...(swap > 0 ? { swap: { capacity: swap } } : {}),
        systemUUID: system.systemUUID ?? "",
      },
    },
  };
}
