import type { CgroupsDecision, Kind, PlaceReasons, Verdict } from "../api/model/decision.ts";
import type { Result } from "../api/model/result.ts";
import type { Hierarchy } from "./cgroupfs/hierarchy.ts";
import type { Journal } from "./journal.ts";
import type { RefusedItem } from "./lifecycle/refused-item.ts";
import type { MachineFacts } from "./machine/facts.ts";
import type { StateFiles } from "./machine/state-files.ts";
import type { LastLook } from "./plan/last-look.ts";
import type { SnapshotParts } from "./snapshot.ts";

/** A fault of the outside world, in one line; the pass goes on with what it has. */
export interface Problem {
  readonly from:
    | "pods"
    | "configuration"
    | "machine"
    | "api"
    | "decision"
    | "cgroupfs"
    | "journal"
    | "state-files"
    | "devices"
    | "probes"
    | "memory"
    | "runtime"
    | "logs"
    | "settings";
  readonly message: string;
}

/** The pods that are known already, by `NAMESPACE/NAME`; `file`: where each was read, if that is known. */
export type PodsInForce = ReadonlyMap<string, { readonly uid: string; readonly file: string | undefined }>;

/** Where a pod of a source is written. */
export interface PodOrigin {
  readonly file: string;
  /** As it is written there. */
  readonly nodeName: unknown;
  /** Lines and columns count from 1. `path`: `spec.containers[0].name`. */
  readonly place: (path: string) => { readonly line: number; readonly column: number };
}

export interface PodsRead {
  /** Null: they could not be read, which is not the same as none. */
  readonly pods: readonly unknown[] | null;
  /** False: some could not be read, so a pod that is missing here need not be gone. */
  readonly whole: boolean;
  /** Of files, where it is not whole: those in which what is missing may be. Absent: it may be anywhere. */
  readonly unread?: readonly string[];
  /** By object of `pods`. */
  readonly origins?: ReadonlyMap<unknown, PodOrigin>;
  /** Of files: what stands in them and is no pod that could be read, as far as it tells who it is. */
  readonly undecoded?: readonly RefusedItem[];
  readonly problems: readonly Problem[];
  /** What was left out as the kubelet leaves it out: to be told, and no fault. */
  readonly notices: readonly Problem[];
}

export interface DecisionAnswer {
  /** The history's id; null when it was decided here and not recorded yet. */
  readonly id: string | null;
  readonly decidedBy: "api" | "here";
  readonly decision: unknown;
  readonly verdict: Verdict;
  readonly reasons: readonly PlaceReasons[];
  readonly needs: readonly string[];
  /** What the next pass is to be told; null: the kind remembers nothing. */
  readonly next: unknown;
}

/** What the node did with a decision, as `POST /v1/results` takes it. */
export interface ResultsReport {
  readonly decisionId: string;
  readonly seq: number;
  readonly at: string;
  readonly dryRun: boolean;
  readonly complete: boolean;
  readonly results: readonly unknown[];
}

export interface DecisionClient {
  /** Entries that are to be sent to the API; absent: there never are any. */
  readonly waiting?: number;
  /** What the API did wrong, until it answers rightly; absent or null: nothing. */
  readonly fault?: Problem | null;
  /** `ask` as the API takes it; facts are not part of it, the client knows them. */
  decide(kind: Kind, snapshot: unknown, ask?: object): Promise<Result<DecisionAnswer, Problem>>;
  /**
   * The last answer about its snapshot: what it has the next pass be told is remembered, and one that was made here is
   * sent when the API is back (unless `isTold` is false).
   */
  settle(answer: DecisionAnswer, isTold?: boolean): Promise<void>;
  /** Never loses a report: what cannot be sent now is kept and sent later. */
  report(report: Omit<ResultsReport, "decisionId" | "seq">, answer: DecisionAnswer): Promise<void>;
}

/** Everything of the world that one pass touches. */
export interface LoopPorts {
  readonly observeMachine: () => MachineFacts;
  /** `inForce`: which of two pods with one name counts; absent: as it was told last. */
  readonly readPods: (inForce?: PodsInForce) => Promise<PodsRead>;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  /** What was left out of the configuration that was read last; absent: nobody looks. */
  readonly configurationNotices?: () => readonly Problem[];
  readonly readStateFiles: () => StateFiles;
  /** `devices`, `devicePlugins` and `kubelet` of a snapshot; absent: no plugins are served here. */
  readonly readDevices?: () => Pick<SnapshotParts, "devices" | "devicePlugins" | "kubelet">;
  readonly client: DecisionClient;
  /** Null where this machine has no cgroup hierarchy that could be used. */
  readonly hierarchy: Hierarchy | null;
  readonly journal: Journal | null;
  /** What the last pass left behind, for the next one; absent: each is the first. */
  readonly lastLook?: { current: LastLook | null };
}

export type { CgroupsDecision };
