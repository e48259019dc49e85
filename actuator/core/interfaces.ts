import type { Result } from "../../api/base/result.ts";
import type { RefusedItem } from "../../api/documents/problem.ts";
import type { Kind, Verdict } from "../../api/model/decision.ts";
import type { PlaceReasons } from "../../api/model/forms.ts";
import type { DeviceClass, ResourceClaim, ResourceSlice } from "../../api/model/resource-claim.ts";

/** A fault of the outside world, in one line; the pass continues with what it has. */
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
    | "state"
    | "runtime"
    | "logs"
    | "settings";
  readonly message: string;
}

/** The known pods, by `NAMESPACE/NAME`; `file`: the file of each, if it is known. */
export type ActivePods = ReadonlyMap<string, { readonly uid: string; readonly file: string | undefined }>;

/** Where a pod was read. */
export interface PodOrigin {
  readonly file: string;
  /** The node name as it is written there. */
  readonly nodeName: unknown;
  /** Lines and columns count from 1. `path`: `spec.containers[0].name`. */
  readonly place: (path: string) => { readonly line: number; readonly column: number };
}

/** The objects of resource.k8s.io that are read with the pods. */
export interface NodeClaims {
  readonly resourceClaims: readonly ResourceClaim[];
  readonly resourceSlices: readonly ResourceSlice[];
  readonly deviceClasses: readonly DeviceClass[];
}

export interface PodsRead {
  /** The pods; null: they could not be read, which differs from none. */
  readonly pods: readonly unknown[] | null;
  /** False: some pods could not be read, so a missing pod need not be gone. */
  readonly whole: boolean;
  /** For files: the unreadable ones, which may contain missing pods. Absent: missing pods may be anywhere. */
  readonly unread?: readonly string[];
  /** The origins by object of `pods`. */
  readonly origins?: ReadonlyMap<unknown, PodOrigin>;
  /** For files: the ResourceClaims beside the pods, and the slices and classes of their devices. */
  readonly claims?: NodeClaims;
  /** For files: objects that could not be decoded as pods, with whatever identity they have. */
  readonly undecoded?: readonly RefusedItem[];
  readonly problems: readonly Problem[];
  /** Omissions that the kubelet makes too: they are reported and are no faults. */
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
  /** Facts for the next pass; null: the kind keeps none. */
  readonly next: unknown;
}

/** The node's report on a decision, as `POST /v1/results` takes it. */
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
  /** The fault of the API's last answer, until it answers correctly; absent or null: none. */
  readonly fault?: Problem | null;
  /** `ask` is the API's; it contains no facts, since the client has them. */
  decide(kind: Kind, snapshot: unknown, ask?: object): Promise<Result<DecisionAnswer, Problem>>;
  /**
   * Commits the last answer about its snapshot: its `next` is stored, and a local answer is sent when the API is
   * back. `isNews` false: the answer had no effect, so it is dropped first if too much waits.
   */
  commit(answer: DecisionAnswer, isNews?: boolean): Promise<void>;
  /** Sends a report; one that cannot be sent now is stored and sent later. */
  report(report: Omit<ResultsReport, "decisionId" | "seq">, answer: DecisionAnswer): Promise<void>;
}
