import { asc, eq } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { decodeBody, encodeBody, type Packing } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { ResultRow, Store } from "../store.ts";
import type { Driver, Statement } from "./driver.ts";
import { results } from "./schema.ts";

const INSERT = `INSERT INTO results (id, decision_id, node, seq, ok_count, failed_count, at_ms, bytes, encoding, body)
SELECT ?, id, node, ?, ?, ?, ?, ?, ?, ? FROM decisions WHERE id = ? ON CONFLICT DO NOTHING`;
const DECISION_EXISTS = "SELECT 1 FROM decisions WHERE id = ?";

/** The statement that stores a report unless it is there, or its decision is not. */
export async function insertResult(
  decisionId: string,
  row: ResultRow,
  packing: Packing,
): Promise<Result<Statement, StoreFailure>> {
  const encoded = await encodeBody(`result \`${row.id}\``, row.body, packing);
  if (!encoded.ok) return encoded;
  const { bytes, encoding, body } = encoded.value;
  const params = [row.id, row.seq, row.okCount, row.failedCount, row.atMs, bytes, encoding, body, decisionId];
  return ok({ sql: INSERT, params });
}

export async function decodeResult(
  row: typeof results.$inferSelect,
  packing: Packing,
): Promise<Result<ResultRow, StoreFailure>> {
  const { id, seq, okCount, failedCount, atMs } = row;
  const body = await decodeBody(`result \`${id}\``, row, packing);
  return body.ok ? ok({ id, seq, okCount, failedCount, atMs, body: body.value }) : body;
}

export function resultsOf({ db, atomic, packing, attempt }: Driver): Pick<Store, "addResults" | "listResults"> {
  return {
    addResults: (decisionId, rows) =>
      attempt(async () => {
        const statements: Statement[] = [];
        for (const row of rows) {
          const statement = await insertResult(decisionId, row, packing);
          if (!statement.ok) return statement;
          statements.push(statement.value);
        }
        const outcomes = await atomic([...statements, { sql: DECISION_EXISTS, params: [decisionId] }], [decisionId]);
        const added = outcomes.slice(0, -1).reduce((sum, outcome) => sum + outcome.changes, 0);
        return ok({ known: outcomes.at(-1)?.rows.length === 1, added });
      }),
    listResults: (decisionId) =>
      attempt(async () => {
        const rows = await db
          .select()
          .from(results)
          .where(eq(results.decisionId, decisionId))
          .orderBy(asc(results.seq), asc(results.id));
        const items: ResultRow[] = [];
        for (const row of rows) {
          const item = await decodeResult(row, packing);
          if (!item.ok) return item;
          items.push(item.value);
        }
        return ok(items);
      }),
  };
}
