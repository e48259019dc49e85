import type { ContainerGcDecision } from "./container-gc.ts";
import type { ImageGcDecision } from "./image-gc.ts";
import type { PodRef } from "./managers.ts";
import type { EpochMs } from "./units.ts";

/** In the order in which the kubelet's choice is told where it has none: of two memory signals the pods' own is first. */
export const EVICTION_SIGNALS = [
  "allocatableMemory.available",
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "pid.available",
] as const;
export type EvictionSignal = (typeof EVICTION_SIGNALS)[number];
export const PRESSURE_CONDITIONS = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
export type PressureCondition = (typeof PRESSURE_CONDITIONS)[number];
export type StarvedResource = "memory" | "ephemeral-storage" | "inodes" | "pids";
/** Where images and containers lie: on the kubelet's own disk, together on another, or each on its own. */
export const FILE_SYSTEMS = ["one", "dedicated", "split"] as const;
export type FileSystems = (typeof FILE_SYSTEMS)[number];

/** A threshold as it is named in answers and remembered between passes: the texts of the configuration. */
export interface ThresholdRef {
  readonly signal: EvictionSignal;
  /** `100Mi`, `10%`. */
  readonly value: string;
  /** 0: hard. */
  readonly graceMs: number;
  readonly minReclaim?: string | undefined;
}
export interface ThresholdState extends ThresholdRef {
  /** Of a containerfs threshold: the signal that it was made from. */
  readonly derivedFrom?: EvictionSignal;
  /** Bytes, inodes or process ids below which it is met; null where nothing was observed. */
  readonly quantity: number | null;
  readonly available: number | null;
  readonly capacity: number | null;
  /** When the stats were taken. */
  readonly statsAtMs: EpochMs | null;
  /** `below`: met; `unreclaimed`: met before, its minimum reclaim is not reached; `unwatched`: not in a kubelet's first pass. */
  readonly state: "above" | "below" | "unreclaimed" | "unobserved" | "unwatched";
  /** Since when it is below or unreclaimed. */
  readonly firstObservedAtMs: EpochMs | null;
  /** What is left of its grace period; 0: it drives evictions. */
  readonly graceLeftMs: number | null;
  /** False: its stats are those of the last pass, so it does not drive this one. */
  readonly newerStats: boolean;
}
export interface ConditionState {
  readonly type: PressureCondition;
  /** False: no threshold is met any more, the transition period has not passed. */
  readonly observed: boolean;
  readonly lastObservedAtMs: EpochMs;
  /** When it becomes False if nothing is observed any more. */
  readonly untilMs: EpochMs;
}

export const NODE_RECLAIM = ["delete-unused-containers", "delete-unused-images"] as const;
export type NodeReclaimFunction = (typeof NODE_RECLAIM)[number];
/** What one pass tries to get back. */
export interface Reclaim {
  readonly threshold: ThresholdRef;
  /** Other thresholds that the kubelet, whose order is random there, could have taken instead. */
  readonly orElse: readonly ThresholdRef[];
  readonly resource: StarvedResource;
  readonly event: { readonly reason: "EvictionThresholdMet"; readonly message: string };
  /** Run before any pod goes. */
  readonly nodeLevel: readonly NodeReclaimFunction[];
  /** `enough`: no pod must go; `not-enough`; `unknown`: post ask.statsAfterReclaim, until then nothing is taken to be freed. */
  readonly afterNodeLevel: "enough" | "not-enough" | "unknown" | "nothing-run";
  /** What each signal that is too low must reach for no pod to go. */
  readonly mustReach: readonly { readonly signal: EvictionSignal; readonly available: number }[];
  /** Null: nothing is run, or what the runtime holds was not posted. */
  readonly takes: ReclaimTakes | null;
}
/** What the node-level functions would throw away: dead containers first, then the images that nothing uses any more. */
export interface ReclaimTakes {
  /** Null: not run here, or refused (the reasons say why). */
  readonly containers: ContainerGcDecision | null;
  readonly images: ImageGcDecision | null;
}

export interface DisruptionTarget {
  readonly type: "DisruptionTarget";
  readonly status: "True";
  readonly reason: "TerminationByKubelet";
  readonly message: string;
}
export interface Eviction {
  readonly pod: PodRef;
  readonly cause: "threshold" | "emptyDir" | "pod-ephemeral-storage" | "container-ephemeral-storage";
  /** Of the status and of the event. */
  readonly reason: "Evicted";
  readonly message: string;
  /** Of the event. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly gracePeriodSeconds: number;
  readonly condition: DisruptionTarget | null;
}

export interface RankedPod {
  readonly place: number;
  readonly pod: PodRef;
  /** Ranked, and passed over. */
  readonly critical: boolean;
  readonly priority: number;
  /** Null: no stats were found, which ranks before all that have some. */
  readonly usage: number | null;
  readonly request: number;
  /** Null for process ids, which have no request. */
  readonly exceedsRequest: boolean | null;
  readonly aboveRequest: number | null;
  /** Equal to a neighbour in all that the kubelet looks at: the uid decides here, chance decides there. */
  readonly tie: boolean;
}
/** The least change of one value that moves a pod to another place. */
export interface Counterfactual {
  readonly pod: PodRef;
  readonly change: "request" | "usage" | "priority";
  readonly from: number;
  readonly to: number;
  /** Of a request: as one would write it. */
  readonly quantity?: string;
  readonly place: number;
  /** Who would be the first to go then; null: nobody. */
  readonly victim: PodRef | null;
}
export interface Ranking {
  readonly signals: readonly EvictionSignal[];
  readonly resource: StarvedResource;
  readonly total: number;
  /** The first of them; all with `explain: full`. */
  readonly pods: readonly RankedPod[];
  readonly counterfactuals: readonly Counterfactual[];
}
export interface Forecast {
  readonly threshold: ThresholdRef;
  /** Available less the threshold; negative: so much is missing. */
  readonly distance: number;
  /** Of what is available, per second; null: fewer observations than a slope takes. */
  readonly slopePerSecond: number | null;
  readonly observations: number;
  /** Until it is below; 0: it is; null: it is not falling, or not known. */
  readonly belowInMs: number | null;
  /** The same with its grace period. */
  readonly evictsInMs: number | null;
  /** The pods that would go first, what each takes up, and how long that lasts at this slope. */
  readonly victims: readonly { readonly pod: PodRef; readonly usage: number; readonly buysMs: number | null }[];
}

export interface EvictionDecision {
  readonly fileSystems: FileSystems;
  readonly thresholds: readonly ThresholdState[];
  /** What the kubelet says of thresholds that it overrides. */
  readonly warnings: readonly string[];
  /** Those that are True. */
  readonly conditions: readonly ConditionState[];
  readonly reclaim: Reclaim | null;
  /** In the kubelet's order. With `afterNodeLevel: unknown` only if the node-level reclaim is not enough. */
  readonly evicted: readonly Eviction[];
  /** Critical pods that would have gone first. */
  readonly spared: readonly PodRef[];
  readonly rankings: readonly Ranking[];
  readonly forecast: readonly Forecast[];
}
