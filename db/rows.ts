import { decodeToken, encodeToken } from "../api/base/page-token.ts";
import type { Result } from "../api/base/result.ts";
import type { ContainerGcTarget, GcOperation, RemovalState } from "../api/model/container-gc.ts";
import type { Explain, Kind } from "../api/model/decision.ts";
import type { RemovingKind } from "../api/model/kinds.ts";
import type { StoreFailure } from "./failure.ts";

export const REMOVAL_TARGETS = ["image", "container", "sandbox", "pod-logs", "log-link"] as const satisfies readonly (
  | "image"
  | ContainerGcTarget
)[];
export type RemovalTarget = (typeof REMOVAL_TARGETS)[number];
export type RemovalEnd = Exclude<RemovalState, "planned">;

/** An object that a pass removed, or tried to remove. */
export interface Removal {
  readonly target: RemovalTarget;
  /** CRI id; of logs and links the name. */
  readonly id: string;
  /** Runtime handler of an image that is stored for one; empty: none. */
  readonly runtimeHandler: string;
  /** Tags, or digests, of an image. */
  readonly names: readonly string[];
  /** The size of an image; null: it is not known, or no image. */
  readonly sizeBytes: number | null;
  readonly why: string;
  readonly end: RemovalEnd;
  /** The runtime's message. */
  readonly message: string | null;
  readonly pod: PodRef | null;
  /** The container's name. */
  readonly container: string | null;
}
/** An image that an earlier pass removed and that exists again. */
export interface ReturnedImage {
  readonly id: string;
  readonly runtimeHandler: string;
  readonly againAtMs: number;
}
/** A decision's list of one pass's removals; the same pass may be reported again with more of them. */
export interface Removals {
  readonly kind: RemovingKind;
  readonly operation: GcOperation;
  /** Names the pass: the time of its snapshot. */
  readonly atMs: number;
  readonly removals: readonly Removal[];
  readonly returns: readonly ReturnedImage[];
}

/** A removal as stored. */
export interface RemovalRow extends Removal {
  readonly kind: RemovingKind;
  readonly operation: GcOperation;
  readonly atMs: number;
  /** The decision that reported this end; it may no longer be in the history. */
  readonly decisionId: string;
  /** When the image was seen again; null: never. */
  readonly againAtMs: number | null;
}

/** Half-open: `sinceMs` <= atMs < `untilMs`. */
export interface RemovalFilter {
  readonly node: string;
  readonly kind?: RemovingKind;
  readonly target?: RemovalTarget;
  readonly end?: RemovalEnd;
  /** A part of an id, of an image's name, of `NAMESPACE/POD` or of a container's name, in upper or lower case. */
  readonly search?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}
export interface RemovalQuery extends RemovalFilter {
  /** 1 to `MAX_PAGE`; other values are clamped. */
  readonly limit: number;
  readonly pageToken?: string;
}
export interface RemovalPage {
  /** Newest pass first. */
  readonly items: readonly RemovalRow[];
  readonly nextPageToken: string | null;
}

/** The gain and cost of collecting a node's images. */
export interface ImageTotals {
  readonly removed: number;
  readonly failed: number;
  readonly stopped: number;
  /** Bytes of the removed images: the kubelet's own sum. */
  readonly bytes: number;
  /** Number of those removals after which the image came back, and its bytes. */
  readonly pulledAgain: number;
  readonly pulledAgainBytes: number;
  /** The median time that such an image was away; null: none came back. */
  readonly medianAwayMs: number | null;
}
/** One removed image, under one runtime handler. */
export interface ImageCost {
  readonly id: string;
  readonly runtimeHandler: string;
  /** The names at its last removal, like its size. */
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly times: number;
  readonly again: number;
  /** Total bytes over all returns. */
  readonly againBytes: number;
  readonly lastRemovedAtMs: number;
  readonly lastAgainAtMs: number | null;
}
export interface TargetCount {
  readonly target: RemovalTarget;
  readonly end: RemovalEnd;
  readonly count: number;
}
export interface RemovalSummary {
  readonly totals: ImageTotals;
  /** The most expensive images first, at most `MAX_COSTS`. */
  readonly images: readonly ImageCost[];
  /** The counts of all other targets. */
  readonly others: readonly TargetCount[];
}
export const MAX_COSTS = 50;

/** An action of a kubelet, and its comparison with a decision. */
export interface OutcomeRow {
  readonly id: string;
  readonly node: string;
  /** An `OutcomeKind` and an `AgreementVerdict`, unless another version wrote them. */
  readonly kind: string;
  readonly verdict: string;
  readonly atMs: number;
  readonly recordedAtMs: number;
  /** The last snapshot before it, which is stored as long as this row. */
  readonly snapshotId: string | null;
  readonly pod: PodRef | null;
  /** The kubelet's reason; null: none, or recorded before reasons were. */
  readonly reason: string | null;
  /** JSON text, which the store never parses. */
  readonly body: string;
}
/** Half-open: `sinceMs` <= atMs < `untilMs`. */
export interface OutcomeFilter {
  readonly node?: string;
  readonly kind?: string;
  readonly verdict?: string;
  readonly reason?: string;
  /** A uid, a `namespace/name`, or a name. */
  readonly pod?: string;
  readonly namespace?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}
export interface OutcomeQuery extends OutcomeFilter {
  /** 1 to `MAX_PAGE`; other values are clamped. */
  readonly limit: number;
  readonly pageToken?: string;
}
export interface OutcomePage {
  /** Newest first. */
  readonly items: readonly OutcomeRow[];
  readonly nextPageToken: string | null;
}
/** The number of outcomes of a kind with a result, in the requested time from `fromMs` on. */
export interface OutcomeTally {
  readonly fromMs: number;
  readonly kind: string;
  readonly verdict: string;
  readonly count: number;
}

/** A failure that a stream yields in place of a decision. */
export interface StreamFailure extends StoreFailure {
  /** The unreadable decision, after which the stream continues. Absent: it ends. */
  readonly row?: StreamedHead;
}

/** A head with its sequence number: with its time, the place from which a stream continues. */
export interface StreamedHead extends DecisionHead {
  readonly seq: number;
}

export type StreamedDecision = DecisionRow & StreamedHead;

interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A node's state as posted. Times are milliseconds since the epoch; `body` is JSON text, which the store never parses. */
export interface SnapshotRow {
  /** The hash of the canonical form: the same snapshot twice is one row. */
  readonly id: string;
  readonly node: string;
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
  readonly storedAtMs: number;
  readonly body: string;
  /** Only for writing, as in `NodeRow`. */
  readonly labels?: string | null;
  readonly kubeletVersion?: string | null;
  readonly conditions?: string | null;
  /**
   * Only for writing: ranges of the body that the node's next rows will repeat, each stored once. A range consists of whole
   * members, with the comma before them.
   */
  readonly repeats?: Ranges;
  /** Only for writing: pieces used instead of `body`. */
  readonly pieces?: readonly BodyPiece[];
}

/** Parts of a text, from and to (exclusive) in UTF-16 units, in order and apart. */
export type Ranges = readonly (readonly [from: number, to: number])[];

/** A piece of a body as its writer puts it together. Ranges are UTF-16 units, from and to (exclusive). */
export type BodyPiece =
  /** Text of the row's own. */
  | string
  /** A range of a shared text that is known to be stored. `bytes`: of this range, in UTF-8. */
  | { readonly id: string; readonly from: number; readonly to: number; readonly bytes: number }
  /** A text to be stored as shared. INVARIANT: `id` is the beginning of its sha256, 32 hex digits. */
  | { readonly id: string; readonly text: string };

/**
 * A text that rows share, at its position in a row's own text. `id` identifies its content; it is unpacked when read.
 */
export interface SharedText {
  readonly at: number;
  readonly id: string;
  /** True: it was written as a piece, which may begin and end within a member. */
  readonly isRange?: true;
  readonly read: () => Promise<Result<string, StoreFailure>>;
}
/** A body in pieces, as made by `cut`. */
export interface Pieces {
  readonly rest: string;
  /** The shared texts, in order. */
  readonly shared: readonly SharedText[];
}
export interface SnapshotInPieces extends Omit<SnapshotRow, "body" | "repeats" | "pieces"> {
  readonly pieces: Pieces;
}
export interface NodeRow {
  readonly name: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** The boot id, id and sequence of the node's latest snapshot. */
  readonly bootId: string | null;
  readonly lastSnapshotId: string | null;
  readonly lastSequence: number | null;
  /** JSON of the node's labels; null: no snapshot with a node was received since labels are stored. */
  readonly labels: string | null;
  /** The kubelet's version as reported, such as `v1.36.3`; null likewise. */
  readonly kubeletVersion: string | null;
  /** JSON of the pressure conditions that are True in that snapshot; null: none reported, or likewise. */
  readonly conditions: string | null;
  /** When the node's cluster reported its deletion, until the node sends something again; null: never. */
  readonly deletedMs: number | null;
}

/** The repetitions of a decision: one row, like the series of a Kubernetes event. */
interface Series {
  /** How often the decision was made, including the first time: 2 or more. */
  readonly times: number;
  readonly lastAtMs: number;
  /** The snapshot of the last time; the head's `snapshotId` is that of the first. Both are stored as long as the row. */
  readonly lastSnapshotId: string | null;
}

/** The fields of a decision that a list shows. */
export interface DecisionHead {
  readonly id: string;
  /** A `Kind`, unless another version wrote it: check it with `isKind` before use. */
  readonly kind: string;
  readonly node: string;
  readonly snapshotId: string | null;
  readonly policyVersion: string;
  readonly verdict: string;
  /** The kubelet's reason (`KindSpec.reasonOf`); null: none, or recorded before reasons were. */
  readonly reason: string | null;
  readonly explain: Explain;
  readonly decidedAtMs: number;
  /** The pod that the ask was about, or that the decision chose. */
  readonly pod: PodRef | null;
  /** The repetitions; absent: the decision was made once. Only for reading. */
  readonly series?: Series;
}

/** How often a decision was made, and the time and snapshot of the last time. */
export const seriesOf = ({
  series,
  decidedAtMs,
  snapshotId,
}: Pick<DecisionHead, "series" | "decidedAtMs" | "snapshotId">): Series =>
  series ?? { times: 1, lastAtMs: decidedAtMs, lastSnapshotId: snapshotId };

/** `ask` and `body` (decision, reasons, needs, next) are JSON text. */
export interface DecisionRow extends DecisionHead {
  readonly ask: string | null;
  readonly body: string;
  /** Likewise, of whatever. */
  readonly repeats?: Ranges;
  readonly pieces?: readonly BodyPiece[];
}

/** The number of decisions with the same result, in an hour or several, for sums over all nodes. */
export interface Counted {
  readonly decisions: number;
  /** Answered with a refusal. */
  readonly refused: number;
  /** Eviction passes that chose a pod. */
  readonly evicted: number;
}
export interface Tally extends Counted {
  /** Eviction passes that found a condition, whether or not they chose a pod. */
  readonly pressured: number;
  /** Passes of a garbage collection that had something to remove. */
  readonly removed: number;
}
export interface HourRow extends Counted {
  readonly hourMs: number;
}
/** A kind's newest decision, which may be pruned meanwhile. */
export interface LatestRow {
  readonly decisionId: string;
  readonly verdict: string;
  /** When the decision was made; if it was repeated, the last time. */
  readonly decidedAtMs: number;
  /** The policy version; empty: the decision was removed before versions were recorded here. */
  readonly policyVersion: string;
  readonly reason: string | null;
  /** See `Recording`. */
  readonly summary: string | null;
}
export interface RefusalCount {
  /** The decision's reason, or its verdict if it has none. */
  readonly reason: string;
  readonly count: number;
}
/** Actions of a node's kubelet on pods, from the reported outcomes; each pod counts once per reason. */
export interface KubeletCounts {
  /** Anything that it did was reported, whatever and whenever that was. */
  readonly kubeletReported: boolean;
  readonly kubeletRefused: number;
  /** The most frequent first. Their sum is `kubeletRefused`. */
  readonly kubeletRefusals: readonly RefusalCount[];
  readonly kubeletEvicted: number;
}
export interface FleetRow extends NodeRow, Counted, KubeletCounts {
  readonly latest: Readonly<Partial<Record<Kind, LatestRow>>>;
  /** The most frequent first. Their sum is `refused`. */
  readonly refusals: readonly RefusalCount[];
  /** The node's report on its newest cgroups decision: the files that were not as decided; null: nothing. */
  readonly report: { readonly okCount: number; readonly failedCount: number; readonly atMs: number } | null;
}

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  /** sha256 of the secret, in hex. The secret itself is never stored. */
  readonly hash: string;
  readonly scopes: readonly string[];
  /** The only node that the token may act for; null: any. */
  readonly node: string | null;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

/** A place in a list that is ordered by time, then by the order of storing. */
export interface Cursor {
  readonly atMs: number;
  readonly seq: number;
}

/** An opaque token that continues a list after `place`. */
export const encodePageToken = (place: Cursor): string => encodeToken(`${place.atMs}.${place.seq}`);

/** The place of a token; null when no list gave it out. */
export function decodePageToken(token: string): Cursor | null {
  const parts = /^(-?\d{1,16})\.(\d{1,16})$/.exec(decodeToken(token) ?? "");
  if (parts === null) return null;
  const place = { atMs: Number(parts[1]), seq: Number(parts[2]) };
  return encodePageToken(place) === token ? place : null;
}
