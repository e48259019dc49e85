import type { PodRow } from "../../../actuator/status/node-status.ts";

/**
 * The phase of a pod that had to end, from the exit codes of its containers: a container that handles SIGTERM may exit
 * with 0, and then the pod has succeeded. kubelet 1.36: generateAPIPodStatus after SyncTerminatingPod.
 */
export const endPhase = ({ containers }: Pick<PodRow, "containers">): "Succeeded" | "Failed" =>
  containers.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed";
