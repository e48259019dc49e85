import type { PodIdentity } from "../../../api/documents/problem.ts";
import type { Problem } from "../../core/interfaces.ts";
import { isOver, isStopped } from "../../lifecycle/pod-state.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { LeftOver } from "../volumes/clean-up.ts";
import type { PodWorkQueue } from "./pod-work-queue.ts";
import type { CleanUpPodResult, PodWorker } from "./pod-worker.ts";

const ORPHAN_GRACE_SECONDS = 30;

interface Deps {
  readonly worker: Pick<PodWorker, "end" | "forget" | "forgetLost" | "forgetVolumes">;
  readonly onProblem: (problem: Problem) => void;
}

/** Takes away what pods leave behind. */
export class PodCleanup {
  readonly #deps: Deps;
  readonly #set: PodSet;
  readonly #queue: PodWorkQueue;
  /** Ended pods that hold nothing more to take away. */
  readonly #cleared = new Set<string>();

  constructor(deps: Deps, set: PodSet, queue: PodWorkQueue) {
    this.#deps = deps;
    this.#set = set;
    this.#queue = queue;
  }

  /** Takes away all that is left of a pod of which nothing runs. `then`: once it is gone. */
  remove(known: KnownPod, then: () => void): void {
    this.#takeAway(known, this.#all(known), then);
  }

  /** Something of the daemon's own that nobody knows any more: it is ended with the grace that the runtime was told. */
  endOrphan(uid: string): void {
    const runtimePod = this.#set.runtimePods?.get(uid);
    if (runtimePod === undefined) return;
    this.#queue.begin(uid, async (signal) => {
      const { worker } = this.#deps;
      if (isStopped(runtimePod)) return (await worker.forgetLost(runtimePod, signal)).isGone;
      return (await worker.end({ pod: null, runtimePod, graceSeconds: ORPHAN_GRACE_SECONDS, signal })).isEnded;
    });
  }

  /**
   * Takes away what ended pods that nobody has deleted hold of the disk: their volumes, and of evicted ones all that they
   * have, since the node needs it, however many are worked at. Their records stay.
   * kubelet 1.36: SyncTerminatedPod, and the containers of evicted pods in HandlePodReconcile.
   */
  clearEnded(untouched: (uid: string) => boolean, maxAtOnce: number): void {
    for (const known of this.#set.all()) {
      const { uid, pod, record, runtimePod } = known;
      if (record.state !== "terminated" || this.#cleared.has(uid) || !untouched(uid)) continue;
      const then = (): void => void this.#cleared.add(uid);
      if (record.end?.cause === "evicted") this.#takeAway(known, this.#all(known), then);
      else if (pod.spec.volumes.length > 0 && isOver(record, runtimePod) && this.#queue.size < maxAtOnce)
        this.#takeAway(known, () => this.#deps.worker.forgetVolumes(pod), then);
    }
  }
  /** It is started anew, so that there will be something to take away again. */
  reopen(uid: string): void {
    this.#cleared.delete(uid);
  }
  /** Nothing of an ended pod is left that `clearEnded` takes away. */
  isCleared(uid: string): boolean {
    return this.#cleared.has(uid);
  }

  #all({ pod, runtimePod }: KnownPod) {
    return (signal: AbortSignal): Promise<CleanUpPodResult> => this.#deps.worker.forget(pod, runtimePod, signal);
  }

  /** `then`: once it is gone. */
  #takeAway({ uid, pod }: KnownPod, work: (signal: AbortSignal) => Promise<CleanUpPodResult>, then: () => void): void {
    this.#queue.begin(uid, async (signal) => {
      const { isGone, leftOvers } = await work(signal);
      if (isGone) then();
      this.#tell(pod, leftOvers);
      return isGone;
    });
  }

  #tell({ namespace, name }: PodIdentity, leftOvers: readonly LeftOver[]): void {
    for (const { path, why } of leftOvers)
      this.#deps.onProblem({ from: "pods", message: `${namespace}/${name} leaves ${path}: ${why}` });
  }
}
