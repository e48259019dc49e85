import type { PodContainer, RunnablePod } from "../pod.ts";

const MOST_ID = 2_147_483_647;

/** The user that an image names: by number, or by a name that only the image's own files know. */
export interface ImageUser {
  readonly uid: number | null;
  readonly name: string;
}

/** `user` as the runtime tells it; null: root. A group behind it says nothing here. kubelet 1.36: getImageUser. */
export function imageUserOf(user: string | null): ImageUser {
  const [name = ""] = (user ?? "").split(":");
  if (name === "") return { uid: 0, name: "" };
  return /^\d+$/.test(name) ? { uid: Number(name), name: "" } : { uid: null, name };
}

/** Why the container may not start; null: it may. The kubelet's words. kubelet 1.36: verifyRunAsNonRoot. */
export function nonRootFault(pod: RunnablePod, container: PodContainer, user: ImageUser): string | null {
  const ofPod = pod.spec.securityContext;
  if (!(container.security.runAsNonRoot ?? ofPod.runAsNonRoot)) return null;
  const where = `(pod: "${pod.name}_${pod.namespace}(${pod.uid})", container: ${container.name})`;
  const asked = container.security.runAsUser ?? ofPod.runAsUser;
  if (asked !== null) return asked === 0 ? `container's runAsUser breaks non-root policy ${where}` : null;
  if (user.uid === null) {
    return `container has runAsNonRoot and image has non-numeric user (${user.name}), cannot verify user is non-root ${where}`;
  }
  if (user.uid === 0) return `container has runAsNonRoot and image will run as root ${where}`;
  if (user.uid <= MOST_ID) return null;
  const range = `must be between 0 and ${MOST_ID}, inclusive`;
  return `container has runAsNonRoot and image has an invalid user id (${user.uid}). (Must be 1-(${MOST_ID})): ${range} ${where}`;
}
