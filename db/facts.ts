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

/** One statement that sets all facts given, whatever their number. `guard` is an SQL condition for doing so, with its parameters. */
export function factsStatement(
  node: string,
  values: Readonly<Record<string, unknown>>,
  nowMs: number,
  guard = "true",
  guardParams: readonly Value[] = [],
): Result<Statement, StoreFailure> {
  const pairs = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, JSON.stringify(value)]],
  );
  const text = JSON.stringify(pairs);
  const bytes = byteLength(text);
  if (bytes > MAX_ROW_BYTES) {
    return failure(
      "too_large",
      `facts of node \`${node}\`: ${bytes} bytes of JSON, the history takes ${MAX_ROW_BYTES} at a time; keep less`,
    );
  }
  return ok({ sql: upsert(guard), params: [node, nowMs, text, ...guardParams] });
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
  return {
    readFacts: (node) => attempt(async () => parse(node, await byNode().all({ node }))),
    writeFacts: (node, values, nowMs) =>
      attempt(async () => {
        const statement = factsStatement(node, values, nowMs);
        if (!statement.ok) return statement;
        await atomic([statement.value]);
        return ok(null);
      }),
  };
}
