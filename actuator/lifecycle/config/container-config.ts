import type { CgroupValues } from "../../../api/model/decision.ts";
import type { DeviceOptions } from "../../../api/model/device-decision.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { AskedMount, ContainerConfig } from "../../containerd/messages.ts";
import { type EnvPair, expandAll } from "../expand.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";
import { containerResources } from "./container-resources.ts";
import { deviceParts } from "./device-parts.ts";
import { imageUserOf, nonRootFault } from "./image-user.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";
import { logPathOf } from "./names.ts";
import { containerSecurity, type NodeSecurity } from "./security.ts";

export interface ContainerAsked {
  /** The daemon's own name. */
  readonly owner: string;
  /** Its restart count. */
  readonly attempt: number;
  /** The id, or the name, of the image to run. */
  readonly image: string;
  /** As the runtime tells it; null: root. */
  readonly imageUser: string | null;
  /** As `resolveEnv` has them, behind those of its devices. */
  readonly env: readonly EnvPair[];
  /** Of volumes, the hosts file and the termination message, with their places on the host. */
  readonly mounts: readonly AskedMount[];
  /** What it gets for its devices; null: it holds none. */
  readonly devices: DeviceOptions | null;
  /** Undefined: nothing was decided about it. */
  readonly resources: CgroupValues | undefined;
  /** Of the cgroups. */
  readonly version: 1 | 2;
  readonly security: NodeSecurity;
}

/** What CreateContainer is asked. Errors: the kubelet's words. kubelet 1.36: generateContainerConfig. */
export function containerConfigOf(
  pod: RunnablePod,
  container: PodContainer,
  asked: ContainerAsked,
): Result<ContainerConfig, string> {
  const user = imageUserOf(asked.imageUser);
  const fault = nonRootFault(pod, container, user);
  if (fault !== null) return err(fault);
  const { resources, devices } = asked;
  const { mounts, ...given } = deviceParts(devices);
  return ok({
    metadata: { name: container.name, attempt: asked.attempt },
    image: { image: asked.image, userSpecifiedImage: container.image },
    command: expandAll(container.command, asked.env),
    args: expandAll(container.args, asked.env),
    workingDir: container.workingDir,
    envs: asked.env,
    mounts: [...mounts, ...asked.mounts],
    ...given,
    labels: containerLabels(pod, container, asked.owner),
    annotations: containerAnnotations(pod, container, asked.attempt, devices?.annotations),
    logPath: logPathOf(container, asked.attempt),
    stdin: container.stdin,
    stdinOnce: container.stdinOnce,
    tty: container.tty,
    linux: {
      ...(resources === undefined ? {} : { resources: containerResources(resources, asked.version) }),
      securityContext: containerSecurity(pod, container, user.uid, asked.security),
    },
  });
}
