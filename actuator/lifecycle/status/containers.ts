import { byText } from "../../../api/base/order.ts";
import type { RuntimeContainer, RuntimePod } from "../../containerd/cri.ts";
import type { PodProbeResults } from "../actions.ts";
import { hasRegularContainer, latestOf, shouldStart } from "../instances.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";
import { type ContainerState, type ContainerStatus, timeOf } from "./status.ts";

/** The reason of a container whose end was not observed. */
const LOST = "ContainerStatusUnknown";
const LOST_CODE = 137;
const LOST_MESSAGE = "The container could not be located when the pod was terminated";

/**
 * A container's status for one instance, given the last reported status. A restart count never decreases, and a
 * reported end stays, whatever became of the instance. kubelet 1.36: convertContainerStatus.
 */
function statusOfInstance(c: RuntimeContainer, old: ContainerStatus | undefined, runtimeName: string): ContainerStatus {
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
 * The statuses of a pod that is over: a container without a reported end counts as failed, unless it was never
 * started. kubelet 1.36: TerminatePod.
 */
export function endedStatuses(
  pod: RunnablePod,
  init: readonly ContainerStatus[],
  own: readonly ContainerStatus[],
): { readonly init: readonly ContainerStatus[]; readonly own: readonly ContainerStatus[] } {
  const lastTried = init.findLastIndex((s) => s.state.waiting === undefined || s.lastState.terminated !== undefined);
  const tried = Math.max(0, lastTried);
  return {
    init: init.map((s, i) => (i <= tried ? withLostState(s) : s)),
    own: hasInitialized(pod, init, own) ? own.map(withLostState) : own,
  };
}

const withLostState = (s: ContainerStatus): ContainerStatus =>
  s.state.terminated === undefined
    ? { ...s, state: { terminated: { exitCode: LOST_CODE, reason: LOST, message: LOST_MESSAGE } } }
    : s;

/** Whether the regular containers had their turn. kubelet 1.36: hasPodInitialized. */
function hasInitialized(pod: RunnablePod, init: readonly ContainerStatus[], own: readonly ContainerStatus[]): boolean {
  const last = init.at(-1);
  if (last === undefined || own.some((s) => s.lastState.terminated !== undefined || s.state.waiting === undefined))
    return true;
  if (pod.spec.initContainers.at(-1)?.isSidecar === true) return last.started && last.state.running !== undefined;
  return last.lastState.terminated?.exitCode === 0 || last.state.terminated?.exitCode === 0;
}

/** Why a container was not started: a one-word reason and a message. */
export interface StartError {
  readonly reason: string;
  readonly message: string;
}
interface ContainersInput {
  readonly pod: RunnablePod;
  readonly runtimePod: RuntimePod;
  readonly errors: Readonly<Record<string, StartError>>;
  readonly runtimeName: string;
  /** Containers whose postStart hook still runs. */
  readonly starting: ReadonlySet<string>;
  /** Containers that a resize stops for a restart: these stops are not ends. */
  readonly restarting: ReadonlySet<string>;
  readonly probeResults: PodProbeResults;
}

/**
 * The statuses of the pod's own containers by name, or of its init containers in their order. kubelet 1.36:
 * convertToAPIContainerStatuses, and prober's UpdatePodStatus.
 */
export function containerStatuses(
  input: ContainersInput,
  isInit: boolean,
  previous: readonly ContainerStatus[],
): readonly ContainerStatus[] {
  const { spec } = input.pod;
  const statuses = (isInit ? spec.initContainers : spec.containers).map((container) => {
    const old = previous.find((s) => s.name === container.name);
    return withReadiness(
      input,
      container,
      isInit,
      withStart(input, container, isInit, seenStatus(input, container, old)),
    );
  });
  return isInit ? statuses : statuses.sort((a, b) => byText(a.name, b.name));
}

/**
 * The status from the runtime; without an instance, the last reported one, or that of a container waiting for its
 * first start.
 */
function seenStatus(
  input: ContainersInput,
  container: PodContainer,
  old: ContainerStatus | undefined,
): ContainerStatus {
  const [newest, before] = input.runtimePod.containers.filter((c) => c.name === container.name);
  if (newest === undefined) return unseenStatus(input.pod, container, old);
  if (newest.state === "exited" && input.restarting.has(container.name)) return betweenStatus(container, old);
  const status = statusOfInstance(newest, old, input.runtimeName);
  return before === undefined
    ? status
    : { ...status, lastState: statusOfInstance(before, old, input.runtimeName).state };
}

function unseenStatus(pod: RunnablePod, container: PodContainer, old: ContainerStatus | undefined): ContainerStatus {
  if (old?.state.terminated !== undefined) return old;
  const reason = pod.spec.initContainers.length > 0 ? "PodInitializing" : "ContainerCreating";
  const waiting: ContainerStatus = {
    name: container.name,
    state: { waiting: { reason } },
    lastState: old?.lastState ?? {},
    ready: false,
    restartCount: old?.restartCount ?? 0,
    image: container.image,
    imageID: "",
    started: false,
  };
  if (old?.state.running === undefined || old.lastState.terminated !== undefined) return waiting;
  const terminated = { exitCode: LOST_CODE, reason: LOST, message: GONE_MESSAGE };
  const restartCount = waiting.restartCount + (pod.deletion === null ? 1 : 0);
  return { ...waiting, lastState: { terminated }, restartCount };
}
/** The status between two instances: running as last reported, and not ready. */
const betweenStatus = (container: PodContainer, old: ContainerStatus | undefined): ContainerStatus =>
  old?.state.running === undefined
    ? { ...NEVER_SEEN, ...old, name: container.name, image: container.image, state: WAITING, lastState: {} }
    : old;
const WAITING: ContainerState = { waiting: { reason: "ContainerCreating" } };
const NEVER_SEEN = { ready: false, restartCount: 0, imageID: "", started: false };

const GONE_MESSAGE = "The container could not be located when the pod was deleted.  The container used to be Running";

/** The status of a container that should run but could not be started: it waits, with the reason. */
function withStart(
  { pod, runtimePod, errors }: ContainersInput,
  container: PodContainer,
  isInit: boolean,
  status: ContainerStatus,
): ContainerStatus {
  const latest = latestOf(runtimePod, container.name);
  if (isInit && latest?.state === "exited" && latest.exitCode === 0) return status;
  const isForgotten = latest === undefined && status.state.waiting !== undefined;
  if (isInit && isForgotten && !container.isSidecar && hasRegularContainer(pod, runtimePod))
    return { ...status, state: FORGOTTEN };
  const error = shouldStart(pod, container, latest) ? errors[container.name] : undefined;
  if (error === undefined) return status;
  const { reason, message } = error;
  const waiting = { reason, ...(message !== "" && { message }) };
  return {
    ...status,
    state: { waiting },
    lastState: status.state.terminated === undefined ? status.lastState : status.state,
  };
}
/** The state of an init container that is gone although regular containers were created: it must have completed. */
const FORGOTTEN: ContainerState = {
  terminated: {
    exitCode: 0,
    reason: "Completed",
    message:
      "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
  },
};

/**
 * Adds `started` and `ready`: a running container is started when its postStart hook is done and its startup probe has
 * succeeded, and ready when its readiness probe succeeds. kubelet 1.36: UpdatePodStatus, isContainerStarted.
 */
function withReadiness(
  { starting, restarting, runtimePod, probeResults }: ContainersInput,
  { name, isSidecar, probes }: PodContainer,
  isInit: boolean,
  status: ContainerStatus,
): ContainerStatus {
  const latest = latestOf(runtimePod, name);
  const isBetween = restarting.has(name) && latest?.state !== "running";
  const runs = status.state.running !== undefined && !starting.has(name) && !isBetween;
  const id = latest?.id ?? "";
  const started = runs && (probes.startup === null || probeResults.isStarted(name, id));
  const isReady = started && (probes.readiness === null || probeResults.isReady(name, id));
  const ready = isInit && !isSidecar ? status.state.terminated?.exitCode === 0 : isReady;
  return { ...status, started, ready };
}
