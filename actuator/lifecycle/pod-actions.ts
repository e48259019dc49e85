import { type BackOffLimits, CRASH_LOOP_BACK_OFF } from "../../api/decide/probes/back-off.ts";
import { CONTAINER_HASH, type RuntimeContainer, type RuntimePod } from "../containerd/cri.ts";
import {
  type ContainerBackOff,
  type KillContainer,
  NO_RESULTS,
  type PodActions,
  type ProbeResults,
  type StartContainer,
} from "./actions.ts";
import { inBackOff, isChanged } from "./back-off.ts";
import { emptyRuntimePod, initFailed, latestOf, shouldStart } from "./instances.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import type { PodRecord } from "./record.ts";

interface ActionOptions {
  readonly nowMs: number;
  readonly backOff: PodRecord["backOff"];
  readonly limits: BackOffLimits;
  /** The value of the annotation CONTAINER_HASH for a container of this definition. */
  readonly hashOf: (container: PodContainer) => string;
  /** Running containers whose resize policy requires a restart. */
  readonly resizeRestarts?: ReadonlySet<string>;
  /** Containers that were stopped for a resize: they start at once, whatever their exit code. */
  readonly stoppedForResize?: ReadonlySet<string>;
  /** The probe results; absent: nothing is probed. */
  readonly resultOf?: ProbeResults;
}
/** The computed starts and stops, before back-offs are considered. */
interface ComputedActions {
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  readonly init: readonly PodContainer[];
  readonly regular: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
}

/**
 * The actions that a living pod needs now. `runtimePod` null: the runtime has nothing of it. `killPod` without `createSandbox`
 * means that the pod is over: nothing of it runs again. kubelet 1.36: computePodActions, and the back-offs of SyncPod.
 */
export function podActions(pod: RunnablePod, runtimePod: RuntimePod | null, options: ActionOptions): PodActions {
  const now = runtimePod ?? emptyRuntimePod(pod);
  const sandbox = sandboxNeed(pod, now);
  const computed = sandbox.isNew ? fromTheStart(pod, now, sandbox) : goOn(pod, now, options);
  return {
    killPod: computed.killPod,
    createSandbox: computed.createSandbox,
    sandboxId: sandbox.sandboxId,
    attempt: sandbox.attempt,
    ...dueOf(computed, now, options),
    toKill: computed.kill,
    toRemove: leftoverContainers(pod, now, computed.createSandbox),
  };
}

/**
 * Whether nothing of the pod may run again, even if some containers never ran: its sandbox was lost after something ran
 * that must not run twice, or an init container failed for good.
 */
export function isGivenUp(pod: RunnablePod, runtimePod: RuntimePod | null): boolean {
  // A changed container hash does not restart a stopped container.
  const hashOf = ({ name }: PodContainer): string =>
    (runtimePod === null ? undefined : latestOf(runtimePod, name))?.annotations[CONTAINER_HASH] ?? "";
  const { killPod, createSandbox } = podActions(pod, runtimePod, {
    nowMs: 0,
    backOff: {},
    limits: CRASH_LOOP_BACK_OFF,
    hashOf,
  });
  return killPod && !createSandbox;
}

/** Kills everything and starts over with the first init container, unless the pod has finished. */
function fromTheStart(pod: RunnablePod, runtimePod: RuntimePod, { attempt }: SandboxNeed): ComputedActions {
  const over: ComputedActions = { killPod: true, createSandbox: false, init: [], regular: [], kill: [] };
  const { restartPolicy, initContainers, containers } = pod.spec;
  if (restartPolicy === "Never" && attempt !== 0 && runtimePod.containers.length > 0) return over;
  const due = containers.filter((c) => restartPolicy !== "OnFailure" || !hasSucceeded(runtimePod, c));
  if (due.length === 0) return over;
  const isInit = initContainers.length > 0;
  return { ...over, createSandbox: true, init: initContainers.slice(0, 1), regular: isInit ? [] : due };
}

function hasSucceeded(runtimePod: RuntimePod, { name }: PodContainer): boolean {
  const latest = latestOf(runtimePod, name);
  return latest?.state === "exited" && latest.exitCode === 0;
}

function goOn(pod: RunnablePod, runtimePod: RuntimePod, options: ActionOptions): ComputedActions {
  const { hashOf, resizeRestarts = new Set(), stoppedForResize = new Set(), resultOf = NO_RESULTS } = options;
  const inputs = { hashOf, resizeRestarts, stoppedForResize, resultOf };
  const init = initActions(pod, runtimePod, inputs);
  const computed: ComputedActions = {
    killPod: init.killPod,
    createSandbox: false,
    init: init.start,
    regular: [],
    kill: init.kill,
  };
  if (init.killPod || !init.isDone) return computed;
  const own = containerActions(pod, runtimePod, inputs);
  const isOver = own.kept === 0 && own.start.length === 0;
  // sidecars alone do not keep a pod running
  return {
    ...computed,
    killPod: isOver,
    init: isOver ? [] : init.start,
    regular: own.start,
    kill: [...init.kill, ...own.kill],
  };
}

/** Applies back-offs: each delays its container, and that of an init container also delays all containers after it. */
function dueOf(computed: ComputedActions, runtimePod: RuntimePod, options: ActionOptions) {
  const held: ContainerBackOff[] = [];
  const isFree = (c: PodContainer): boolean => {
    const hold = options.stoppedForResize?.has(c.name) === true ? null : inBackOff(c, runtimePod, options);
    if (hold !== null) held.push(hold);
    return hold === null;
  };
  const startOf = ({ name }: PodContainer): StartContainer => {
    const latest = latestOf(runtimePod, name);
    return { name, attempt: latest === undefined ? 0 : latest.attempt + 1 };
  };
  const initToStart: StartContainer[] = [];
  for (const container of computed.init) {
    if (isFree(container)) initToStart.push(startOf(container));
    else if (!container.isSidecar) return { initToStart, toStart: [], heldBack: held };
  }
  return { initToStart, toStart: computed.regular.filter(isFree).map(startOf), heldBack: held };
}

/**
 * Ids of instances that are no longer needed. The newest stopped instance of each container stays: it has the last
 * state, the restart count and the back-off. Init containers are all removed with their sandbox, so that they run
 * again. kubelet 1.36: purgeInitContainers, pruneInitContainersBeforeStart, evictContainers with one dead instance a
 * container.
 */
function leftoverContainers(pod: RunnablePod, runtimePod: RuntimePod, isNewSandbox: boolean): readonly string[] {
  const ofInit = pod.spec.initContainers.flatMap(({ name }) => {
    const instances = runtimePod.containers.filter((c) => c.name === name);
    return isNewSandbox ? instances : instances.filter(isDead).slice(1);
  });
  const ofRegular = pod.spec.containers.flatMap(({ name }) => {
    const dead = runtimePod.containers.filter((c) => c.name === name && c.state !== "running");
    const lastEnd = dead.find((c) => c.state === "exited");
    return dead.slice(1).filter((c) => c !== lastEnd);
  });
  return [...ofInit, ...ofRegular].map((c) => c.id);
}

const isDead = (c: RuntimeContainer): boolean => c.state === "exited" || c.state === "unknown";

interface InitActions {
  /** True: the regular containers may start. */
  readonly isDone: boolean;
  /** True: an init container failed for good. */
  readonly killPod: boolean;
  /** Containers to start, in order. */
  readonly start: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
}
interface ActionInputs {
  readonly hashOf: (container: PodContainer) => string;
  readonly resizeRestarts: ReadonlySet<string>;
  readonly resultOf: ProbeResults;
}
/** The actions for one init container. */
interface Step {
  readonly start?: boolean;
  readonly startNext?: boolean;
  readonly kill?: KillContainer;
  readonly killPod?: boolean;
}

/**
 * Examines init containers from last to first: the last one that the runtime knows shows how far the pod has come,
 * since earlier ones may have been removed. Before it only sidecars matter, which are kept running. kubelet 1.36:
 * computeInitContainerActions.
 */
function initActions(pod: RunnablePod, runtimePod: RuntimePod, inputs: ActionInputs): InitActions {
  const containers = pod.spec.initContainers;
  let isDone = containers.length === 0 || hasBegun(pod, runtimePod);
  let isPast = isDone;
  const start: PodContainer[] = [];
  const kill: KillContainer[] = [];
  for (const [i, container] of [...containers.entries()].reverse()) {
    const latest = latestOf(runtimePod, container.name);
    if (isPast && !container.isSidecar) continue;
    if (latest === undefined) {
      if (isPast) start.unshift(container);
      continue;
    }
    const step = container.isSidecar ? sidecarStep(container, latest, inputs) : initStep(pod, container, latest);
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

/** Whether a regular container exists that is not left from before a reboot: then init containers do not run again. */
const hasBegun = (pod: RunnablePod, runtimePod: RuntimePod): boolean =>
  pod.spec.containers.some((c) => {
    const state = latestOf(runtimePod, c.name)?.state;
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

function sidecarStep(container: PodContainer, latest: RuntimeContainer, inputs: ActionInputs): Step {
  if (latest.state === "unknown") return { start: true, kill: killUnknown(latest) };
  if (latest.state !== "running") return { start: true };
  const { name, probes } = container;
  const kill = (message: string, probe?: FailedProbe): Step => ({
    startNext: probe !== "startup",
    start: true,
    kill: { containerId: latest.id, name, message, ...(probe !== undefined && { probe }) },
  });
  const startup = probes.startup === null ? "Success" : inputs.resultOf(latest.id, "startup");
  if (startup === "Failure") return kill(`Init container ${name} failed startup probe`, "startup");
  // later containers wait until it has started
  if (startup !== "Success") return {};
  if (isChanged(container, latest, inputs.hashOf)) return kill(`Init container ${name} definition changed`);
  const liveness = probes.liveness === null ? "Success" : inputs.resultOf(latest.id, "liveness");
  if (liveness === undefined) return { startNext: true };
  if (liveness === "Failure") return kill(`Init container ${name} failed liveness probe`, "liveness");
  if (inputs.resizeRestarts.has(name)) return kill(`Container ${name} resize requires restart`);
  return { startNext: true };
}

const killUnknown = ({ id, name }: RuntimeContainer): KillContainer => ({
  containerId: id,
  name,
  message: `Init container is in "unknown" state, try killing it before restart`,
});

interface ContainerActions {
  readonly start: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
  /** The number of running containers that stay unchanged. */
  readonly kept: number;
}

/** The actions for a pod whose init containers are done. kubelet 1.36: the second half of computePodActions. */
function containerActions(
  pod: RunnablePod,
  runtimePod: RuntimePod,
  inputs: {
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
    const latest = latestOf(runtimePod, name);
    const probe = latest === undefined ? null : failedProbe(latest, inputs.resultOf);
    if (latest?.state !== "running") {
      if (!inputs.stoppedForResize.has(name) && !shouldStart(pod, container, latest)) continue;
      start.push(container);
      if (latest?.state === "unknown")
        kill.push(killOf(latest, `Container is in "unknown" state, try killing it before restart`));
    } else if (isChanged(container, latest, inputs.hashOf)) {
      start.push(container);
      kill.push(killOf(latest, `Container ${name} definition changed, will be restarted`));
    } else if (probe !== null) {
      const isAgain = pod.spec.restartPolicy !== "Never";
      if (isAgain) start.push(container);
      const message = `Container ${name} failed ${probe} probe${isAgain ? ", will be restarted" : ""}`;
      kill.push({ ...killOf(latest, message), probe });
    } else if (inputs.resizeRestarts.has(name)) {
      start.push(container);
      kill.push(killOf(latest, `Container ${name} resize requires restart`));
    } else kept++;
  }
  return { start, kill, kept };
}

type FailedProbe = "liveness" | "startup";
/** The failed probe of a container; null: none. */
const failedProbe = ({ id }: RuntimeContainer, resultOf: ProbeResults): FailedProbe | null =>
  (["liveness", "startup"] as const).find((type) => resultOf(id, type) === "Failure") ?? null;

const killOf = ({ id, name }: RuntimeContainer, message: string): KillContainer => ({ containerId: id, name, message });

interface SandboxNeed {
  /** True: the newest sandbox cannot be used, or there is none. */
  readonly isNew: boolean;
  /** The attempt of the sandbox in use, or of the one to create. */
  readonly attempt: number;
  /** The sandbox in use; null: it must be created. */
  readonly sandboxId: string | null;
}

/**
 * Decides whether a pod needs another sandbox: there is none, more than one is ready, the newest is not ready, or its
 * network does not fit. A sandbox has addresses only on a network of its own, so one without an address does not fit a
 * pod off the host's network, and one with an address does not fit a pod on it. kubelet 1.36: PodSandboxChanged.
 */
export function sandboxNeed(pod: RunnablePod, runtimePod: RuntimePod): SandboxNeed {
  const newest = runtimePod.sandboxes[0];
  if (newest === undefined) return { isNew: true, attempt: 0, sandboxId: null };
  const ready = runtimePod.sandboxes.filter((s) => s.isReady).length;
  const isOnHost = newest.ips.length === 0;
  if (ready > 1 || !newest.isReady || isOnHost !== pod.spec.hostNetwork)
    return { isNew: true, attempt: newest.attempt + 1, sandboxId: null };
  return { isNew: false, attempt: newest.attempt, sandboxId: newest.id };
}
