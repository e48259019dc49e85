import * as z from "zod";
import {
  type Done,
  decodeGcAsk,
  type GcOperation,
  gcAsk,
  type NodeEvent,
  type RemovalState,
} from "./garbage-collection.ts";
import type { InputIssue } from "./input-issue.ts";
import type { PodRef } from "./managers.ts";
import { map, type Result } from "./result.ts";
import type { CONTAINER_STATES, SANDBOX_STATES } from "./runtime.ts";
import type { EpochMs } from "./units.ts";

/** What a pass of the container collection is asked beside the snapshot. */
export interface ContainerGcAsk {
  /** `delete-unused`: DeleteAllUnusedContainers, which the eviction manager runs. */
  readonly operation: GcOperation;
  /** How the removals of this very pass ended; null: it is only a plan. */
  readonly done: readonly Done[] | null;
  /** What the runtime answered instead of its lists, which are then not read. */
  readonly error?: string;
}
const ask = z.strictObject(gcAsk);

/** Checks a posted ask. Errors: every issue with its path. */
export const decodeContainerGcAsk = (input: unknown, at = "ask"): Result<ContainerGcAsk, readonly InputIssue[]> =>
  map(decodeGcAsk(ask, input, at), ({ operation, done, error }) => ({
    operation: operation ?? "garbage-collect",
    done: done ?? null,
    ...(error !== undefined && { error }),
  }));

/** In the order in which a pass takes them. */
export const CONTAINER_GC_TARGETS = ["container", "sandbox", "pod-logs", "log-link"] as const;
export type ContainerGcTarget = (typeof CONTAINER_GC_TARGETS)[number];
export const CONTAINER_GC_WHY = [
  /** The pod is gone, or evicted, or ended and deleted. */
  "pod-removed",
  /** Under pressure only: the pod has ended, though it is not deleted. */
  "pod-terminated",
  "per-container-limit",
  "total-limit",
  /** A sandbox that is not ready, holds no container, and is not its pod's newest. */
  "older-sandbox",
  /** A log link whose file is gone. */
  "dangling",
] as const;
export const CONTAINER_KEEP_WHY = [
  "running",
  "too-young",
  "within-limits",
  "sandbox-ready",
  "sandbox-has-containers",
  "newest-sandbox",
  "pod-exists",
  "sources-not-ready",
  /** Of a link: its log may only be in rotation. */
  "container-not-exited",
  /** Of a directory among the pods' logs: its name is not NAMESPACE_NAME_UID. The kubelet takes it. */
  "not-pod-logs",
  /** The pass stopped before it came to this. */
  "not-reached",
] as const;

interface Target {
  readonly target: ContainerGcTarget;
  /** CRI id; of logs and links the name. */
  readonly id: string;
  readonly pod: PodRef | null;
  /** Of a container: its name and attempt. */
  readonly name: string | null;
  readonly attempt: number | null;
  readonly state: (typeof CONTAINER_STATES)[number] | (typeof SANDBOX_STATES)[number] | null;
  readonly createdAtMs: EpochMs | null;
}
export interface ContainerRemoval extends Target {
  readonly place: number;
  readonly why: (typeof CONTAINER_GC_WHY)[number];
  /** Its state is unknown: it is stopped before. A sandbox is always stopped before. */
  readonly stopFirst: boolean;
  /** Made at the same moment as a neighbour: the id decides here, chance decides in the kubelet. */
  readonly tie: boolean;
  readonly end: RemovalState;
  readonly message?: string;
}
export interface ContainerKept extends Target {
  readonly why: (typeof CONTAINER_KEEP_WHY)[number];
  /** When its age allows it; null: age is not what keeps it. */
  readonly oldEnoughAtMs: EpochMs | null;
}
export interface ContainerGcDecision {
  readonly operation: GcOperation;
  readonly policy: {
    readonly minAgeMs: number;
    readonly maxPerPodContainer: number;
    readonly maxContainers: number;
  };
  /** False: nothing of a pod that is not known is taken. */
  readonly allSourcesReady: boolean;
  readonly remove: readonly ContainerRemoval[];
  readonly keep: readonly ContainerKept[];
  /** What the kubelet's log and its event ContainerGCFailed would say. */
  readonly error: string | null;
  readonly events: readonly NodeEvent[];
}
