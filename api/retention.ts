import type { Store } from "../db/store.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";

export interface Retention {
  /** Decisions older than this go. */
  readonly maxAgeMs: number;
  /** Of each node's decisions, only this many of the newest stay. */
  readonly maxRowsPerNode: number;
  /** The same of what was collected, of each kind for itself; by age they go as decisions do. */
  readonly maxRemovalsPerNode: number;
}
export const DEFAULT_RETENTION: Retention = {
  maxAgeMs: 30 * 24 * 3600 * 1000,
  maxRowsPerNode: 10_000,
  maxRemovalsPerNode: 50_000,
};

/** Removes what is too old or too much. A failure is logged, and tried again the next time. */
export async function pruneOnce(
  store: Store,
  nowMs: EpochMs,
  log: Log,
  retention: Partial<Retention> = {},
): Promise<void> {
  const pruned = await store.prune({ nowMs, ...DEFAULT_RETENTION, ...retention });
  if (!pruned.ok) log.error({ code: pruned.error.code, reason: pruned.error.message }, "history not pruned");
  else if (Object.values(pruned.value).some((rows) => rows > 0)) log.info({ ...pruned.value }, "history pruned");
}
