import { basename } from "node:path";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import type { RuntimePod, RuntimePods } from "../../containerd/cri.ts";
import { faultText } from "../../containerd/fault.ts";
import { removePodLogs } from "../../containerd/logs.ts";
import { goErrorText } from "../../core/error-text.ts";
import { containersToKill, stoppingMessage } from "../../lifecycle/container-termination.ts";
import { podAddresses } from "../../lifecycle/env.ts";
import { mayRun } from "../../lifecycle/instances.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { PodEvents } from "../records/records.ts";
import { type LeftOver, removePodDirectory, removePodVolumes } from "../volumes/clean-up.ts";
import {
  type OrphanedDirectoryResult,
  removeOrphanedDirectory,
  sweepOrphanedDirectory,
} from "../volumes/orphaned-directories.ts";
import { placesOf } from "../volumes/places.ts";
import { OwnedRuntime, ownPartOf } from "./owned-runtime.ts";
import { stopPod } from "./stop-container.ts";
import { syncPod } from "./sync-pod.ts";
import type {
  SyncPodRequest,
  SyncPodResult,
  TerminatingPodRequest,
  TerminatingPodResult,
  WorkerDeps,
} from "./worker-deps.ts";

/** Carries out what pods need, one sync at a time per pod. Nothing here throws: a failure becomes an event and a sentence. */
export class PodWorker {
  readonly #deps: WorkerDeps;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
  }

  /** Works in the kubelet's order: kill, remove, devices, volumes, sandbox, init containers, containers. kubelet 1.36: SyncPod. */
  async sync(asked: SyncPodRequest): Promise<SyncPodResult> {
    const nothing = { sandboxId: null, started: [], faults: {}, undecided: [], refusal: null, isCut: false };
    const places = placesOf(this.#deps.roots, asked.pod);
    if (!places.ok) return { ...nothing, error: places.error };
    const { events, runtime } = this.#of(asked.pod, asked.runtimePod, asked.pod);
    try {
      return await syncPod(this.#deps, asked, { places: places.value, runtime, events });
    } catch (error) {
      return { ...nothing, error: unexpected(error) };
    }
  }

  /** Restores missing links to the logs of the pod's containers, after somebody removed them or a crash prevented them. */
  link(pod: PodIdentity, runtimePod: RuntimePod): void {
    for (const { id, name, logPath: log } of ownPartOf(runtimePod, this.#deps.owner).containers)
      if (log !== "") this.#deps.logLinks?.link({ pod, container: name, id, log });
  }

  /** Removes links to logs of these pods if the runtime no longer has their container. `held`: all pods in the runtime, whoever made them. */
  pruneLinks(pods: readonly PodIdentity[], held: RuntimePods): void {
    const staying = pods.flatMap((pod) => {
      const places = placesOf(this.#deps.roots, pod);
      const containers = held.get(pod.uid)?.containers ?? [];
      const stay = containers.map(({ id, name }) => ({ container: name, id }));
      return places.ok ? [[places.value.logDirectory, stay] as const] : [];
    });
    this.#deps.logLinks?.prune(new Map(staying));
  }

  /** Stops everything of a pod that this daemon owns. It may be called again at any time, also after a crash. */
  async end({ pod, runtimePod, graceSeconds, signal }: TerminatingPodRequest): Promise<TerminatingPodResult> {
    const { clock, profile, owner, node } = this.#deps;
    const { events, runtime } = this.#of(pod ?? runtimePod, runtimePod);
    const own = ownPartOf(runtimePod, owner);
    const podIPs = own.sandboxes[0]?.ips ?? [];
    const stops = pod === null ? bareStops(own) : containersToKill(pod, own);
    try {
      const podIps = pod === null ? podIPs : podAddresses(pod, { hostIPs: node().hostIPs, podIPs });
      const context = { pod, runtime, events, clock, profile, signal, podIps };
      const errors = await stopPod(context, stops, own.sandboxes, graceSeconds);
      if (errors.length === 0) return { isEnded: !signal.aborted, error: null };
      const error = `error killing pod: ${errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`}`;
      if (!signal.aborted) events.warning("FailedKillPod", error);
      return { isEnded: false, error };
    } catch (error) {
      return { isEnded: false, error: unexpected(error) };
    }
  }

  /**
   * Removes what is left of an ended pod: containers, sandboxes, logs, directory. The files stay while something of the pod
   * runs, belongs to somebody else, or cannot be removed from the runtime.
   */
  async forget(pod: PodIdentity, runtimePod: RuntimePod | null, signal: AbortSignal): Promise<CleanUpPodResult> {
    const { runtime } = this.#of(pod, runtimePod);
    return forgotten(pod, cleanUpTerminatedPod(this.#deps, { pod, runtimePod, runtime, signal, isRecorded: true }));
  }

  /** As `forget`, for a pod without a record: its directory stays if a volume holds something. */
  async forgetOrphan(runtimePod: RuntimePod, signal: AbortSignal): Promise<CleanUpPodResult> {
    const { runtime } = this.#of(runtimePod, runtimePod);
    return forgotten(
      runtimePod,
      cleanUpTerminatedPod(this.#deps, { pod: runtimePod, runtimePod, runtime, signal, isRecorded: false }),
    );
  }

  /** Removes only the volumes of an ended pod. INVARIANT: called when nothing of the pod runs. */
  forgetVolumes(pod: PodIdentity): Promise<CleanUpPodResult> {
    return forgotten(pod, unmountVolumes(this.#deps, pod));
  }

  /** Removes the directories that this daemon made for pods not in `known`. `recorded`: the known pods with records. */
  async clear(known: ReadonlySet<string>, recorded: ReadonlySet<string>): Promise<OrphanedDirectoryResult> {
    const { roots, mounter, owner, logLinks } = this.#deps;
    try {
      return await sweepOrphanedDirectory({ ...roots, owner, known, recorded, logLinks }, mounter);
    } catch (error) {
      return { removed: [], stays: [{ path: roots.podsDirectory, why: goErrorText(error) }], foreign: [] };
    }
  }

  #of(pod: PodIdentity, runtimePod: RuntimePod | null, started: RunnablePod | null = null) {
    const { runtime, owner, clock, onEvent } = this.#deps;
    return {
      events: new PodEvents(pod, clock, onEvent),
      runtime: new OwnedRuntime(runtime, owner, pod.uid, runtimePod, started),
    };
  }
}

const forgotten = (pod: PodIdentity, work: Promise<CleanUpPodResult>): Promise<CleanUpPodResult> =>
  work.catch((error: unknown) => ({
    isGone: false,
    leftOvers: [{ path: `${pod.namespace}/${pod.name}`, why: unexpected(error) }],
  }));

const bareStops = (own: RuntimePod) =>
  own.containers
    .filter(({ state }) => state === "running")
    .map(({ id, name }) => ({
      containerId: id,
      name,
      message: stoppingMessage(name),
      waitsFor: [],
      preStop: null,
    }));

/** A mistake in the code ends one pod's sync, not the daemon that runs the others. */
const unexpected = (error: unknown): string => `unexpected: ${(error as Error).message}`;

interface CleanUpPodRequest {
  readonly pod: PodIdentity;
  readonly runtimePod: RuntimePod | null;
  readonly runtime: OwnedRuntime;
  readonly signal: AbortSignal;
  /** False: the pod is known only from the runtime. */
  readonly isRecorded: boolean;
}
export interface CleanUpPodResult {
  /** True: nothing of the pod is left. */
  readonly isGone: boolean;
  /** `path`: a file, or an id in the runtime. */
  readonly leftOvers: readonly LeftOver[];
}

/** Removes containers, then sandboxes, then files, so that an interrupted removal is found and continued. */
async function cleanUpTerminatedPod(
  { owner, roots, mounter, logLinks }: Pick<WorkerDeps, "owner" | "roots" | "mounter" | "logLinks">,
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
  // links of containers that somebody else removed
  logLinks?.prune(new Map([[logDirectory, []]]));
  const logs = removePodLogs(roots.podLogsDirectory, basename(logDirectory));
  const files = isRecorded
    ? await removePodDirectory(places.value, mounter)
    : await removeOrphanedDirectory(places.value.podDirectory, mounter);
  return left([...(logs.ok ? [] : [{ path: logDirectory, why: logs.error }]), ...files]);
}

/** Removes the volumes of a pod that has stopped. Its containers, their logs and termination messages stay. */
async function unmountVolumes(
  { roots, mounter }: Pick<WorkerDeps, "roots" | "mounter">,
  pod: PodIdentity,
): Promise<CleanUpPodResult> {
  const places = placesOf(roots, pod);
  return left(places.ok ? await removePodVolumes(places.value, mounter) : [{ path: pod.uid, why: places.error }]);
}

const left = (leftOvers: readonly LeftOver[]): CleanUpPodResult => ({ isGone: leftOvers.length === 0, leftOvers });

/** A sandbox may still be ready: removing it stops it. */
const mayRunStill = (own: RuntimePod): readonly LeftOver[] =>
  own.containers
    .filter((container) => mayRun({ ...own, sandboxes: [], containers: [container] }))
    .map(({ id, name }) => ({ path: id, why: `container ${name} runs still` }));

const foreignIn = (runtimePod: RuntimePod, own: RuntimePod): readonly LeftOver[] =>
  [...runtimePod.containers, ...runtimePod.sandboxes]
    .filter((one) => ![...own.containers, ...own.sandboxes].some(({ id }) => id === one.id))
    .map(({ id }) => ({ path: id, why: "it is not this daemon's own" }));

/**
 * Stops sandboxes before it removes containers, as the kubelet does: a runtime that reports a container as exited while its task
 * runs does not remove it until its sandbox has stopped. kubelet 1.37: killPodWithSyncResult, then the garbage collection.
 */
async function removeFromRuntime(own: RuntimePod, runtime: OwnedRuntime, signal: AbortSignal): Promise<LeftOver[]> {
  const phases = [
    own.sandboxes.map(({ id }) => ({ id, run: () => runtime.stopSandbox(id) })),
    own.containers.map(({ id }) => ({ id, run: () => runtime.removeContainer(id) })),
    own.sandboxes.map(({ id }) => ({ id, run: () => runtime.removeSandbox(id) })),
  ];
  const leftOvers: LeftOver[] = [];
  for (const steps of phases) {
    // a sandbox stays while one of its containers does, or if it cannot be stopped
    if (leftOvers.length > 0) break;
    for (const { id, run } of steps) {
      if (signal.aborted) break;
      const done = await run();
      if (!done.ok && done.error.code !== "NOT_FOUND") leftOvers.push({ path: id, why: faultText(done.error) });
    }
  }
  return leftOvers;
}
