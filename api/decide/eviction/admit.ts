import { PRESSURE_CONDITIONS, type PressureCondition } from "../../model/eviction.ts";
import type { Toleration } from "../../model/placement.ts";
import type { Pod } from "../../model/pod.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { qosClass } from "../resources/qos.ts";

export interface PressureRefusal {
  readonly reason: "Evicted";
  readonly message: string;
}

/**
 * Whether a node under pressure takes a pod: null, or what the pod's status would say. The kubelet names several conditions
 * in the order of a Go map, here memory, disk, process ids. kubelet 1.36: the eviction manager's Admit.
 */
export function refusalUnderPressure(pod: Pod, conditions: readonly PressureCondition[]): PressureRefusal | null {
  const present = PRESSURE_CONDITIONS.filter((c) => conditions.includes(c));
  if (present.length === 0 || isCriticalPod(pod)) return null;
  const onlyMemory = present.length === 1 && present[0] === "MemoryPressure";
  if (onlyMemory && (qosClass(pod) !== "BestEffort" || (pod.spec.tolerations ?? []).some(toleratesMemoryPressure))) {
    return null;
  }
  return { reason: "Evicted", message: `The node had condition: [${present.join(" ")}]. ` };
}

/** Of the taint node.kubernetes.io/memory-pressure:NoSchedule, which has no value. kubernetes 1.36: ToleratesTaint. */
function toleratesMemoryPressure({ key = "", operator = "", value = "", effect = "" }: Toleration): boolean {
  if (effect !== "" && effect !== "NoSchedule") return false;
  if (key !== "" && key !== "node.kubernetes.io/memory-pressure") return false;
  return operator === "Exists" || ((operator === "" || operator === "Equal") && value === "");
}
