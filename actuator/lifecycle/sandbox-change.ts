import type { RunnablePod } from "./pod.ts";
import type { RuntimePod } from "./runtime-pod.ts";

export interface SandboxNeed {
  /** The newest sandbox cannot be used, or there is none. */
  readonly isNew: boolean;
  /** Of the sandbox that is to be made, or of the one that is used. */
  readonly attempt: number;
  /** The one that is used; null: it is yet to be made. */
  readonly sandboxId: string | null;
}

/**
 * Whether a pod needs another sandbox: there is none, more than one is ready, the newest is not ready, or its network is
 * not the pod's. A sandbox has addresses only on a network of its own, so one without an address is of no use to a pod
 * off the host's network, and one with an address is none for a pod on it. kubelet 1.36: PodSandboxChanged.
 */
export function sandboxNeed(pod: RunnablePod, seen: RuntimePod): SandboxNeed {
  const newest = seen.sandboxes[0];
  if (newest === undefined) return { isNew: true, attempt: 0, sandboxId: null };
  const ready = seen.sandboxes.filter((s) => s.isReady).length;
  const isOnHost = newest.ips.length === 0;
  if (ready > 1 || !newest.isReady || isOnHost !== pod.spec.hostNetwork)
    return { isNew: true, attempt: newest.attempt + 1, sandboxId: null };
  return { isNew: false, attempt: newest.attempt, sandboxId: newest.id };
}
