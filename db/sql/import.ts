import { getTableName, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import { ok, type Result } from "../../api/base/result.ts";
import type { ExportRow, ExportRowOf } from "../../api/model/export-row.ts";
import { encodeBody, encodeSliced, storedBytes } from "../body.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { SnapshotRow } from "../rows.ts";
import type { ImportedRows, Store } from "../store.ts";
import { type Driver, insertInto, type Statement } from "./driver.ts";
import { factsStatements } from "./facts.ts";
import { hourOf } from "./fleet.ts";
import { upsertOutcome } from "./outcomes.ts";
import { DECISION_IS_NEW } from "./record.ts";
import { insertResult } from "./results.ts";
import { decisions, outcomes, removals, snapshots, texts, tokens } from "./schema.ts";
import { either, insertSnapshot, nodeSeen } from "./snapshots.ts";
import { placeSlices, TEXTS_ARE_STORED, TOUCH } from "./texts.ts";
import { REVOKE } from "./tokens.ts";

const insertText = insertInto(texts);
const insertDecision = insertInto(decisions, `${DECISION_IS_NEW} AND ${TEXTS_ARE_STORED}`);
const insertRemoval = insertInto(removals);
const insertToken = insertInto(tokens);
/** Updates a known removal, since the image may have come back meanwhile. */
const CAME_BACK = `UPDATE removals SET pulled_again_at_ms = ? WHERE node = ? AND object_id = ? AND target = ? AND runtime_handler = ? AND at_ms = ?
  AND pulled_again_at_ms IS NULL`;

/** The longer of two series of one decision. */
const SERIES = `INSERT INTO series (seq, node, count, last_at_ms, last_snapshot_id, last_id)
SELECT seq, node, ?, ?, ?, ? FROM decisions WHERE id = ?
ON CONFLICT (seq) DO UPDATE SET count = excluded.count, last_at_ms = excluded.last_at_ms,
  last_snapshot_id = excluded.last_snapshot_id, last_id = excluded.last_id WHERE excluded.count > series.count`;
/**
 * A trigger counts all repetitions in the hour of the last one; the other hours are imported as rows. `beyond`: the number of
 * additional repetitions besides that one.
 */
const BEYOND = `FROM (SELECT ? - coalesce(series.count, 1) - 1 AS beyond FROM decisions LEFT JOIN series ON series.seq = decisions.seq
  WHERE decisions.id = ?) AS one WHERE beyond > 0`;
const COLUMNS = ["decisions", "refused", "pressured", "evicted", "removed"] as const;
const UNCOUNT = `INSERT INTO hours (hour_ms, node, decisions, refused, pressured, evicted, removed)
SELECT ?, ?, -beyond, -beyond * ?, -beyond * ?, -beyond * ?, -beyond * ? ${BEYOND}
ON CONFLICT (hour_ms, node) DO UPDATE SET ${COLUMNS.map((column) => `${column} = hours.${column} + excluded.${column}`).join(", ")}`;
const UNCOUNT_REFUSED = `INSERT INTO refusals (hour_ms, node, reason, count) SELECT ?, ?, ?, -beyond ${BEYOND}
ON CONFLICT (hour_ms, node, reason) DO UPDATE SET count = refusals.count + excluded.count`;
/** The same verdicts as in the triggers on decisions. */
const REFUSED: readonly string[] = ["refused", "kubelet-refuses"];
const PRESSURED: readonly string[] = ["under-pressure", "reclaims", "evicts"];

const HOUR = `INSERT INTO hours (hour_ms, node, decisions, refused, pressured, evicted, removed) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hour_ms, node) DO UPDATE SET ${COLUMNS.map((column) => either(column, ">", "hours")).join(", ")}`;
const HOUR_REFUSED = `INSERT INTO refusals (hour_ms, node, reason, count) VALUES (?, ?, ?, ?)
ON CONFLICT (hour_ms, node, reason) DO UPDATE SET ${either("count", ">", "refusals")}`;
const HOUR_OUTCOMES = `INSERT INTO outcome_hours (hour_ms, node, kind, reason, count) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (hour_ms, node, kind, reason) DO UPDATE SET ${either("count", ">", "outcome_hours")}`;

const LATEST = `INSERT INTO latest (node, kind, decision_id, verdict, decided_at_ms, policy_version, reason, summary)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (node, kind) DO UPDATE SET decision_id = excluded.decision_id, verdict = excluded.verdict,
  ${either("decided_at_ms", ">", "latest")}, policy_version = excluded.policy_version, reason = excluded.reason, summary = excluded.summary
WHERE excluded.decided_at_ms > latest.decided_at_ms OR (excluded.decision_id = latest.decision_id AND latest.summary IS NULL)`;
const FIRST_SEEN = `UPDATE nodes SET first_seen_ms = ? WHERE name = ? AND first_seen_ms > ?`;
const DELETED = "UPDATE nodes SET deleted_ms = ? WHERE name = ? AND last_seen_ms <= ?";

type Statements = Promise<Result<readonly Statement[], StoreFailure>>;

const idsOf = (parts: ExportRowOf<"snapshot">["parts"]): readonly string[] => [
  ...new Set((parts ?? []).map(([, id]) => id)),
];

/** Builds the statements for rows; `known`: the rows that exist. */
class ImportStatements {
  readonly #driver: Driver;
  readonly #nowMs: number;
  readonly #known: ReadonlySet<string>;

  constructor(driver: Driver, nowMs: number, known: ReadonlySet<string>) {
    this.#driver = driver;
    this.#nowMs = nowMs;
    this.#known = known;
  }

  isKnown(row: ExportRow): boolean {
    return this.#known.has(keyOf(row));
  }

  async place(row: ExportRow): Statements {
    switch (row.type) {
      case "text":
        return this.#text(row);
      case "snapshot":
        return this.#snapshot(row);
      case "decision":
        return this.#decision(row);
      case "outcome": {
        const statement = await upsertOutcome(row, this.#driver.packing);
        return statement.ok ? ok([statement.value]) : statement;
      }
      case "removal":
        return ok(removalStatements(row));
      case "node":
        return nodeStatements(row);
      case "hour":
        return ok(hourStatements(row));
      case "token":
        // a token that was revoked in the other history is revoked here as well, once its row is known
        return ok([insertToken(row), { sql: REVOKE, params: [row.revokedAtMs, row.id] }]);
    }
  }

  async #text(row: ExportRowOf<"text">): Statements {
    const { digest, packing } = this.#driver;
    const what = `text \`${row.id}\``;
    if ((await digest(row.text)).slice(0, 32) !== row.id)
      return failure("corrupt", `${what} is not what its id says: the file was changed on its way; copy it again`);
    if (this.isKnown(row)) return ok([{ sql: TOUCH, params: [this.#nowMs, row.id, this.#nowMs] }]);
    const body = await encodeBody(what, row.text, packing);
    return body.ok ? ok([insertText({ id: row.id, usedAtMs: this.#nowMs, ...body.value })]) : body;
  }

  async #snapshot(row: ExportRowOf<"snapshot">): Statements {
    if (this.isKnown(row)) return ok([]);
    const { type: _, body: own, parts: shared, bytes, ...columns } = row;
    const body = await encodeSliced(`snapshot \`${row.id}\``, own, this.#driver.packing);
    if (!body.ok) return body;
    const { slices, ...stored } = body.value;
    const text = shared === null ? null : JSON.stringify(shared);
    const { statements, parts } = placeSlices("snapshot", row.id, text, { body: slices }, this.#nowMs);
    const values = { ...columns, ...stored, bytes, parts };
    return ok([...statements, insertSnapshot(values, [row.id, JSON.stringify(idsOf(shared))])]);
  }

  async #decision(row: ExportRowOf<"decision">): Statements {
    const { packing } = this.#driver;
    const placed: Statement[] = [];
    if (!this.isKnown(row)) {
      const { type: _, body: own, ask: asked, parts: shared, bytes, series: _series, results: _results, ...head } = row;
      const { pod, ...columns } = head;
      const what = `decision \`${row.id}\``;
      const ask = asked === null ? ok(null) : await encodeSliced(`ask of ${what}`, asked, packing);
      if (!ask.ok) return ask;
      const body = await encodeSliced(what, own, packing, ask.value === null ? 0 : storedBytes(ask.value));
      if (!body.ok) return body;
      const { slices, ...stored } = body.value;
      const text = shared === null ? null : JSON.stringify(shared);
      const sliced = { ask: ask.value?.slices ?? [], body: slices };
      const { statements, parts } = placeSlices("decision", row.id, text, sliced, this.#nowMs);
      const named = { podNamespace: pod?.namespace, podName: pod?.name, podUid: pod?.uid };
      const values = { ...columns, ...named, ...stored, ask: ask.value?.body ?? null, bytes, parts };
      placed.push(...statements, insertDecision(values, [row.id, JSON.stringify(idsOf(shared))]));
    }
    placed.push(...seriesStatements(row));
    for (const result of row.results) {
      const statement = await insertResult(row.id, result, packing);
      if (!statement.ok) return statement;
      placed.push(statement.value);
    }
    return ok(placed);
  }
}

function seriesStatements({ id, node, verdict, reason, series }: ExportRowOf<"decision">): readonly Statement[] {
  if (series === undefined) return [];
  const { times, lastAtMs, lastSnapshotId, lastId } = series;
  const hourMs = hourOf(lastAtMs);
  const isRefused = REFUSED.includes(verdict);
  const flags = [isRefused, PRESSURED.includes(verdict), verdict === "evicts", verdict === "removes"].map(Number);
  const beyond = times === 2 ? [] : [{ sql: UNCOUNT, params: [hourMs, node, ...flags, times, id] }];
  const refused = { sql: UNCOUNT_REFUSED, params: [hourMs, node, reason ?? verdict, times, id] };
  return [
    ...beyond,
    ...(isRefused && times > 2 ? [refused] : []),
    { sql: SERIES, params: [times, lastAtMs, lastSnapshotId, lastId, id] },
  ];
}

function removalStatements(row: ExportRowOf<"removal">): readonly Statement[] {
  const { type: _, id: objectId, names, pod, container: containerName, ...columns } = row;
  const named = { podNamespace: pod?.namespace, podName: pod?.name, podUid: pod?.uid };
  const insert = insertRemoval({ ...columns, objectId, names: JSON.stringify(names), ...named, containerName });
  const { node, target, runtimeHandler, atMs, againAtMs } = row;
  if (againAtMs === null) return [insert];
  return [insert, { sql: CAME_BACK, params: [againAtMs, node, objectId, target, runtimeHandler, atMs] }];
}

async function nodeStatements(row: ExportRowOf<"node">): Statements {
  const { name, firstSeenMs, lastSeenMs, bootId, lastSnapshotId, lastSequence, labels, kubeletVersion, conditions } =
    row;
  const newest = { id: lastSnapshotId, bootId, sequence: lastSequence, labels, kubeletVersion, conditions };
  const placed: Statement[] = [
    nodeSeen(name, lastSeenMs, newest as unknown as SnapshotRow),
    { sql: FIRST_SEEN, params: [firstSeenMs, name, firstSeenMs] },
  ];
  if (row.deletedMs !== null) placed.push({ sql: DELETED, params: [row.deletedMs, name, lastSeenMs] });
  for (const one of row.latest) {
    const { kind, decisionId, verdict, decidedAtMs, policyVersion, reason, summary } = one;
    placed.push({
      sql: LATEST,
      params: [name, kind, decisionId, verdict, decidedAtMs, policyVersion, reason, summary],
    });
  }
  for (const { key, value, updatedAtMs } of row.facts) {
    let read: unknown;
    try {
      read = JSON.parse(value);
    } catch {
      return failure("corrupt", `fact \`${key}\` of node \`${name}\` is not JSON`);
    }
    const statements = factsStatements(name, { [key]: read }, updatedAtMs);
    if (!statements.ok) return statements;
    placed.push(...statements.value);
  }
  return ok(placed);
}

const hourStatements = (row: ExportRowOf<"hour">): readonly Statement[] => [
  { sql: HOUR, params: [row.hourMs, row.node, ...COLUMNS.map((column) => row[column])] },
  ...row.refusals.map(({ reason, count }) => ({ sql: HOUR_REFUSED, params: [row.hourMs, row.node, reason, count] })),
  ...row.outcomes.map(({ kind, reason, count }) => ({
    sql: HOUR_OUTCOMES,
    params: [row.hourMs, row.node, kind, reason, count],
  })),
];

const TABLES = {
  text: texts.id,
  snapshot: snapshots.id,
  decision: decisions.id,
  outcome: outcomes.id,
  token: tokens.id,
};
type Counts = Partial<Record<ExportRow["type"], number>>;
const hasTable = (type: ExportRow["type"]): type is keyof typeof TABLES => Object.hasOwn(TABLES, type);
const keyOf = (row: ExportRow): string => ("id" in row ? `${row.type}/${row.id}` : "");

export function importOf(driver: Driver): Pick<Store, "importRows"> {
  const { all, atomic, attempt } = driver;
  /** Times from which on rows have room: see `Driver`. */
  let roomFromMs = Number.POSITIVE_INFINITY;

  const stored = async (column: SQLiteColumn, ids: readonly string[]): Promise<readonly string[]> => {
    if (ids.length === 0) return [];
    const table = sql.raw(getTableName(column.table));
    const found = await all<{ id: string }>(
      sql`SELECT id FROM ${table} WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    );
    return found.map(({ id }) => id);
  };
  /** Keys of the rows that are there. */
  const knownOf = async (rows: readonly ExportRow[]): Promise<ReadonlySet<string>> => {
    const known = new Set<string>();
    for (const [type, column] of Object.entries(TABLES)) {
      const ids = rows.flatMap((row) => (row.type === type && "id" in row ? [row.id] : []));
      for (const id of await stored(column, ids)) known.add(`${type}/${id}`);
    }
    return known;
  };
  /** A text that a row needs and that is neither stored nor among the rows. */
  const lacking = async (rows: readonly ExportRow[]): Promise<string | undefined> => {
    const needed = new Set(rows.flatMap((row) => ("parts" in row ? idsOf(row.parts) : [])));
    for (const row of rows) if (row.type === "text") needed.delete(row.id);
    for (const id of await stored(texts.id, [...needed])) needed.delete(id);
    return needed.values().next().value;
  };
  const makeRoom = async (rows: readonly ExportRow[], nowMs: number): Promise<void> => {
    const times = rows.flatMap((row) =>
      row.type === "decision" ? [row.decidedAtMs] : row.type === "snapshot" ? [row.storedAtMs] : [],
    );
    const oldest = Math.min(...times);
    if (driver.ensurePartitions === undefined || !(oldest < roomFromMs)) return;
    await driver.ensurePartitions(oldest, nowMs);
    roomFromMs = oldest;
  };

  const write = async (rows: readonly ExportRow[], nowMs: number): Promise<Result<ImportedRows, StoreFailure>> => {
    const missing = await lacking(rows);
    if (missing !== undefined)
      return failure(
        "corrupt",
        `a row needs text \`${missing}\`, which is neither in front of it nor in the history: import the file from its beginning`,
      );
    await makeRoom(rows, nowMs);
    const importStatements = new ImportStatements(driver, nowMs, await knownOf(rows));
    const statements: Statement[] = [];
    const begins: number[] = [];
    for (const row of rows) {
      const placed = await importStatements.place(row);
      if (!placed.ok) return placed;
      begins.push(statements.length);
      statements.push(...placed.value);
    }
    const nodes = rows.flatMap((row) => (row.type === "node" ? row.name : "node" in row ? (row.node ?? []) : []));
    const outcomes = await atomic(statements, [...new Set(nodes)]);
    // a row that refers to a text which a sweep has just removed is not written
    const gone = await lacking(rows);
    if (gone !== undefined)
      return failure("unavailable", `text \`${gone}\` was removed meanwhile, by a sweep of the API; import again`);
    const counts = { added: {} as Counts, known: {} as Counts };
    for (const [i, row] of rows.entries()) {
      const isAdded = hasTable(row.type)
        ? !importStatements.isKnown(row)
        : (outcomes[begins[i] ?? 0]?.changes ?? 0) > 0;
      const of = counts[isAdded ? "added" : "known"];
      of[row.type] = (of[row.type] ?? 0) + 1;
    }
    return ok(counts);
  };
  return { importRows: (rows, nowMs) => attempt(() => write(rows, nowMs)) };
}
