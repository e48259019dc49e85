import type { RuntimeContainer } from "../../containerd/runtime-pod.ts";
import type { RunnablePod } from "../pod.ts";
import { type ContainerState, type ContainerStatus, timeOf } from "./status.ts";

/** Reason of a container whose end nobody observed. */
export const LOST = "ContainerStatusUnknown";
export const LOST_CODE = 137;
const LOST_MESSAGE = "The container could not be located when the pod was terminated";

/**
 * One instance as a container's status, given the status that was told before. A restart count never falls, and an end
 * that was told stays told, whatever became of the instance. kubelet 1.36: convertContainerStatus.
 */
export function statusOfInstance(
  c: RuntimeContainer,
  old: ContainerStatus | undefined,
  runtimeName: string,
): ContainerStatus {
  const containerID = `${runtimeName}://${c.id}`;
  return {
    name: c.name,
    state: stateOf(c, old, containerID),
    lastState: lastStateOf(old, containerID),
    ready: false,
    restartCount: restartsOf(c, old),
    image: c.image,
    imageID: c.imageId,
    containerID,
    started: false,
  };
}

function stateOf(c: RuntimeContainer, old: ContainerStatus | undefined, containerID: string): ContainerState {
  const startedAt = timeOf(c.startedAtMs ?? 0);
  switch (c.state) {
    case "running":
      return { running: { startedAt } };
    case "created":
      return { waiting: {} };
    case "exited":
      return {
        terminated: {
          exitCode: c.exitCode,
          ...(c.reason !== "" && { reason: c.reason }),
          ...(c.message !== "" && { message: c.message }),
          startedAt,
          finishedAt: timeOf(c.finishedAtMs ?? 0),
          containerID,
        },
      };
    case "unknown":
      if (old?.state.running === undefined) return { waiting: {} };
      return { terminated: { exitCode: LOST_CODE, reason: LOST, message: LOST_MESSAGE } };
  }
}

function lastStateOf(old: ContainerStatus | undefined, containerID: string): ContainerState {
  if (old?.state.terminated !== undefined && old.containerID !== containerID)
    return { terminated: old.state.terminated };
  const terminated = old?.lastState.terminated;
  return terminated === undefined ? {} : { terminated };
}

function restartsOf(c: RuntimeContainer, old: ContainerStatus | undefined): number {
  if (old === undefined) return c.attempt;
  if (c.state === "unknown" && old.state.running !== undefined) return old.restartCount + 1;
  if (c.state === "running" && old.state.terminated !== undefined && old.restartCount >= c.attempt)
    return old.restartCount + 1;
  return Math.max(c.attempt, old.restartCount);
}

/**
 * The statuses of a pod that is over: what did not tell its end counts as failed, except what never had its turn.
 * kubelet 1.36: TerminatePod.
 */
export function endedStatuses(
  pod: RunnablePod,
  init: readonly ContainerStatus[],
  own: readonly ContainerStatus[],
): { readonly init: readonly ContainerStatus[]; readonly own: readonly ContainerStatus[] } {
  const lastTried = init.findLastIndex((s) => s.state.waiting === undefined || s.lastState.terminated !== undefined);
  const tried = Math.max(0, lastTried);
  return {
    init: init.map((s, i) => (i <= tried ? lost(s) : s)),
    own: hasInitialized(pod, init, own) ? own.map(lost) : own,
  };
}

const lost = (s: ContainerStatus): ContainerStatus =>
  s.state.terminated === undefined
    ? { ...s, state: { terminated: { exitCode: LOST_CODE, reason: LOST, message: LOST_MESSAGE } } }
    : s;

/** Its own containers had their turn. kubelet 1.36: hasPodInitialized. */
function hasInitialized(pod: RunnablePod, init: readonly ContainerStatus[], own: readonly ContainerStatus[]): boolean {
  const last = init.at(-1);
  if (last === undefined || own.some((s) => s.lastState.terminated !== undefined || s.state.waiting === undefined))
    return true;
  if (pod.spec.initContainers.at(-1)?.isSidecar === true) return last.started && last.state.running !== undefined;
  return last.lastState.terminated?.exitCode === 0 || last.state.terminated?.exitCode === 0;
}
