import { unreachable } from "../../../api/base/result.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { type PodSourceChange, podSourceDiff } from "../../lifecycle/pod-source-diff.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import { type DesiredPods, keptForUnreadFiles } from "../records/desired-pods.ts";
import { nameIn, type PodSet } from "../records/pod-set.ts";
import type { Resizer } from "../resize/resizer.ts";
import { OrphanedDirectories } from "../volumes/orphaned-directories.ts";
import type { PodCleanup } from "./pod-cleanup.ts";

type Deps = ConstructorParameters<typeof OrphanedDirectories>[0];
interface Parts {
  readonly set: PodSet;
  readonly lifecycle: PodLifecycle;
  readonly cleanup: PodCleanup;
  readonly resizer: Resizer;
}

/** Compares the desired pods with the known ones and tells the lifecycle which pods were added, changed or removed. */
export class PodReconciler {
  readonly #parts: Parts;
  readonly #orphaned: OrphanedDirectories;

  constructor(deps: Deps, parts: Parts) {
    this.#parts = parts;
    this.#orphaned = new OrphanedDirectories(deps);
  }

  /** Reconciles with the desired pods. A source that could not be read starts nothing and ends nothing. */
  reconcile(desired: DesiredPods | null, isUnread: boolean, nowMs: number): readonly Problem[] {
    const problems: Problem[] = [];
    const { set, resizer } = this.#parts;
    const changes = podSourceDiff({
      desired: desired?.pods ?? new Map(),
      whole: !isUnread && desired?.whole === true,
      unread: isUnread ? null : (desired?.unread ?? null),
      files: desired?.files ?? new Map(),
      refused: desired?.refusedItems ?? [],
      records: set.records.entries(),
      runtimePods: set.runtimePods,
    });
    resizer.begin();
    for (const change of changes) {
      const fault = this.#apply(change, nowMs, desired?.files ?? new Map());
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
    const stay = changes.flatMap((change) => (change.kind === "unconfirmed" ? [nameIn(set, change.uid)] : []));
    if (stay.length > 0) problems.push(keptForUnreadFiles(stay, desired?.unread ?? []));
    const { runtimePods, allRuntimePods: held, records } = set;
    if (!isUnread && desired?.whole === true)
      problems.push(...this.#orphaned.sweep({ runtimePods, held, records: records.known }));
    return problems;
  }

  /** Returns why the change cannot be persisted; null if it is. */
  #apply(change: PodSourceChange, nowMs: number, files: ReadonlyMap<string, string>): string | null {
    const { set, lifecycle, cleanup } = this.#parts;
    switch (change.kind) {
      case "added":
      case "adopted": {
        const { pod } = change;
        const kind = change.kind === "added" ? "Added" : "Adopted";
        return lifecycle.handle(pod.uid, { kind, pod, file: files.get(pod.uid), nowMs });
      }
      case "updated":
        return this.#change(change.uid, change.pod);
      case "deleted":
        return lifecycle.handle(change.uid, { kind: "DeletionRequested", graceSeconds: change.graceSeconds, nowMs });
      case "removed":
        return lifecycle.handle(change.uid, { kind: "DeletionRequested", graceSeconds: null, nowMs });
      case "orphaned":
        cleanup.endOrphan(change.uid);
        return null;
      case "moved":
        return lifecycle.handle(change.uid, { kind: "FileMoved", file: change.file });
      case "unconfirmed":
        return null;
      case "lastGood":
        return `${nameIn(set, change.uid)} stays as it was read last: ${change.why}`;
      default:
        return unreachable(change);
    }
  }

  #change(uid: string, pod: RunnablePod): string | null {
    const { set, lifecycle, resizer } = this.#parts;
    const known = set.get(uid);
    if (known === null) return null;
    if (known.record.state !== "pending") return resizer.change(known, pod);
    return lifecycle.handle(uid, { kind: "SpecUpdated", pod: pod.object });
  }
}
