import type { BackOffLimits } from "../../api/decide/probes/back-off.ts";
import type { Result } from "../../api/model/result.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { Journal } from "../apply/journal.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { PodRuntime } from "../containerd/port.ts";
import type { DecisionClient, Problem } from "../core/ports.ts";
import type { PodContainer, RunnablePod } from "../lifecycle/pod.ts";
import type { Served } from "../lifecycle/spec/at.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { ListeningPorts } from "../machine/listening-ports.ts";
import type { LoopPorts, PassReport } from "../pass/loop.ts";
import type { Counters } from "../status/counters.ts";
import type { GivenDevices } from "./admission/foreign-sandboxes.ts";
import type { OtherKubelet } from "./admission/other-kubelet.ts";
import type { CurrentCgroups } from "./cgroups/cgroup-view.ts";
import type { Processes } from "./cgroups/orphan-processes.ts";
import type { ManagerFiles } from "./devices/manager-files.ts";
import type { NodeClaimsPort } from "./devices/pod-claims.ts";
import type { NodeDevices } from "./devices/port.ts";
import type { EvictionPorts } from "./eviction/evictor.ts";
import type { OnPodEvent, PodClock } from "./ports.ts";
import type { CompleteContainer, PodHealth, PodProbes } from "./records/pod-set.ts";
import type { PodRecords } from "./records/records.ts";
import type { PodWorker } from "./sync/pod-worker.ts";

/** Ports of the pod manager, by subject, for whoever opens them. Each part says itself which of them it needs. */
export interface PodManagerPorts {
  readonly clock: PodClock;
  readonly pods: PodPorts;
  readonly runtime: RuntimePorts;
  readonly node: NodePorts;
  readonly decisions: DecisionPorts;
  readonly eviction: EvictionPorts;
  readonly observers: PodEventPorts;
}

/** Pods that are to run, and those that were known before. */
export interface PodPorts {
  readonly readPods: LoopPorts["readPods"];
  readonly records: PodRecords;
}

/** The container runtime, and who works at pods in it. */
export interface RuntimePorts {
  readonly runtime: Pick<PodRuntime, "pods" | "updateContainer">;
  readonly worker: Pick<
    PodWorker,
    "sync" | "link" | "pruneLinks" | "end" | "forget" | "forgetLost" | "forgetVolumes" | "clear"
  >;
  readonly complete: CompleteContainer;
  readonly hashOf: (pod: RunnablePod, container: PodContainer) => string;
  /** Absent: nothing is probed. */
  readonly probes?: PodProbes;
  /** Absent: nobody looks whether another kubelet uses the runtime. */
  readonly otherKubelet?: Pick<OtherKubelet, "observe" | "view" | "problems" | "takeStops">;
}

/** The machine and its configuration. */
export interface NodePorts {
  readonly observeMachine: () => MachineFacts;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
  /** The manager keeps it current. */
  readonly cgroups: CurrentCgroups;
  /** Absent: processes that nobody accounts for are told, and never killed. */
  readonly processes?: Processes;
  /** Absent: nobody looks who has the host's ports. */
  readonly listening?: ListeningPorts;
}

/** Whom decisions are asked of, and the state files that they are told and leave. */
export interface DecisionPorts {
  readonly client: DecisionClient;
  readonly files: ManagerFiles;
  /** Device plugins; absent: none are served. */
  readonly devices?: NodeDevices;
  /** ResourceClaims; absent: no DRA drivers are served. */
  readonly claims?: NodeClaimsPort;
  /** The health of the devices that pods hold; absent: nobody tells of it. */
  readonly health?: PodHealth;
  /** The devices that pods hold according to what a kubelet left behind. Absent: nobody holds any. */
  readonly kubeletsDevices?: () => Result<readonly GivenDevices[], string>;
}

/** Listeners for what happens. */
export interface PodEventPorts {
  readonly onEvent: OnPodEvent;
  readonly onProblem: (problem: Problem) => void;
  readonly onPass: (report: PassReport) => void;
  /** A piece of work has ended: there is something new to see. */
  readonly onWorked: () => void;
  /** Counters of what happens to pods; absent: nobody counts. */
  readonly counters?: Pick<Counters, "restarted" | "refused" | "evicted" | "preempted">;
}

export interface ManagerSettings {
  readonly nodeName: string;
  /** The kubelet that is played. */
  readonly profile: Profile;
  /** Absent: nothing that a setting has to ask for. */
  readonly serves?: Served;
  /** On everything that the daemon makes in the runtime. */
  readonly owner: string;
  readonly hostIPs: readonly string[];
  readonly cgroupMount: string;
  readonly cgroupRoot: string;
  readonly removeOrphans: boolean;
  readonly intervalMs: number;
  readonly evictionMs: number;
  readonly retryMs: number;
  /** Delays of containers that end again and again; the configuration may change while the daemon runs. */
  readonly backOff: BackOffLimits;
  /** Pods that are worked at side by side. */
  readonly maxAtOnce: number;
}
