import type { RunnablePod } from "./pod.ts";
import type { RuntimeContainer, RuntimePod } from "./runtime-pod.ts";

/**
 * Ids of instances that nobody needs any more. Of each container the newest one that does not run stays: it tells the
 * last state, the restart count and the back-off. Init containers all go with their sandbox, so that they run again.
 * kubelet 1.36: purgeInitContainers, pruneInitContainersBeforeStart, evictContainers with one dead instance a container.
 */
export function leftoverContainers(pod: RunnablePod, seen: RuntimePod, isNewSandbox: boolean): readonly string[] {
  const ofInit = pod.spec.initContainers.flatMap(({ name }) => {
    const instances = seen.containers.filter((c) => c.name === name);
    return isNewSandbox ? instances : instances.filter(isDead).slice(1);
  });
  const ofRegular = pod.spec.containers.flatMap(({ name }) => {
    const dead = seen.containers.filter((c) => c.name === name && c.state !== "running");
    const lastEnd = dead.find((c) => c.state === "exited");
    return dead.slice(1).filter((c) => c !== lastEnd);
  });
  return [...ofInit, ...ofRegular].map((c) => c.id);
}

const isDead = (c: RuntimeContainer): boolean => c.state === "exited" || c.state === "unknown";

/**
 * Ids of sandboxes that nothing is in and that are neither ready nor the newest one. `removed`: containers that are gone
 * by now. kubelet 1.36: evictSandboxes.
 */
export function leftoverSandboxes(seen: RuntimePod, removed: readonly string[] = []): readonly string[] {
  const used = new Set(seen.containers.filter((c) => !removed.includes(c.id)).map((c) => c.sandboxId));
  return seen.sandboxes
    .slice(1)
    .filter((s) => !s.isReady && !used.has(s.id))
    .map((s) => s.id);
}
