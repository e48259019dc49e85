import type { KillContainer } from "./actions.ts";
import { isChanged } from "./back-off.ts";
import type { FailedProbe } from "./container-actions.ts";
import { latestOf } from "./instances.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import type { ProbeResults } from "./probe-results.ts";
import { initFailed, shouldStart } from "./restart.ts";
import type { RuntimeContainer, RuntimePod } from "./runtime-pod.ts";

export interface InitActions {
  /** The pod's own containers may start. */
  readonly isDone: boolean;
  /** One failed for good. */
  readonly killPod: boolean;
  /** In their order. */
  readonly start: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
}
interface Wanted {
  readonly hashOf: (container: PodContainer) => string;
  readonly resizeRestarts: ReadonlySet<string>;
  readonly resultOf: ProbeResults;
}
/** What one init container asks for. */
interface Step {
  readonly start?: boolean;
  readonly startNext?: boolean;
  readonly kill?: KillContainer;
  readonly killPod?: boolean;
}

/**
 * Looks at init containers from the last to the first: the last one that the runtime knows tells how far the pod has
 * come, since earlier ones may have been removed. From there back only sidecars matter, which are kept running.
 * kubelet 1.36: computeInitContainerActions.
 */
export function initActions(pod: RunnablePod, seen: RuntimePod, wanted: Wanted): InitActions {
  const containers = pod.spec.initContainers;
  let isDone = containers.length === 0 || hasBegun(pod, seen);
  let isPast = isDone;
  const start: PodContainer[] = [];
  const kill: KillContainer[] = [];
  for (const [i, container] of [...containers.entries()].reverse()) {
    const latest = latestOf(seen, container.name);
    if (isPast && !container.isSidecar) continue;
    if (latest === undefined) {
      if (isPast) start.unshift(container);
      continue;
    }
    const step = container.isSidecar ? sidecarStep(container, latest, wanted) : initStep(pod, container, latest);
    if (step.killPod) return { isDone: false, killPod: true, start: [], kill };
    if (step.startNext) {
      const next = containers[i + 1];
      if (next === undefined) isDone = true;
      else if (!isPast) start.unshift(next);
    }
    if (step.kill !== undefined) kill.push(step.kill);
    if (step.start) start.unshift(container);
    isPast = true;
  }
  const first = containers[0];
  if (!isPast && first !== undefined) start.push(first);
  return { isDone, killPod: false, start, kill };
}

/** One of the pod's own containers is there, and not left over from before a reboot: init containers are not run again. */
const hasBegun = (pod: RunnablePod, seen: RuntimePod): boolean =>
  pod.spec.containers.some((c) => {
    const state = latestOf(seen, c.name)?.state;
    return state === "created" || state === "running";
  });

function initStep(pod: RunnablePod, container: PodContainer, latest: RuntimeContainer): Step {
  switch (latest.state) {
    case "created":
      return { start: true };
    case "running":
      return {};
    case "exited":
      if (!initFailed(latest)) return { startNext: true };
      return shouldStart(pod, container, latest) ? { start: true } : { killPod: true };
    case "unknown":
      return pod.spec.restartPolicy === "Never" ? { killPod: true } : { start: true, kill: killUnknown(latest) };
  }
}

function sidecarStep(container: PodContainer, latest: RuntimeContainer, wanted: Wanted): Step {
  if (latest.state === "unknown") return { start: true, kill: killUnknown(latest) };
  if (latest.state !== "running") return { start: true };
  const { name, probes } = container;
  const kill = (message: string, probe?: FailedProbe): Step => ({
    startNext: probe !== "startup",
    start: true,
    kill: { containerId: latest.id, name, message, ...(probe !== undefined && { probe }) },
  });
  const startup = probes.startup === null ? "Success" : wanted.resultOf(latest.id, "startup");
  if (startup === "Failure") return kill(`Init container ${name} failed startup probe`, "startup");
  // those behind it wait until it has started
  if (startup !== "Success") return {};
  if (isChanged(container, latest, wanted.hashOf)) return kill(`Init container ${name} definition changed`);
  const liveness = probes.liveness === null ? "Success" : wanted.resultOf(latest.id, "liveness");
  if (liveness === undefined) return { startNext: true };
  if (liveness === "Failure") return kill(`Init container ${name} failed liveness probe`, "liveness");
  if (wanted.resizeRestarts.has(name)) return kill(`Container ${name} resize requires restart`);
  return { startNext: true };
}

const killUnknown = ({ id, name }: RuntimeContainer): KillContainer => ({
  containerId: id,
  name,
  message: `Init container is in "unknown" state, try killing it before restart`,
});
