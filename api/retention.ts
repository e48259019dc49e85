import type { Pruned, Store } from "../db/store.ts";
import { DAY_MS, HOUR_MS } from "./base/duration.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/plain-metrics.ts";
import { rfc3339 } from "./service/timestamp.ts";

export interface Retention {
  /** Decisions older than this are removed, and nodes that were silent for as long (at least a week). */
  readonly maxAgeMs: number;
  /** How many of each node's newest decisions, and of its newest outcomes, are kept. */
  readonly maxRowsPerNode: number;
  /** How many of each node's newest removals are kept per kind; by age they are removed as decisions are. */
  readonly maxRemovalsPerNode: number;
}
export const DEFAULT_RETENTION: Retention = {
  maxAgeMs: 30 * DAY_MS,
  maxRowsPerNode: 10_000,
  maxRemovalsPerNode: 50_000,
};

/**
 * How far the clock may be ahead of the last sweep: half of the retention time, at least an hour. Beyond that, a sweep would
 * remove most of the history at once, so somebody has to confirm that the clock is right.
 */
export const maxLeapMs = (maxAgeMs: number): number => Math.max(maxAgeMs / 2, HOUR_MS);

export interface Sweep {
  readonly retention?: Partial<Retention>;
  /** See `Retention.maxSlices` of the store. */
  readonly maxSlices?: number;
  /** The instruction to show if the clock has leapt: how to confirm that it is right. */
  readonly confirm: string;
  readonly metrics?: Pick<Metrics, "swept">;
}
/** The most names in one line of the log. */
const MAX_NAMES = 20;
/** The bytes of permanently free space in a file that are worth a log line. */
const WORTH_A_WORD = 16 * 1024 * 1024;

/** Removes what is too old or too much, and logs what was removed and what was held back. A failure is logged and retried the next time. */
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

/** The number of rows removed from each table. */
export const rowsOf = ({ decisions, outcomes, removals, snapshots, nodes }: Pruned) => ({
  decisions,
  outcomes,
  removals,
  snapshots,
  nodes: nodes.length,
});
