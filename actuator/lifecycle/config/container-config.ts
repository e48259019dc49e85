import type { CgroupValues } from "../../../api/model/cgroups.ts";
import type { DeviceOptions } from "../../../api/model/managers.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { ContainerConfig, MountConfig } from "../../containerd/messages.ts";
import { type EnvPair, expandAll } from "../env.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";
import { containerResources } from "./container-resources.ts";
import { deviceParts } from "./device-parts.ts";
import { containerAnnotations, containerLabels, logPathOf } from "./labels.ts";
import { containerSecurity, type NodeSecurity } from "./security.ts";

const MAX_ID = 2_147_483_647;

/** The user that an image names: by number, or by a name that only the image's own files know. */
interface ImageUser {
  readonly uid: number | null;
  readonly name: string;
}

/** `user` as the runtime tells it; null: root. A group behind it says nothing here. kubelet 1.36: getImageUser. */
function imageUserOf(user: string | null): ImageUser {
  const [name = ""] = (user ?? "").split(":");
  if (name === "") return { uid: 0, name: "" };
  return /^\d+$/.test(name) ? { uid: Number(name), name: "" } : { uid: null, name };
}

/** Why the container may not start; null: it may. The kubelet's words. kubelet 1.36: verifyRunAsNonRoot. */
function nonRootFault(pod: RunnablePod, container: PodContainer, user: ImageUser): string | null {
  const ofPod = pod.spec.securityContext;
  if (!(container.security.runAsNonRoot ?? ofPod.runAsNonRoot)) return null;
  const where = `(pod: "${pod.name}_${pod.namespace}(${pod.uid})", container: ${container.name})`;
  const asked = container.security.runAsUser ?? ofPod.runAsUser;
  if (asked !== null) return asked === 0 ? `container's runAsUser breaks non-root policy ${where}` : null;
  if (user.uid === null) {
    return `container has runAsNonRoot and image has non-numeric user (${user.name}), cannot verify user is non-root ${where}`;
  }
  if (user.uid === 0) return `container has runAsNonRoot and image will run as root ${where}`;
  if (user.uid <= MAX_ID) return null;
  const range = `must be between 0 and ${MAX_ID}, inclusive`;
  return `container has runAsNonRoot and image has an invalid user id (${user.uid}). (Must be 1-(${MAX_ID})): ${range} ${where}`;
}

export interface ContainerConfigRequest {
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
  /** Mounts of volumes, the hosts file and the termination message, with their places on the host. */
  readonly mounts: readonly MountConfig[];
  /** The options that it gets for its devices; null: it holds none. */
  readonly devices: DeviceOptions | null;
  /** Undefined: nothing was decided about it. */
  readonly resources: CgroupValues | undefined;
  /** The version of the cgroups. */
  readonly version: 1 | 2;
  readonly security: NodeSecurity;
}

/** The request of CreateContainer. Errors: the kubelet's words. kubelet 1.36: generateContainerConfig. */
export function containerConfigOf(
  pod: RunnablePod,
  container: PodContainer,
  asked: ContainerConfigRequest,
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
