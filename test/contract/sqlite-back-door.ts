import { CONFIRM_SWEEP } from "../../db/sql/prune.ts";
import type { StoreBackDoor } from "./store-rows.ts";

/** The back door of every store with the SQLite dialect; `run` executes one statement in its database. */
export function sqliteBackDoor(run: (sql: string) => Promise<unknown> | unknown): StoreBackDoor {
  const runAll = async (...statements: readonly string[]): Promise<void> => {
    for (const sql of statements) await run(sql);
  };
  return {
    spoilBody: (id) => runAll(`UPDATE decisions SET body = x'1f8b0800deadbeef' WHERE id = '${id}'`),
    spoilFact: (node) => runAll(`INSERT INTO facts VALUES ('${node}', 'k', 'not json', 1)`),
    loseSharedTexts: () => runAll("DELETE FROM texts"),
    loseMigrations: () => runAll("UPDATE d1_migrations SET name = 'x' || name"),
    restoreMigrations: () => runAll("UPDATE d1_migrations SET name = substr(name, 2)"),
    forgetSweeps: () => runAll("DELETE FROM sweeps"),
    confirmSweep: () => runAll(CONFIRM_SWEEP),
    setLastSweep: (atMs) => runAll(`UPDATE sweeps SET at_ms = ${atMs}`),
    removeDecisions: (node) => runAll(`DELETE FROM decisions WHERE node = '${node}'`),
    insertMany: ({ prefix, nodes, each, fromMs }) => {
      const rows = `WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n + 1 < ${nodes * each}),
  row(n, node, at_ms) AS (SELECT n, '${prefix}-' || (n % ${nodes}), ${fromMs} + (n / ${nodes}) * 60000 FROM i)`;
      return runAll(
        `INSERT INTO snapshots (id, node, stored_at_ms, bytes, encoding, body)
     ${rows} SELECT '${prefix}-s-' || n, node, at_ms, 2, 'json', '{}' FROM row`,
        `INSERT INTO decisions (id, kind, node, snapshot_id, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
     ${rows} SELECT '${prefix}-d-' || n, 'cgroups', node, '${prefix}-s-' || n, 'p', 'planned', 'off', at_ms, 2, 'json', '{}' FROM row`,
        `INSERT INTO nodes (name, first_seen_ms, last_seen_ms, last_snapshot_id)
     ${rows} SELECT node, min(at_ms), max(at_ms), '${prefix}-s-' || max(n) FROM row GROUP BY node`,
      );
    },
  };
}
