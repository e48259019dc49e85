import type { Pruned, Store } from "../db/store.ts";
import { DAY_MS, HOUR_MS } from "./model/duration.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/plain-metrics.ts";
import { rfc3339 } from "./service/timestamp.ts";

export interface Retention {
  /** Decisions older than this go, and nodes that were not heard of for as long (at least a week). */
  readonly maxAgeMs: number;
  /** Only this many of each node's newest decisions, and of its newest outcomes, stay. */
  readonly maxRowsPerNode: number;
  /** The same of what was collected, of each kind for itself; by age they go as decisions do. */
  readonly maxRemovalsPerNode: number;
}
export const DEFAULT_RETENTION: Retention = {
  maxAgeMs: 30 * DAY_MS,
  maxRowsPerNode: 10_000,
  maxRemovalsPerNode: 50_000,
};

/**
 * How far the clock may be ahead of the last sweep: half of what is kept, at least an hour. Further, and most of what was kept a
 * moment ago would go at once; then somebody has to say that the clock is right.
 */
export const maxLeapMs = (maxAgeMs: number): number => Math.max(maxAgeMs / 2, HOUR_MS);

export interface Sweep {
  readonly retention?: Partial<Retention>;
  /** See `Retention.maxSlices` of the store. */
  readonly maxSlices?: number;
  /** Instruction for the case that the clock is right although it has leapt. */
  readonly confirm: string;
  readonly metrics?: Pick<Metrics, "swept">;
}
/** Names in one line of the log. */
const MAX_NAMES = 20;
/** Bytes that are free in a file and stay so. */
const WORTH_A_WORD = 16 * 1024 * 1024;

/** Removes what is too old or too much, and says what went and what was held back. A failure is logged, and tried again the next time. */
export async function pruneOnce(store: Store, nowMs: EpochMs, log: Log, sweep: Sweep): Promise<void> {
  const { retention, maxSlices, confirm, metrics } = sweep;
  const kept = { ...DEFAULT_RETENTION, ...retention };
  const slices = maxSlices === undefined ? {} : { maxSlices };
  const pruned = await store.prune({ nowMs, ...kept, maxLeapMs: maxLeapMs(kept.maxAgeMs), ...slices });
  if (!pruned.ok) {
    metrics?.swept("failed", {});
    log.error({ code: pruned.error.code, reason: pruned.error.message }, "history not pruned");
    return;
  }
  const { nodes, isDone, held, freedBytes, stuckBytes } = pruned.value;
  const rows = rowsOf(pruned.value);
  metrics?.swept(held !== null ? "held" : isDone ? "done" : "partial", rows);
  if (Object.values(rows).some((count) => count > 0)) {
    const names = nodes.length === 0 ? {} : { nodeNames: nodes.slice(0, MAX_NAMES) };
    log.info(
      { ...rows, ...names, freedBytes, ...(isDone ? {} : { left: "more, for the next sweep" }) },
      "history pruned",
    );
  }
  if (stuckBytes > WORTH_A_WORD)
    log.info(
      { freeBytes: stuckBytes, advice: "stop the API, then run `nodewise history compact` once" },
      "the history's file does not give back what is free in it",
    );
  if (held === null) return;
  const { sinceMs, decisions, of } = held;
  log.warn(
    { comparedWith: rfc3339(sinceMs), clock: rfc3339(nowMs), wouldGo: decisions, of, confirm },
    "history not pruned by age: by this clock most of it is too old at once; set the clock right, or confirm that it is",
  );
}

/** How many of each table went. */
export const rowsOf = ({ decisions, outcomes, removals, snapshots, nodes }: Pruned) => ({
  decisions,
  outcomes,
  removals,
  snapshots,
  nodes: nodes.length,
});
