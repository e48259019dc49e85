import { isStopped } from "../lifecycle/finished.ts";
import type { LeftOver } from "./clean-up.ts";
import type { Errands } from "./errands.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { PodIdentity } from "./places.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

const ORPHAN_GRACE_SECONDS = 30;

/** Takes away what pods leave behind. */
export class Leavers {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  readonly #errands: Errands;
  /** Ended pods of which nothing is left but their records. */
  readonly #cleared = new Set<string>();

  constructor(ports: ManagerPorts, set: PodSet, errands: Errands) {
    this.#ports = ports;
    this.#set = set;
    this.#errands = errands;
  }

  /** Takes away what is left of a pod that is over, and then its record. */
  forget(uid: string, then: () => void): void {
    const known = this.#set.get(uid);
    const seen = this.#set.seen?.get(uid) ?? null;
    if (known === null) {
      this.#deleteRecord(uid, then);
      return;
    }
    this.#errands.begin(uid, async (signal) => {
      const { isGone, leftOvers } = await this.#ports.worker.forget(known.pod, seen, signal);
      if (isGone) this.#deleteRecord(uid, then);
      this.#tell(known.pod, leftOvers);
      return isGone;
    });
  }

  /** Something of the daemon's own that nobody knows any more: it is ended with the grace that the runtime was told. */
  endOrphan(uid: string): void {
    const seen = this.#set.seen?.get(uid);
    if (seen === undefined) return;
    this.#errands.begin(uid, async (signal) => {
      const { worker } = this.#ports;
      if (isStopped(seen)) return (await worker.forget(seen, seen, signal)).isGone;
      return (await worker.end({ pod: null, seen, graceSeconds: ORPHAN_GRACE_SECONDS, signal })).isEnded;
    });
  }

  /**
   * Takes away what evicted pods that nobody has deleted hold of the disk: the node needs it. Their records stay.
   * kubelet 1.36: SyncTerminatedPod, and the containers of evicted pods in HandlePodReconcile.
   */
  clearEvicted(untouched: (uid: string) => boolean): void {
    for (const known of this.#set.all()) {
      const { state, end } = known.record;
      const isEvicted = state === "ended" && end?.cause === "evicted";
      if (isEvicted && untouched(known.uid) && !this.#cleared.has(known.uid)) this.#clear(known);
    }
  }
  /** Nothing of an evicted pod is left that takes up room. */
  isCleared(uid: string): boolean {
    return this.#cleared.has(uid);
  }

  #clear({ uid, pod, seen }: KnownPod): void {
    this.#errands.begin(uid, async (signal) => {
      const { isGone, leftOvers } = await this.#ports.worker.forget(pod, seen, signal);
      if (isGone) this.#cleared.add(uid);
      this.#tell(pod, leftOvers);
      return isGone;
    });
  }

  #tell({ namespace, name }: PodIdentity, leftOvers: readonly LeftOver[]): void {
    for (const { path, why } of leftOvers)
      this.#ports.onProblem({ from: "pods", message: `${namespace}/${name} leaves ${path}: ${why}` });
  }

  #deleteRecord(uid: string, then: () => void): void {
    const deleted = this.#set.records.delete(uid);
    if (!deleted.ok) {
      this.#ports.onProblem({ from: "pods", message: deleted.error });
      return;
    }
    this.#set.forget(uid);
    this.#cleared.delete(uid);
    then();
  }
}
