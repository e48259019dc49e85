import type { RunnablePod } from "../pod.ts";
import { LOST, LOST_CODE, LOST_MESSAGE } from "./instance.ts";
import type { ContainerStatus } from "./status.ts";

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
