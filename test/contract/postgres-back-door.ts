import type { StoreBackDoor } from "./store-rows.ts";

/** The back door of a Postgres store; `run` executes statements in its schema. */
export function postgresBackDoor(run: (sql: string) => Promise<unknown>): StoreBackDoor {
  const runAll = async (...statements: readonly string[]): Promise<void> => {
    for (const sql of statements) await run(sql);
  };
  return {
    spoilBody: (id) => runAll(`UPDATE decisions SET body = '\\x1f8b0800deadbeef' WHERE id = '${id}'`),
    spoilFact: (node) => runAll(`INSERT INTO facts VALUES ('${node}', 'k', 'not json', 1)`),
    loseSharedTexts: () => runAll("DELETE FROM texts"),
    loseMigrations: () => runAll("UPDATE migrations SET name = 'x' || name"),
    restoreMigrations: () => runAll("UPDATE migrations SET name = substr(name, 2)"),
    forgetSweeps: () => runAll("DELETE FROM sweeps"),
    confirmSweep: () =>
      runAll(
        "INSERT INTO sweeps VALUES (1, extract(epoch FROM now()) * 1000) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms",
      ),
    setLastSweep: (atMs) => runAll(`UPDATE sweeps SET at_ms = ${atMs}`),
    removeDecisions: (node) => runAll(`DELETE FROM decisions WHERE node = '${node}'`),
    insertMany: ({ prefix, nodes, each, fromMs }) => {
      const rows = `WITH row AS (SELECT n, '${prefix}-' || (n % ${nodes}) AS node, ${fromMs} + (n / ${nodes}) * 60000 AS at_ms
        FROM generate_series(0, ${nodes * each - 1}) AS n)`;
      return runAll(
        `INSERT INTO snapshots (id, node, stored_at_ms, bytes, encoding, body)
     ${rows} SELECT '${prefix}-s-' || n, node, at_ms, 2, 'json', '{}' FROM row ORDER BY n`,
        `INSERT INTO decisions (id, kind, node, snapshot_id, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
     ${rows} SELECT '${prefix}-d-' || n, 'cgroups', node, '${prefix}-s-' || n, 'p', 'planned', 'off', at_ms, 2, 'json', '{}' FROM row ORDER BY n`,
        `INSERT INTO nodes (name, first_seen_ms, last_seen_ms, last_snapshot_id)
     ${rows} SELECT node, min(at_ms), max(at_ms), '${prefix}-s-' || max(n) FROM row GROUP BY node`,
      );
    },
  };
}
