import type { ContainerGcTarget, GcOperation, RemovalState } from "../api/model/container-gc.ts";
import type { RemovingKind } from "../api/model/kinds.ts";
import type { PodRef } from "./rows.ts";

export const REMOVAL_TARGETS = ["image", "container", "sandbox", "pod-logs", "log-link"] as const satisfies readonly (
  | "image"
  | ContainerGcTarget
)[];
export type RemovalTarget = (typeof REMOVAL_TARGETS)[number];
export type RemovalEnd = Exclude<RemovalState, "planned">;

/** One thing that a pass took away, or tried to. */
export interface Removal {
  readonly target: RemovalTarget;
  /** CRI id; of logs and links the name. */
  readonly id: string;
  /** Runtime handler of an image that is kept for one; empty: none. */
  readonly runtimeHandler: string;
  /** Tags, or digests, of an image. */
  readonly names: readonly string[];
  /** Of an image. */
  readonly sizeBytes: number | null;
  readonly why: string;
  readonly end: RemovalEnd;
  /** The runtime's words. */
  readonly message: string | null;
  readonly pod: PodRef | null;
  /** The container's name. */
  readonly container: string | null;
}
/** An image that an earlier pass removed and that is there again. */
export interface Return {
  readonly id: string;
  readonly runtimeHandler: string;
  readonly againAtMs: number;
}
/** A decision's account of one pass; the same pass may be told of again, and then more of it. */
export interface Removals {
  readonly kind: RemovingKind;
  readonly operation: GcOperation;
  /** Names the pass: the time of its snapshot. */
  readonly atMs: number;
  readonly removals: readonly Removal[];
  readonly returns: readonly Return[];
}

/** A removal as it is kept. */
export interface RemovalRow extends Removal {
  readonly kind: RemovingKind;
  readonly operation: GcOperation;
  readonly atMs: number;
  /** The decision that told of this end; it may be gone from the history. */
  readonly decisionId: string;
  /** When the image was seen again; null: it was not. */
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
  /** 1 to `MAX_PAGE`; values outside are brought inside. */
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
  /** How long such an image was away; null: none came back. */
  readonly medianAwayMs: number | null;
}
/** One image that was removed, under one runtime handler. */
export interface ImageCost {
  readonly id: string;
  readonly runtimeHandler: string;
  /** As at its last removal, and so its size. */
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly times: number;
  readonly again: number;
  /** Bytes of all times that it came back. */
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
  /** Those that cost most first, at most `MAX_COSTS`. */
  readonly images: readonly ImageCost[];
  /** The counts of all other targets. */
  readonly others: readonly TargetCount[];
}
export const MAX_COSTS = 50;
