import { restartsAfter } from "../instances.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";
import type { ContainerStatus, Phase } from "./status.ts";

interface Counts {
  pending: number;
  unstartedSidecars: number;
  failedInit: number;
  running: number;
  waiting: number;
  stopped: number;
  stoppedForGood: number;
  succeeded: number;
}

/**
 * The phase that the statuses of all containers make up. `isTerminal`: nothing of the pod is started any more, whatever
 * its restart policy; `hasBegun`: one of its own containers is in its sandbox. kubelet 1.36: getPhase.
 */
export function phaseOf(
  pod: RunnablePod,
  statuses: readonly ContainerStatus[],
  { isTerminal, hasBegun }: { isTerminal: boolean; hasBegun: boolean },
): Phase {
  const n = count(pod, statuses);
  if (n.failedInit > 0) return "Failed";
  if (n.pending > 0 || (n.unstartedSidecars > 0 && !hasBegun) || n.waiting > 0) return "Pending";
  if (n.running > 0) return "Running";
  if (n.stopped === 0) return "Pending";
  const isOver = (isTerminal && !pod.isStatic) || n.stopped === n.stoppedForGood;
  if (!isOver) return "Running";
  return n.stopped === n.succeeded ? "Succeeded" : "Failed";
}

function count(pod: RunnablePod, statuses: readonly ContainerStatus[]): Counts {
  const n: Counts = {
    pending: 0,
    unstartedSidecars: 0,
    failedInit: 0,
    running: 0,
    waiting: 0,
    stopped: 0,
    stoppedForGood: 0,
    succeeded: 0,
  };
  const statusOf = (c: PodContainer): ContainerStatus | undefined => statuses.find((s) => s.name === c.name);
  for (const c of pod.spec.initContainers) (c.isSidecar ? countSidecar : countInit)(n, pod, c, statusOf(c));
  for (const c of pod.spec.containers) countRegular(n, pod, c, statusOf(c));
  return n;
}

function countInit(n: Counts, pod: RunnablePod, c: PodContainer, status: ContainerStatus | undefined): void {
  const exitCode = endOf(status);
  if (exitCode === undefined) n.pending++;
  else if (exitCode !== 0 && !restartsAfter(pod, c, exitCode)) n.failedInit++;
}

/** Its end does not matter for the phase. */
function countSidecar(n: Counts, _: RunnablePod, __: PodContainer, status: ContainerStatus | undefined): void {
  if (status?.state.running !== undefined) {
    n.running++;
    if (!status.started) n.unstartedSidecars++;
  } else if (endOf(status) === undefined) {
    n.unstartedSidecars++;
    n.waiting++;
  }
}

function countRegular(n: Counts, pod: RunnablePod, c: PodContainer, status: ContainerStatus | undefined): void {
  const exitCode = endOf(status);
  if (status?.state.running !== undefined) n.running++;
  else if (exitCode !== undefined) {
    n.stopped++;
    if (!restartsAfter(pod, c, exitCode)) n.stoppedForGood++;
    if (status?.state.terminated?.exitCode === 0) n.succeeded++;
  } else n.waiting++;
}

/** The exit code of one that has ended, or that waits after its end. */
function endOf(status: ContainerStatus | undefined): number | undefined {
  const { state, lastState } = status ?? {};
  return state?.terminated?.exitCode ?? (state?.waiting === undefined ? undefined : lastState?.terminated?.exitCode);
}
