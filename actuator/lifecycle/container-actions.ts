import type { KillContainer } from "./actions.ts";
import { isChanged } from "./back-off.ts";
import { latestOf } from "./instances.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import type { ProbeResults } from "./probe-results.ts";
import { shouldStart } from "./restart.ts";
import type { RuntimeContainer, RuntimePod } from "./runtime-pod.ts";

export interface ContainerActions {
  readonly start: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
  /** Running ones that stay as they are. */
  readonly kept: number;
}

/** Of a pod whose init containers are done. kubelet 1.36: the second half of computePodActions. */
export function containerActions(
  pod: RunnablePod,
  seen: RuntimePod,
  wanted: {
    readonly hashOf: (container: PodContainer) => string;
    readonly resizeRestarts: ReadonlySet<string>;
    readonly stoppedForResize: ReadonlySet<string>;
    readonly resultOf: ProbeResults;
  },
): ContainerActions {
  const start: PodContainer[] = [];
  const kill: KillContainer[] = [];
  let kept = 0;
  for (const container of pod.spec.containers) {
    const { name } = container;
    const latest = latestOf(seen, name);
    const probe = latest === undefined ? null : failedProbe(latest, wanted.resultOf);
    if (latest?.state !== "running") {
      if (!wanted.stoppedForResize.has(name) && !shouldStart(pod, container, latest)) continue;
      start.push(container);
      if (latest?.state === "unknown")
        kill.push(killOf(latest, `Container is in "unknown" state, try killing it before restart`));
    } else if (isChanged(container, latest, wanted.hashOf)) {
      start.push(container);
      kill.push(killOf(latest, `Container ${name} definition changed, will be restarted`));
    } else if (probe !== null) {
      const isAgain = pod.spec.restartPolicy !== "Never";
      if (isAgain) start.push(container);
      const message = `Container ${name} failed ${probe} probe${isAgain ? ", will be restarted" : ""}`;
      kill.push({ ...killOf(latest, message), probe });
    } else if (wanted.resizeRestarts.has(name)) {
      start.push(container);
      kill.push(killOf(latest, `Container ${name} resize requires restart`));
    } else kept++;
  }
  return { start, kill, kept };
}

export type FailedProbe = "liveness" | "startup";
/** Null: none has. */
export const failedProbe = ({ id }: RuntimeContainer, resultOf: ProbeResults): FailedProbe | null =>
  (["liveness", "startup"] as const).find((type) => resultOf(id, type) === "Failure") ?? null;

const killOf = ({ id, name }: RuntimeContainer, message: string): KillContainer => ({ containerId: id, name, message });
