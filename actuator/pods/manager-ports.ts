import type { Result } from "../../api/model/result.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { Journal } from "../journal.ts";
import type { PodContainer, RunnablePod } from "../lifecycle/pod.ts";
import type { PassReport } from "../loop.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { ListeningPorts } from "../machine/listening-ports.ts";
import type { PassClock } from "../pass-clock.ts";
import type { DecisionClient, LoopPorts, Problem } from "../ports.ts";
import type { Counters } from "../status/counters.ts";
import type { PodClock } from "./clock.ts";
import type { DeviceDesk } from "./devices/port.ts";
import type { ManagerFiles } from "./manager-files.ts";
import type { PodProbes } from "./pod-probes.ts";
import type { CompleteContainer } from "./pod-set.ts";
import type { OnPodEvent, PodRuntime } from "./ports.ts";
import type { Processes } from "./processes.ts";
import type { PodRecords } from "./records.ts";
import type { PodWorker } from "./worker.ts";

/** Everything of the world that running pods touches. */
export interface ManagerPorts {
  readonly clock: PodClock;
  readonly evictionClock: PassClock;
  readonly runtime: Pick<PodRuntime, "pods" | "updateContainer">;
  readonly worker: Pick<PodWorker, "sync" | "end" | "forget" | "forgetLost" | "forgetVolumes" | "clear">;
  readonly readPods: LoopPorts["readPods"];
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly observeMachine: () => MachineFacts;
  readonly client: DecisionClient;
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
  readonly records: PodRecords;
  readonly files: ManagerFiles;
  /** Device plugins; absent: none are served. */
  readonly devices?: DeviceDesk;
  /** Absent: nothing is probed. */
  readonly probes?: PodProbes;
  /** Absent: processes that nobody accounts for are told, and never killed. */
  readonly processes?: Processes;
  /** Absent: nobody looks who has the host's ports. */
  readonly listening?: ListeningPorts;
  readonly complete: CompleteContainer;
  readonly hashOf: (pod: RunnablePod, container: PodContainer) => string;
  /** Statistics of the node and of its pods; absent: nothing is evicted. */
  readonly stats?: StatsSource;
  /** What the last of them could not see. */
  readonly unseen?: () => readonly Problem[];
  /** Frees what the node itself can free; answers whether anything was. */
  readonly reclaim?: (functions: readonly string[]) => Promise<void>;
  /** What happens to pods is counted; absent: nowhere. */
  readonly counters?: Pick<Counters, "restarted" | "refused" | "evicted" | "preempted">;
  readonly onEvent: OnPodEvent;
  readonly onProblem: (problem: Problem) => void;
  readonly onPass: (report: PassReport) => void;
  /** A piece of work has ended: there is something new to see. */
  readonly onWorked: () => void;
}
/** `stats` of a snapshot, of this moment. */
export type StatsSource = () => Promise<Readonly<Record<string, unknown>>>;

export interface ManagerSettings {
  readonly nodeName: string;
  /** On everything that the daemon makes in the runtime. */
  readonly owner: string;
  readonly hostIPs: readonly string[];
  readonly cgroupMount: string;
  readonly cgroupRoot: string;
  readonly removeOrphans: boolean;
  readonly intervalMs: number;
  readonly evictionMs: number;
  readonly retryMs: number;
  /** Pods that are worked at side by side. */
  readonly mostAtOnce: number;
}
