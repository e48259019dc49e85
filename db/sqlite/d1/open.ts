import type { D1Database } from "@cloudflare/workers-types";
import { drizzle } from "drizzle-orm/d1";
import { WEB_PACKING, webDigest } from "../../body.ts";
import type { Outcome, Statement } from "../../sql/driver.ts";
import { createStore } from "../../sql/history.ts";
import * as schema from "../../sql/schema.ts";
import type { Store } from "../../store.ts";
import { sqlite } from "../dialect.ts";

/** The history in a D1 database, to which `wrangler d1 migrations apply` has applied migrations/. Does no I/O by itself. */
export function openD1(d1: D1Database): Store {
  const atomic = async (statements: readonly Statement[]): Promise<readonly Outcome[]> => {
    if (statements.length === 0) return [];
    const results = await d1.batch<Record<string, unknown>>(
      statements.map(({ sql, params }) => d1.prepare(sql).bind(...params)),
    );
    return results.map(({ meta, results: rows }) => ({ changes: meta.changes, rows }));
  };
  // an invocation has a thousand statements, so each does more
  return createStore({
    ...sqlite(drizzle(d1, { schema })),
    packing: WEB_PACKING,
    digest: webDigest,
    atomic,
    sliceRows: 1000,
    close: async () => {},
  });
}
