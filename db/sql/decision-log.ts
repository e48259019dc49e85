import { sql } from "drizzle-orm";
import { ok } from "../../api/model/result.ts";
import type { LogPlace, LogStore } from "../store.ts";
import type { Driver, Statement } from "./driver.ts";

/** By the database's clock: those of two processes may differ by more than a lease. */
const NOW = "unixepoch() * 1000";
const BEGIN = `INSERT INTO decision_log (id, delivered_seq, lost, holder, held_until_ms)
SELECT 1, coalesce((SELECT max(seq) FROM decisions), 0), 0, NULL, 0 WHERE true ON CONFLICT DO NOTHING`;
const HOLD = `UPDATE decision_log SET holder = ?, held_until_ms = ${NOW} + ?, lost = lost - ?
WHERE id = 1 AND (holder IS NULL OR holder = ? OR held_until_ms < ${NOW}) RETURNING delivered_seq, lost`;
const MOVE = "UPDATE decision_log SET delivered_seq = ? WHERE id = 1 AND holder = ? AND delivered_seq = ? RETURNING id";
const RELEASE = "UPDATE decision_log SET holder = NULL WHERE id = 1 AND holder = ?";
/** Writes that must not run beside one of the log, other than what removes decisions. */
const ALONE = ["decision log"];

export function logOf({ all, atomic, attempt, settledSeq }: Driver): Omit<LogStore, "streamLog"> {
  const rowsOf = async (statement: Statement) => (await atomic([statement], ALONE))[0]?.rows ?? [];
  return {
    holdLog: (holder, leaseMs, told) =>
      attempt(async () => {
        const begun = await all<{ id: number }>(sql`SELECT id FROM decision_log WHERE id = 1`);
        // with nobody else writing, so that all that is recorded later has a higher number
        if (begun.length === 0) await atomic([{ sql: BEGIN, params: [] }], "everything");
        const [row] = await rowsOf({ sql: HOLD, params: [holder, leaseMs, told, holder] });
        if (row === undefined) return ok(null);
        return ok<LogPlace>({ deliveredSeq: Number(row["delivered_seq"]), lost: Number(row["lost"]) });
      }),
    settledSeq: () => attempt(async () => ok(await settledSeq())),
    moveLog: (holder, fromSeq, toSeq) =>
      attempt(async () => {
        const rows = await rowsOf({ sql: MOVE, params: [toSeq, holder, fromSeq] });
        return ok({ moved: rows.length === 1 });
      }),
    releaseLog: (holder) =>
      attempt(async () => {
        await rowsOf({ sql: RELEASE, params: [holder] });
        return ok(null);
      }),
  };
}
