import type { PodIdentity } from "../../../api/documents/problem.ts";
import type { Problem } from "../../core/interfaces.ts";
import { isOver, isStopped } from "../../lifecycle/pod-state.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { LeftOver } from "../volumes/clean-up.ts";
import type { PodWorkQueue } from "./pod-work-queue.ts";
import type { CleanUpPodResult, PodWorker } from "./pod-worker.ts";

const ORPHAN_GRACE_SECONDS = 30;

interface Deps {
  readonly worker: Pick<PodWorker, "end" | "forget" | "forgetOrphan" | "forgetVolumes">;
  readonly onProblem: (problem: Problem) => void;
}

/** Removes what pods leave behind. */
export class PodCleanup {
  readonly #deps: Deps;
  readonly #set: PodSet;
  readonly #queue: PodWorkQueue;
  /** Ended pods with nothing left to remove. */
  readonly #cleared = new Set<string>();

  constructor(deps: Deps, set: PodSet, queue: PodWorkQueue) {
    this.#deps = deps;
    this.#set = set;
    this.#queue = queue;
  }

  /** Removes everything that is left of a pod of which nothing runs. `then` is called once it is gone. */
  remove(known: KnownPod, then: () => void): void {
    this.#cleanUp(known, this.#all(known), then);
  }

  /** Ends and removes sandboxes and containers of this daemon whose pod has no record. */
  endOrphan(uid: string): void {
    const runtimePod = this.#set.runtimePods?.get(uid);
    if (runtimePod === undefined) return;
    this.#queue.begin(uid, async (signal) => {
      const { worker } = this.#deps;
      if (isStopped(runtimePod)) return (await worker.forgetOrphan(runtimePod, signal)).isGone;
      return (await worker.end({ pod: null, runtimePod, graceSeconds: ORPHAN_GRACE_SECONDS, signal })).isEnded;
    });
  }

  /**
   * Frees the disk space of ended pods that are not deleted yet: removes their volumes, and everything of evicted pods, since
   * the node needs the space; evicted pods do not count against `maxAtOnce`. The pods' records stay.
   * kubelet 1.36: SyncTerminatedPod, and the containers of evicted pods in HandlePodReconcile.
   */
  clearEnded(untouched: (uid: string) => boolean, maxAtOnce: number): void {
    for (const known of this.#set.all()) {
      const { uid, pod, record, runtimePod } = known;
      if (record.state !== "terminated" || this.#cleared.has(uid) || !untouched(uid)) continue;
      const then = (): void => void this.#cleared.add(uid);
      if (record.end?.cause === "evicted") this.#cleanUp(known, this.#all(known), then);
      else if (pod.spec.volumes.length > 0 && isOver(record, runtimePod) && this.#queue.size < maxAtOnce)
        this.#cleanUp(known, () => this.#deps.worker.forgetVolumes(pod), then);
    }
  }
  /** The pod is started anew, so there will be something to remove again. */
  reopen(uid: string): void {
    this.#cleared.delete(uid);
  }
  /** True if `clearEnded` has removed everything of the ended pod that it removes. */
  isCleared(uid: string): boolean {
    return this.#cleared.has(uid);
  }

  #all({ pod, runtimePod }: KnownPod) {
    return (signal: AbortSignal): Promise<CleanUpPodResult> => this.#deps.worker.forget(pod, runtimePod, signal);
  }

  /** Calls `then` once the pod's files are gone. */
  #cleanUp({ uid, pod }: KnownPod, work: (signal: AbortSignal) => Promise<CleanUpPodResult>, then: () => void): void {
    this.#queue.begin(uid, async (signal) => {
      const { isGone, leftOvers } = await work(signal);
      if (isGone) then();
      this.#report(pod, leftOvers);
      return isGone;
    });
  }

  #report({ namespace, name }: PodIdentity, leftOvers: readonly LeftOver[]): void {
    for (const { path, why } of leftOvers)
      this.#deps.onProblem({ from: "pods", message: `${namespace}/${name} leaves ${path}: ${why}` });
  }
}
