import type { Result } from "../../api/base/result.ts";
import type { GcOperation } from "../../api/model/container-gc.ts";
import type { Runtime, RuntimeLists } from "../containerd/cri.ts";
import type { ImageFileSystems } from "../containerd/file-systems.ts";
import type { LogRemoval, ObservedLogs } from "../containerd/logs.ts";
import type { DecisionAnswer, DecisionClient, PodsRead, Problem } from "../core/interfaces.ts";
import type { PassClock } from "../core/pass-clock.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { GcJournal, GcKind, Space } from "./journal.ts";

/** Access to the files of containers' logs, in the kubelet's directories. */
export interface LogFiles {
  observe(): ObservedLogs;
  removePodLogs(name: string): LogRemoval | Promise<LogRemoval>;
  removeLogLink(name: string): LogRemoval;
  /** Removes a container's log and its rotated files; a missing file is no error. */
  removeContainerLog(logPath: string): Result<null, string>;
}

/** Everything of the world that a collection touches. */
export interface GcDeps {
  readonly runtime: Runtime;
  readonly logs: LogFiles;
  readonly observeMachine: () => MachineFacts;
  /** `whole` is false also if no source of pods is set. */
  readonly readPods: () => Promise<PodsRead>;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly observeDisks: (lists: RuntimeLists) => ImageFileSystems;
  /** The clock of the passes over images. */
  readonly clock: PassClock;
  readonly evictionClock: PassClock;
  readonly client: DecisionClient;
  /** The journal; null in a dry run, which removes nothing. */
  readonly journal: GcJournal | null;
}

/** The result of one removal, for people and the log. */
export interface RemovalReport {
  readonly kind: GcKind;
  readonly target: "image" | "container" | "sandbox" | "pod-logs" | "log-link";
  readonly id: string;
  /** A name for people: an image's tag, or `NAMESPACE/POD CONTAINER`. */
  readonly name: string;
  /** The size of an image, as the runtime counts it; null: the target is no image. */
  readonly bytes: number | null;
  readonly why: string;
  readonly end: "removed" | "failed" | "stopped";
  readonly message?: string;
}
/** Observations, decisions and actions of one collection. */
export interface CollectionReport {
  readonly at: string;
  readonly kind: GcKind;
  readonly operation: GcOperation;
  /** True: nothing was to be removed. */
  readonly dryRun: boolean;
  /** The last answer, which knows all ends; null: nothing could be decided. */
  readonly answer: DecisionAnswer | null;
  readonly removals: readonly RemovalReport[];
  /** The free space for images; `after` is null if nothing was removed. */
  readonly fileSystem: { readonly before: Space | null; readonly after: Space | null };
  /** True: everything that was planned is removed. */
  readonly complete: boolean;
  readonly problems: readonly Problem[];
}
/** The eviction manager's disk signals now, and the results of its node-level functions. */
export interface ReclaimReport {
  readonly answer: DecisionAnswer;
  readonly ran: readonly string[];
}
/** The passes that were due at one time. */
export interface GcReport {
  readonly at: string;
  readonly reclaim: ReclaimReport | null;
  readonly collections: readonly CollectionReport[];
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
}
