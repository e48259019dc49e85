import type { D1Database, DurableObjectStorage, SqlStorageValue } from "@cloudflare/workers-types";

/** The number of rows per statement: their JSON stays far below a parameter's limit. */
const ROWS = 500;

/** The time span that is sent again, to cover other clocks and running requests. */
const MARGIN_MS = 60_000;

/** How much of an object's history is in the fleet's database. */
interface RollupState {
  /** The last decision that was sent. */
  readonly seq: number;
  /** The time of the last roll-up: later counts and reports are sent the next time. */
  readonly atMs: number;
}
const KEY = "told";
const rollupState = ({ kv }: DurableObjectStorage): RollupState => kv.get<RollupState>(KEY) ?? { seq: 0, atMs: 0 };

const newestOf = ({ sql }: DurableObjectStorage): number =>
  sql.exec<{ newest: number | null }>("SELECT max(seq) AS newest FROM decisions").one().newest ?? 0;

/** Called after rows were removed, since their numbers may be reused. */
export function afterRemovals(storage: DurableObjectStorage): void {
  const { seq, atMs } = rollupState(storage);
  storage.kv.put<RollupState>(KEY, { seq: Math.min(seq, newestOf(storage)), atMs });
}

/** When the object last sent a roll-up (0: never), and whether it has made a different decision since. */
export function sinceRollup(storage: DurableObjectStorage): { readonly atMs: number; readonly hasDecided: boolean } {
  const { seq, atMs } = rollupState(storage);
  return { atMs, hasDecided: newestOf(storage) > seq };
}

/** Rows that are read in an object and written in the fleet's database. */
interface Part {
  readonly read: string;
  readonly from: readonly SqlStorageValue[];
  /** The statement that writes; its parameter is the JSON of the rows, and `value` is one row. */
  readonly write: string;
}
const words = (text: string): readonly string[] => text.trim().split(/\s+/);
const extracted = (columns: readonly string[]): string =>
  columns.map((name) => `json_extract(value, '$.${name}')`).join(", ");
const excluded = (columns: readonly string[]): string => columns.map((name) => `${name} = excluded.${name}`).join(", ");

const HEAD = words(`id kind node snapshot_id policy_version verdict reason explain decided_at_ms
  pod_namespace pod_name pod_uid`);
const COUNT = words("count last_at_ms last_snapshot_id last_id");
const REPORT = words("id decision_id node seq ok_count failed_count at_ms");
const NODE = words(`name first_seen_ms last_seen_ms boot_id last_snapshot_id last_sequence labels kubelet_version
  conditions deleted_ms`);
/** Longer texts stay in the object. */
const NO_BODY = "2, 'json', '{}'";

/**
 * The parts of a roll-up: decision heads, which the fleet's triggers count; repetitions; reports; nodes; summaries
 * of their newest decisions. Sending any of it twice does no harm.
 */
const partsOf = (seq: number, sinceMs: number): readonly Part[] => [
  {
    read: `SELECT seq, ${HEAD.join(", ")} FROM decisions WHERE seq > ? ORDER BY seq LIMIT ${ROWS}`,
    from: [seq],
    write: `INSERT INTO decisions (${HEAD.join(", ")}, bytes, encoding, body) SELECT ${extracted(HEAD)}, ${NO_BODY}
      FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`,
  },
  {
    read: `SELECT decisions.id, ${COUNT.join(", ")} FROM series CROSS JOIN decisions ON decisions.seq = series.seq
      WHERE last_at_ms >= ? ORDER BY last_at_ms DESC LIMIT ${ROWS}`,
    from: [sinceMs],
    write: `INSERT INTO series (seq, node, ${COUNT.join(", ")}) SELECT decisions.seq, decisions.node, ${extracted(COUNT)}
      FROM json_each(?) CROSS JOIN decisions ON decisions.id = json_extract(value, '$.id')
      WHERE true ON CONFLICT (seq) DO UPDATE SET ${excluded(COUNT)} WHERE series.count < excluded.count`,
  },
  {
    read: `SELECT ${REPORT.join(", ")} FROM results WHERE at_ms >= ? ORDER BY at_ms DESC LIMIT ${ROWS}`,
    from: [sinceMs],
    write: `INSERT INTO results (${REPORT.join(", ")}, bytes, encoding, body) SELECT ${extracted(REPORT)}, ${NO_BODY}
      FROM json_each(?) WHERE EXISTS (SELECT 1 FROM decisions WHERE id = json_extract(value, '$.decision_id')) ON CONFLICT DO NOTHING`,
  },
  {
    read: `SELECT ${NODE.join(", ")} FROM nodes LIMIT ${ROWS}`,
    from: [],
    write: `INSERT INTO nodes (${NODE.join(", ")}) SELECT ${extracted(NODE)} FROM json_each(?)
      WHERE true ON CONFLICT (name) DO UPDATE SET ${excluded(NODE.slice(1))}`,
  },
  {
    read: `SELECT node, kind, decision_id, summary FROM latest WHERE summary IS NOT NULL AND decided_at_ms >= ? LIMIT ${ROWS}`,
    from: [sinceMs],
    write: `UPDATE latest SET summary = reported.summary FROM (SELECT ${["node", "kind", "decision_id", "summary"]
      .map((name) => `json_extract(value, '$.${name}') AS ${name}`)
      .join(", ")} FROM json_each(?)) AS reported
      WHERE (latest.node, latest.kind, latest.decision_id) = (reported.node, reported.kind, reported.decision_id)
      AND latest.summary IS NOT reported.summary`,
  },
];

/**
 * Sends an object's new rows to the fleet's database, in one batch of a few statements; the rest follows the next
 * time. `isDone`: nothing is left. Throws D1's errors, after which nothing counts as sent.
 */
export async function rollUp(storage: DurableObjectStorage, fleet: D1Database, nowMs: number): Promise<boolean> {
  const last = rollupState(storage);
  const found = partsOf(last.seq, last.atMs - MARGIN_MS).map(({ read, from, write }) => ({
    rows: storage.sql.exec(read, ...from).toArray(),
    write,
  }));
  const [decisions] = found;
  const statements = found.filter(({ rows }) => rows.length > 0);
  if (statements.length > 0)
    await fleet.batch(statements.map(({ rows, write }) => fleet.prepare(write).bind(JSON.stringify(rows))));
  const isDone = decisions === undefined || decisions.rows.length < ROWS;
  const seq = Number(decisions?.rows.at(-1)?.["seq"] ?? last.seq);
  // counts of unsent decisions are sent together with them
  storage.kv.put<RollupState>(KEY, { seq, atMs: isDone ? nowMs : last.atMs });
  return isDone;
}
