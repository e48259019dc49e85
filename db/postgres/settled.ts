import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { WRITING } from "./locks.ts";

/** The interval between checks for open transactions, which take some milliseconds. */
const LOOK_MS = 10;
/** After this time the last known value is returned; a transaction may be stuck open. */
const PATIENCE_MS = 500;

/** `last_value` shows the first number even before it was used, so an unused sequence is treated as empty. */
const LAST = "SELECT coalesce(pg_sequence_last_value('decisions_seq_seq'), 0) AS seq";
/** Each write shares the lock from its beginning to its end, and takes its numbers in between. */
const WRITERS = `SELECT virtualtransaction AS writer FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock'
  AND classid = 0 AND objid = ${WRITING} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Answers the highest number that a decision has got when all transactions that may have got a lower one have ended. Numbers are given
 * before a commit, so a reader may see a higher one first. Nobody waits for this.
 */
export function settling(pool: Pool): () => Promise<number> {
  let settled = 0;
  const writers = async (): Promise<ReadonlySet<string>> =>
    new Set((await pool.query<{ writer: string }>(WRITERS)).rows.map(({ writer }) => writer));
  return async () => {
    const seq = Number((await pool.query<{ seq: number }>(LAST)).rows[0]?.seq ?? 0);
    if (seq === settled) return settled;
    let left = await writers();
    for (let waited = 0; left.size > 0; waited += LOOK_MS) {
      if (waited >= PATIENCE_MS) return settled;
      await sleep(LOOK_MS);
      const now = await writers();
      left = new Set([...left].filter((one) => now.has(one)));
    }
    settled = Math.max(settled, seq);
    return settled;
  };
}
