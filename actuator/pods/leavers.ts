import { isOver, isStopped } from "../lifecycle/finished.ts";
import type { LeftOver } from "./clean-up.ts";
import type { Errands } from "./errands.ts";
import type { Forgotten } from "./forget.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { PodIdentity } from "./places.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

const ORPHAN_GRACE_SECONDS = 30;

/** Takes away what pods leave behind. */
export class Leavers {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  readonly #errands: Errands;
  /** Ended pods that hold nothing more to take away. */
  readonly #cleared = new Set<string>();

  constructor(ports: ManagerPorts, set: PodSet, errands: Errands) {
    this.#ports = ports;
    this.#set = set;
    this.#errands = errands;
  }

  /** Takes away what is left of a pod that is over, and then its record. */
  forget(uid: string, then: () => void): void {
    const known = this.#set.get(uid);
    if (known === null) this.#deleteRecord(uid, then);
    else this.#takeAway(known, this.#all(known), () => this.#deleteRecord(uid, then));
  }

  /** Something of the daemon's own that nobody knows any more: it is ended with the grace that the runtime was told. */
  endOrphan(uid: string): void {
    const seen = this.#set.seen?.get(uid);
    if (seen === undefined) return;
    this.#errands.begin(uid, async (signal) => {
      const { worker } = this.#ports;
      if (isStopped(seen)) return (await worker.forgetLost(seen, signal)).isGone;
      return (await worker.end({ pod: null, seen, graceSeconds: ORPHAN_GRACE_SECONDS, signal })).isEnded;
    });
  }

  /**
   * Takes away what ended pods that nobody has deleted hold of the disk: their volumes, and of evicted ones all that they
   * have, since the node needs it, however many are worked at. Their records stay.
   * kubelet 1.36: SyncTerminatedPod, and the containers of evicted pods in HandlePodReconcile.
   */
  clearEnded(untouched: (uid: string) => boolean, mostAtOnce: number): void {
    for (const known of this.#set.all()) {
      const { uid, pod, record, seen } = known;
      if (record.state !== "ended" || this.#cleared.has(uid) || !untouched(uid)) continue;
      const then = (): void => void this.#cleared.add(uid);
      if (record.end?.cause === "evicted") this.#takeAway(known, this.#all(known), then);
      else if (pod.spec.volumes.length > 0 && isOver(record, seen) && this.#errands.size < mostAtOnce)
        this.#takeAway(known, () => this.#ports.worker.forgetVolumes(pod), then);
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

  #all({ pod, seen }: KnownPod) {
    return (signal: AbortSignal): Promise<Forgotten> => this.#ports.worker.forget(pod, seen, signal);
  }

  /** `then`: once it is gone. */
  #takeAway({ uid, pod }: KnownPod, work: (signal: AbortSignal) => Promise<Forgotten>, then: () => void): void {
    this.#errands.begin(uid, async (signal) => {
      const { isGone, leftOvers } = await work(signal);
      if (isGone) then();
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
