import type { PodRow } from "../../../actuator/status/node-status.ts";

/**
 * The phase of a pod that had to go, by the ends of its containers: who hears its signal may end well, and then the pod
 * has succeeded. kubelet 1.36: generateAPIPodStatus after SyncTerminatingPod.
 */
export const endPhase = ({ containers }: Pick<PodRow, "containers">): "Succeeded" | "Failed" =>
  containers.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed";
