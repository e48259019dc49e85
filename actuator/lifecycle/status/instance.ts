import type { RuntimeContainer } from "../runtime-pod.ts";
import type { ContainerState, ContainerStatus } from "./status.ts";
import { timeOf } from "./status.ts";

/** Of a container of which nobody knows how it ended. */
export const LOST = "ContainerStatusUnknown";
export const LOST_CODE = 137;
export const LOST_MESSAGE = "The container could not be located when the pod was terminated";

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
