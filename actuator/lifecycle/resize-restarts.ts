import { latestOf } from "./instances.ts";
import type { PodRecord } from "./record.ts";
import type { RuntimePod } from "./runtime-pod.ts";

/**
 * Containers that a resize starts anew: those of which the instance that is to be stopped is still the newest one, whether
 * it runs or not. kubelet 1.36: computePodResizeAction, policy RestartContainer.
 */
export function resizeRestarts({ resize }: PodRecord, seen: RuntimePod | null): ReadonlySet<string> {
  const restarts = Object.entries(resize?.actuation?.restarts ?? {});
  if (seen === null || restarts.length === 0) return NONE;
  return new Set(restarts.filter(([name, id]) => latestOf(seen, name)?.id === id).map(([name]) => name));
}
const NONE: ReadonlySet<string> = new Set();
