import type { RuntimePod } from "../containerd/runtime-pod.ts";
import { latestOf } from "./instances.ts";
import type { ContainerPort, PodContainer, RunnablePod } from "./pod.ts";

/** A port of the host that a container asks for, and its place in the pod. */
export interface HostPort {
  /** `spec.containers[0].ports[0].hostPort` */
  readonly path: string;
  readonly container: string;
  readonly port: ContainerPort;
}
type Taken = Pick<ContainerPort, "protocol"> & { readonly ip: string; readonly port: number };

const WILDCARDS: ReadonlySet<string> = new Set(["", "0.0.0.0", "::"]);

/** Init containers first. */
export function hostPortsOf({ spec }: RunnablePod): readonly HostPort[] {
  const of = (list: "initContainers" | "containers", containers: readonly PodContainer[]): readonly HostPort[] =>
    containers.flatMap(({ name, ports }, c) =>
      ports.flatMap((port, p) =>
        port.hostPort === 0 ? [] : [{ path: `spec.${list}[${c}].ports[${p}].hostPort`, container: name, port }],
      ),
    );
  return [...of("initContainers", spec.initContainers), ...of("containers", spec.containers)];
}

/**
 * True: a socket keeps another one from the port. `hostIP` has the form that `ip` has. Linux: an address and any address
 * exclude each other.
 */
export const isTakenBy = ({ protocol, hostPort, hostIP }: ContainerPort, taken: Taken): boolean =>
  protocol === taken.protocol &&
  hostPort === taken.port &&
  (WILDCARDS.has(hostIP) || WILDCARDS.has(taken.ip) || hostIP === taken.ip);

/** Another text whenever it is worth a look who holds a pod's ports: it was let in, or one of its containers has ended. */
export function portOccasion(admittedAtMs: number | null, runtimePod: RuntimePod | null): string {
  const ended = runtimePod?.containers.filter(({ state }) => state === "exited").map(({ id }) => id) ?? [];
  return JSON.stringify([admittedAtMs, ended]);
}

export const isRunning = (runtimePod: RuntimePod | null, container: string): boolean =>
  runtimePod !== null && latestOf(runtimePod, container)?.state === "running";
