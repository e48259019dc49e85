import { type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { byteLength, MAX_BODY_LENGTH, MAX_ROW_BYTES } from "../body.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { Store } from "../store.ts";
import type { Driver, Statement, Value } from "./driver.ts";

/** The maximum UTF-16 length of a value in one row: in any script, its bytes fit into a row. */
const PIECE = 250_000;

const upsert = (guard: string): string => `INSERT INTO facts (node, key, value, updated_at_ms)
SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?) WHERE ${guard}
ON CONFLICT (node, key) DO UPDATE SET value = excluded.value, updated_at_ms = excluded.updated_at_ms
WHERE excluded.updated_at_ms >= facts.updated_at_ms`;
/** Deletes the remaining parts of a longer value, unless they are newer than this one. */
const dropParts = (guard: string): string => `DELETE FROM fact_parts
WHERE node = ? AND key IN (SELECT value FROM json_each(?)) AND updated_at_ms <= ? AND ${guard}`;
/** Inserts a piece only after a first piece of the same time: an older value does not replace a newer one. */
const insertParts = (guard: string): string => `INSERT INTO fact_parts (node, key, part, value, updated_at_ms)
SELECT ?, json_extract(json_each.value, '$[0]'), CAST(json_extract(json_each.value, '$[2]') AS bigint), json_extract(json_each.value, '$[1]'), ?
FROM json_each(?) WHERE ${guard} AND EXISTS
  (SELECT 1 FROM facts WHERE node = ? AND key = json_extract(json_each.value, '$[0]') AND updated_at_ms = ?)
ON CONFLICT (node, key, part) DO UPDATE SET value = excluded.value, updated_at_ms = excluded.updated_at_ms`;

/** A text -> pieces for one row each, none of which ends within a character. */
function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE, text.length);
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1] ?? "")) to--;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}

/** Rows as JSON -> texts of JSON arrays of them, each as large as one statement allows. */
function batchesOf(rows: readonly string[]): readonly string[] {
  const batches: { bytes: number; readonly rows: string[] }[] = [];
  for (const row of rows) {
    const bytes = byteLength(row) + 1;
    const last = batches.at(-1);
    if (last !== undefined && last.bytes + bytes <= MAX_ROW_BYTES) {
      last.bytes += bytes;
      last.rows.push(row);
    } else batches.push({ bytes, rows: [row] });
  }
  return batches.map((batch) => `[${batch.rows.join(",")}]`);
}

/**
 * The statements that set all given facts, as few as their size allows. `guard`: an SQL condition for setting them, with its
 * parameters.
 */
export function factsStatements(
  node: string,
  values: Readonly<Record<string, unknown>>,
  nowMs: number,
  guard = "true",
  guardParams: readonly Value[] = [],
): Result<readonly Statement[], StoreFailure> {
  const keys: string[] = [];
  const firsts: string[] = [];
  const others: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const text = JSON.stringify(value);
    if (key.length + text.length > MAX_BODY_LENGTH || key.length > PIECE / 10) {
      const found = `${key.length + text.length} characters of JSON`;
      return failure(
        "too_large",
        `fact \`${key.slice(0, 64)}\` of node \`${node}\`: ${found}, the history takes ${MAX_BODY_LENGTH} at a time, and names of ${PIECE / 10}; keep less`,
      );
    }
    keys.push(key);
    for (const [part, piece] of piecesOf(text).entries())
      if (part === 0) firsts.push(JSON.stringify([key, piece]));
      else others.push(JSON.stringify([key, piece, part]));
  }
  if (keys.length === 0) return ok([]);
  const [setSql, partsSql] = [upsert(guard), insertParts(guard)];
  return ok([
    { sql: dropParts(guard), params: [node, JSON.stringify(keys), nowMs, ...guardParams] },
    ...batchesOf(firsts).map((rows) => ({ sql: setSql, params: [node, nowMs, rows, ...guardParams] })),
    ...batchesOf(others).map((rows) => ({ sql: partsSql, params: [node, nowMs, rows, ...guardParams, node, nowMs] })),
  ]);
}

interface Piece {
  readonly key: string;
  readonly part: number;
  readonly value: string;
}

function parse(node: string, pieces: readonly Piece[]): Result<Record<string, unknown>, StoreFailure> {
  const texts = new Map<string, string[]>();
  for (const { key, part, value } of pieces) {
    const known = texts.get(key) ?? [];
    known[part] = value;
    texts.set(key, known);
  }
  const values: [string, unknown][] = [];
  for (const [key, parts] of texts) {
    try {
      const value: unknown = JSON.parse(parts.join(""));
      if (value !== null) values.push([key, value]);
    } catch {
      return failure("corrupt", `fact \`${key}\` of node \`${node}\` is not JSON; restore the database from a backup`);
    }
  }
  return ok(Object.fromEntries(values));
}

export function factsOf({ all, atomic, attempt }: Driver): Pick<Store, "readFacts" | "writeFacts"> {
  /** Reads both tables in one statement, so that no write comes between. */
  const read = (node: string, wanted: SQL) =>
    all<Piece>(sql`SELECT key, 0 AS part, value FROM facts WHERE node = ${node} ${wanted}
      UNION ALL SELECT key, part, value FROM fact_parts WHERE node = ${node} ${wanted}`);
  return {
    readFacts: (node, keys) =>
      attempt(async () => {
        const wanted =
          keys === undefined ? sql`` : sql`AND key IN (SELECT value FROM json_each(${JSON.stringify(keys)}))`;
        return parse(node, await read(node, wanted));
      }),
    writeFacts: (node, values, nowMs) =>
      attempt(async () => {
        const statements = factsStatements(node, values, nowMs);
        if (!statements.ok) return statements;
        await atomic(statements.value, [node]);
        return ok(null);
      }),
  };
}
