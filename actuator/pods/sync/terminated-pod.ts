import { basename } from "node:path";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import { faultText } from "../../containerd/fault.ts";
import { removePodLogs } from "../../containerd/logs.ts";
import type { RuntimePod } from "../../containerd/port.ts";
import { mayRun } from "../../lifecycle/instances.ts";
import { type LeftOver, removePodDirectory, removePodVolumes } from "../volumes/clean-up.ts";
import { removeOrphanedDirectory } from "../volumes/orphaned-directory.ts";
import { placesOf } from "../volumes/places.ts";
import { type OwnedRuntime, ownPartOf } from "./owned-runtime.ts";
import type { WorkerPorts } from "./worker-ports.ts";

interface CleanUpPodRequest {
  readonly pod: PodIdentity;
  readonly runtimePod: RuntimePod | null;
  readonly runtime: OwnedRuntime;
  readonly signal: AbortSignal;
  /** False: nothing is known of it but what the runtime holds. */
  readonly isRecorded: boolean;
}
export interface CleanUpPodResult {
  /** Nothing is left. */
  readonly isGone: boolean;
  /** `path`: a file, or an id of the runtime's. */
  readonly leftOvers: readonly LeftOver[];
}

/** Containers, then their sandboxes, then the files: what is found again tells that the pod is not forgotten yet. */
export async function cleanUpTerminatedPod(
  { owner, roots, mounter, logLinks }: Pick<WorkerPorts, "owner" | "roots" | "mounter" | "logLinks">,
  { pod, runtimePod, runtime, signal, isRecorded }: CleanUpPodRequest,
): Promise<CleanUpPodResult> {
  if (runtimePod !== null) {
    const own = ownPartOf(runtimePod, owner);
    const running = mayRunStill(own);
    if (running.length > 0) return left(running);
    // before the containers, so that a crash leaves no link behind
    for (const { id, name, logPath: log } of own.containers) logLinks?.unlink({ pod, container: name, id, log });
    const leftOvers = await removeFromRuntime(own, runtime, signal);
    if (leftOvers.length > 0 || signal.aborted) return { isGone: false, leftOvers };
    const foreign = foreignIn(runtimePod, own);
    if (foreign.length > 0) return left(foreign);
  }
  const places = placesOf(roots, pod);
  if (!places.ok) return left([{ path: pod.uid, why: places.error }]);
  const { logDirectory } = places.value;
  // those of containers that somebody else removed
  logLinks?.prune(new Map([[logDirectory, []]]));
  const logs = removePodLogs(roots.podLogsDirectory, basename(logDirectory));
  const files = isRecorded
    ? await removePodDirectory(places.value, mounter)
    : await removeOrphanedDirectory(places.value.podDirectory, mounter);
  return left([...(logs.ok ? [] : [{ path: logDirectory, why: logs.error }]), ...files]);
}

/** Removes the volumes of a pod that has stopped. Its containers, their logs and last words stay. */
export async function unmountVolumes(
  { roots, mounter }: Pick<WorkerPorts, "roots" | "mounter">,
  pod: PodIdentity,
): Promise<CleanUpPodResult> {
  const places = placesOf(roots, pod);
  return left(places.ok ? await removePodVolumes(places.value, mounter) : [{ path: pod.uid, why: places.error }]);
}

const left = (leftOvers: readonly LeftOver[]): CleanUpPodResult => ({ isGone: leftOvers.length === 0, leftOvers });

/** A sandbox may be ready still: removing it stops it. */
const mayRunStill = (own: RuntimePod): readonly LeftOver[] =>
  own.containers
    .filter((container) => mayRun({ ...own, sandboxes: [], containers: [container] }))
    .map(({ id, name }) => ({ path: id, why: `container ${name} runs still` }));

const foreignIn = (runtimePod: RuntimePod, own: RuntimePod): readonly LeftOver[] =>
  [...runtimePod.containers, ...runtimePod.sandboxes]
    .filter((one) => ![...own.containers, ...own.sandboxes].some(({ id }) => id === one.id))
    .map(({ id }) => ({ path: id, why: "it is not this daemon's own" }));

/**
 * Sandboxes are stopped before containers are removed, as by a kubelet: a runtime that takes a container for exited whose task runs does
 * not remove it until its sandbox has stopped. kubelet 1.37: killPodWithSyncResult, then the garbage collection.
 */
async function removeFromRuntime(own: RuntimePod, runtime: OwnedRuntime, signal: AbortSignal): Promise<LeftOver[]> {
  const phases = [
    own.sandboxes.map(({ id }) => ({ id, run: () => runtime.stopSandbox(id) })),
    own.containers.map(({ id }) => ({ id, run: () => runtime.removeContainer(id) })),
    own.sandboxes.map(({ id }) => ({ id, run: () => runtime.removeSandbox(id) })),
  ];
  const leftOvers: LeftOver[] = [];
  for (const steps of phases) {
    // a sandbox whose container stays, or that cannot be stopped, is not removed
    if (leftOvers.length > 0) break;
    for (const { id, run } of steps) {
      if (signal.aborted) break;
      const done = await run();
      if (!done.ok && done.error.code !== "NOT_FOUND") leftOvers.push({ path: id, why: faultText(done.error) });
    }
  }
  return leftOvers;
}
