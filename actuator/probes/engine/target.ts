import type { ContainerPort, EnvVar } from "../../lifecycle/pod.ts";

/** The container that is asked. */
export interface ProbeTarget {
  /** Empty: the pod has none yet. */
  readonly podIP: string;
  readonly ports: readonly Pick<ContainerPort, "name" | "containerPort">[];
  /** As the runtime knows it. */
  readonly containerId: string;
  readonly env: readonly EnvVar[];
}
