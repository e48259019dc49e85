import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { startApi } from "../../api/server.ts";
import { capturedText, renamed } from "../kit/real-node.ts";

export const NODES = 500;
/** The node whose pages are measured; it has eviction decisions of its own. */
export const NODE = "node-0042";
const PASSES = 200;
const SPAN_MS = 7 * 24 * 3600 * 1000;
const nameOf = (n: number): string => `node-${String(n).padStart(4, "0")}`;

/**
 * Fills a history with this many decisions of 500 nodes over a week. The decisions of the captured node are real and
 * posted to the API, and so is the snapshot of each node; all other decisions are rows inserted in bulk. Returns the id
 * of a real decision.
 */
export async function fillHistory(dataDir: string, decisions: number): Promise<string> {
  const api = await startApi({ dataDir, port: 0, log: { info() {}, warn() {}, error() {}, debug() {} } as never });
  if (!api.ok) throw new Error(api.error.message);
  const text = capturedText("snapshot.json");
  const post = async (kind: string, snapshot: object): Promise<string> => {
    const response = await fetch(`${api.value.url}/v1/decisions/${kind}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ snapshot }),
    });
    if (!response.ok) throw new Error(await response.text());
    return ((await response.json()) as { id: string }).id;
  };
  let cgroups = "";
  try {
    for (let n = 0; n < NODES; n++) {
      const snapshot = JSON.parse(text);
      renamed(snapshot, nameOf(n));
      const id = await post("cgroups", snapshot);
      if (nameOf(n) === NODE) cgroups = id;
    }
    const snapshot = JSON.parse(text);
    renamed(snapshot, NODE);
    const from = Date.parse(snapshot.observedAt ?? snapshot.stats.node.memory.time);
    for (let pass = 0; pass < PASSES; pass++) {
      const at = new Date(from + pass * 10_000).toISOString();
      const { memory } = snapshot.stats.node;
      const stats = { ...snapshot.stats, node: { ...snapshot.stats.node, memory: { ...memory, time: at } } };
      await post("eviction", { ...snapshot, observedAt: at, stats });
    }
  } finally {
    await api.value.close();
  }
  fillRows(join(dataDir, "history.db"), decisions);
  return cgroups;
}

function fillRows(file: string, decisions: number): void {
  const database = new Sqlite(file);
  database.pragma("synchronous = OFF");
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
INSERT INTO decisions (id, kind, node, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
SELECT printf('%016x%016x', i * 2654435761 % 4294967296, i),
  CASE i % 3 WHEN 0 THEN 'eviction' WHEN 1 THEN 'cgroups' ELSE 'admission' END, printf('node-%04d', i * 7 % ?), 'bench',
  CASE WHEN i % 3 = 0 THEN CASE WHEN i % 30 = 0 THEN 'under-pressure' ELSE 'calm' END
    WHEN i % 3 = 1 THEN 'decided' ELSE CASE WHEN i % 50 = 2 THEN 'refused' ELSE 'decided' END END,
  'off', CAST(? + i * (? / ?) AS INTEGER), 60, 'json', '{"decision":{"conditions":[]},"reasons":[],"needs":[],"next":null}' FROM n`,
    )
    .run(decisions, NODES, Date.now() - SPAN_MS, SPAN_MS - 3_600_000, decisions);
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
}
