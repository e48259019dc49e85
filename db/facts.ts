import { and, eq, ne, sql } from "drizzle-orm";
import { ok, type Result } from "../api/model/result.ts";
import { byteLength, MAX_ROW_BYTES } from "./body.ts";
import { type Driver, once, type Statement, type Value } from "./driver.ts";
import { attempt, failure, type StoreFailure } from "./failure.ts";
import { facts } from "./schema.ts";
import type { Store } from "./store.ts";

const upsert = (guard: string): string => `INSERT INTO facts (node, key, value, updated_at_ms)
SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?) WHERE ${guard}
ON CONFLICT (node, key) DO UPDATE SET value = excluded.value, updated_at_ms = excluded.updated_at_ms
WHERE excluded.updated_at_ms >= facts.updated_at_ms`;

/** What sets all facts given, in as few statements as their size allows. `guard` is an SQL condition for doing so, with its parameters. */
export function factsStatements(
  node: string,
  values: Readonly<Record<string, unknown>>,
  nowMs: number,
  guard = "true",
  guardParams: readonly Value[] = [],
): Result<readonly Statement[], StoreFailure> {
  const batches: { bytes: number; readonly pairs: string[] }[] = [];
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const pair = JSON.stringify([key, JSON.stringify(value)]);
    const bytes = byteLength(pair) + 1;
    if (bytes > MAX_ROW_BYTES) {
      return failure(
        "too_large",
        `fact \`${key}\` of node \`${node}\`: ${bytes} bytes of JSON, the history takes ${MAX_ROW_BYTES} at a time; keep less`,
      );
    }
    const last = batches.at(-1);
    if (last !== undefined && last.bytes + bytes <= MAX_ROW_BYTES) {
      last.bytes += bytes;
      last.pairs.push(pair);
    } else batches.push({ bytes, pairs: [pair] });
  }
  const sql = upsert(guard);
  return ok(batches.map(({ pairs }) => ({ sql, params: [node, nowMs, `[${pairs.join(",")}]`, ...guardParams] })));
}

function parse(
  node: string,
  rows: readonly { key: string; value: string }[],
): Result<Record<string, unknown>, StoreFailure> {
  const values: [string, unknown][] = [];
  for (const { key, value } of rows) {
    try {
      values.push([key, JSON.parse(value)]);
    } catch {
      return failure("corrupt", `fact \`${key}\` of node \`${node}\` is not JSON; restore the database from a backup`);
    }
  }
  return ok(Object.fromEntries(values));
}

export function factsOf({ db, atomic }: Driver): Pick<Store, "readFacts" | "writeFacts"> {
  const byNode = once(() =>
    db
      .select({ key: facts.key, value: facts.value })
      .from(facts)
      .where(and(eq(facts.node, sql.placeholder("node")), ne(facts.value, "null")))
      .prepare(),
  );
  const byKeys = once(() =>
    db
      .select({ key: facts.key, value: facts.value })
      .from(facts)
      .where(
        and(
          eq(facts.node, sql.placeholder("node")),
          sql`${facts.key} IN (SELECT value FROM json_each(${sql.placeholder("keys")}))`,
          ne(facts.value, "null"),
        ),
      )
      .prepare(),
  );
  return {
    readFacts: (node, keys) =>
      attempt(async () => {
        const wanted = keys === undefined ? byNode().all({ node }) : byKeys().all({ node, keys: JSON.stringify(keys) });
        return parse(node, await wanted);
      }),
    writeFacts: (node, values, nowMs) =>
      attempt(async () => {
        const statements = factsStatements(node, values, nowMs);
        if (!statements.ok) return statements;
        await atomic(statements.value);
        return ok(null);
      }),
  };
}
