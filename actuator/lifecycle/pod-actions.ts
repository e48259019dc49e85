import type { HeldBack, KillContainer, PodActions, StartContainer } from "./actions.ts";
import { heldBack } from "./back-off.ts";
import { containerActions } from "./container-actions.ts";
import { initActions } from "./init-actions.ts";
import { latestOf, nothingSeen } from "./instances.ts";
import { leftoverContainers } from "./leftovers.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import { NO_RESULTS, type ProbeResults } from "./probe-results.ts";
import type { PodRecord } from "./record.ts";
import { CONTAINER_HASH, type RuntimePod } from "./runtime-pod.ts";
import { type SandboxNeed, sandboxNeed } from "./sandbox-change.ts";

export interface ActionOptions {
  readonly nowMs: number;
  readonly backOff: PodRecord["backOff"];
  /** What the annotation CONTAINER_HASH of a container of this definition says. */
  readonly hashOf: (container: PodContainer) => string;
  /** Running containers whose resize policy wants a restart. */
  readonly resizeRestarts?: ReadonlySet<string>;
  /** Containers that were stopped for one: they start, whatever their exit code was, and at once. */
  readonly stoppedForResize?: ReadonlySet<string>;
  /** Absent: nothing is probed. */
  readonly resultOf?: ProbeResults;
  /** Container's name -> restart count for its next start where the runtime knows no instance: from its old log files. */
  readonly attempts?: Readonly<Record<string, number>>;
}
/** What is wanted before back-offs are looked at. */
interface Wish {
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  readonly init: readonly PodContainer[];
  readonly regular: readonly PodContainer[];
  readonly kill: readonly KillContainer[];
}

/**
 * What a pod that lives needs now. `seen`: what the runtime holds of it; null: nothing. `killPod` without `createSandbox`
 * means that it is over: nothing of it is to run again. kubelet 1.36: computePodActions, and the back-offs of SyncPod.
 */
export function podActions(pod: RunnablePod, seen: RuntimePod | null, options: ActionOptions): PodActions {
  const now = seen ?? nothingSeen(pod);
  const sandbox = sandboxNeed(pod, now);
  const wish = sandbox.isNew ? fromTheStart(pod, now, sandbox) : goOn(pod, now, options);
  return {
    killPod: wish.killPod,
    createSandbox: wish.createSandbox,
    sandboxId: sandbox.sandboxId,
    attempt: sandbox.attempt,
    ...dueOf(wish, now, options),
    toKill: wish.kill,
    toRemove: leftoverContainers(pod, now, wish.createSandbox),
  };
}

/**
 * Nothing of it is to run again, whether or not all of it had its turn: its sandbox was lost after something of a pod ran
 * that must not run twice, or an init container failed for good.
 */
export function isGivenUp(pod: RunnablePod, seen: RuntimePod | null): boolean {
  // another definition starts nothing that runs no more
  const hashOf = ({ name }: PodContainer): string =>
    (seen === null ? undefined : latestOf(seen, name))?.annotations[CONTAINER_HASH] ?? "";
  const { killPod, createSandbox } = podActions(pod, seen, { nowMs: 0, backOff: {}, hashOf });
  return killPod && !createSandbox;
}

/** Everything is killed and begins again with the first init container, unless it has done its work. */
function fromTheStart(pod: RunnablePod, seen: RuntimePod, { attempt }: SandboxNeed): Wish {
  const over: Wish = { killPod: true, createSandbox: false, init: [], regular: [], kill: [] };
  const { restartPolicy, initContainers, containers } = pod.spec;
  if (restartPolicy === "Never" && attempt !== 0 && seen.containers.length > 0) return over;
  const due = containers.filter((c) => restartPolicy !== "OnFailure" || !hasSucceeded(seen, c));
  if (due.length === 0) return over;
  const isInit = initContainers.length > 0;
  return { ...over, createSandbox: true, init: initContainers.slice(0, 1), regular: isInit ? [] : due };
}

function hasSucceeded(seen: RuntimePod, { name }: PodContainer): boolean {
  const latest = latestOf(seen, name);
  return latest?.state === "exited" && latest.exitCode === 0;
}

function goOn(pod: RunnablePod, seen: RuntimePod, options: ActionOptions): Wish {
  const { hashOf, resizeRestarts = new Set(), stoppedForResize = new Set(), resultOf = NO_RESULTS } = options;
  const wanted = { hashOf, resizeRestarts, stoppedForResize, resultOf };
  const init = initActions(pod, seen, wanted);
  const wish: Wish = { killPod: init.killPod, createSandbox: false, init: init.start, regular: [], kill: init.kill };
  if (init.killPod || !init.isDone) return wish;
  const own = containerActions(pod, seen, wanted);
  const isOver = own.kept === 0 && own.start.length === 0;
  // sidecars alone keep no pod alive
  return {
    ...wish,
    killPod: isOver,
    init: isOver ? [] : init.start,
    regular: own.start,
    kill: [...init.kill, ...own.kill],
  };
}

/** A back-off holds one container back; one of an init container that others wait for holds back all that follow it. */
function dueOf(wish: Wish, seen: RuntimePod, options: ActionOptions) {
  const held: HeldBack[] = [];
  const isFree = (c: PodContainer): boolean => {
    const hold = options.stoppedForResize?.has(c.name) === true ? null : heldBack(c, seen, options);
    if (hold !== null) held.push(hold);
    return hold === null;
  };
  const startOf = ({ name }: PodContainer): StartContainer => {
    const latest = latestOf(seen, name);
    return { name, attempt: latest === undefined ? (options.attempts?.[name] ?? 0) : latest.attempt + 1 };
  };
  const initToStart: StartContainer[] = [];
  for (const container of wish.init) {
    if (isFree(container)) initToStart.push(startOf(container));
    else if (!container.isSidecar) return { initToStart, toStart: [], heldBack: held };
  }
  return { initToStart, toStart: wish.regular.filter(isFree).map(startOf), heldBack: held };
}
