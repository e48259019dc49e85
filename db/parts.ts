import { type AnyColumn, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../api/model/result.ts";
import { decodeBody, type StoredBody } from "./body.ts";
import { failure, type StoreFailure } from "./failure.ts";
import { texts } from "./schema.ts";

type Text = typeof texts.$inferSelect;
interface Whole extends StoredBody {
  readonly parts: string | null;
}

/** The texts of a row, to be joined to it: a row is so read together with them, whatever `prune` does meanwhile. */
export const textsIn = (parts: AnyColumn): SQL =>
  sql`${texts.id} IN (SELECT json_extract(value, '$[1]') FROM json_each(${parts}))`;

/** The joined rows of a query, one entry a row of its own, in their order. */
export function grouped<R extends { readonly seq: number }>(
  joined: readonly { readonly row: R; readonly text: Text | null }[],
): readonly { readonly row: R; readonly texts: readonly Text[] }[] {
  const rows = new Map<number, { row: R; texts: Text[] }>();
  for (const { row, text } of joined) {
    const entry = rows.get(row.seq) ?? { row, texts: [] };
    rows.set(row.seq, entry);
    if (text !== null) entry.texts.push(text);
  }
  return [...rows.values()];
}

/** The inverse of `cut`: the body with its texts put back. `what` names the row in the failure. */
export async function wholeBody(
  what: string,
  row: Whole,
  shared: readonly Text[],
): Promise<Result<string, StoreFailure>> {
  const rest = await decodeBody(what, row);
  if (!rest.ok || row.parts === null) return rest;
  let body = "";
  let from = 0;
  for (const [at, id] of JSON.parse(row.parts) as [number, string][]) {
    const found = shared.find((text) => text.id === id);
    if (found === undefined) {
      return failure("corrupt", `${what}: its text \`${id}\` is missing; restore the database from a backup`);
    }
    const text = await decodeBody(what, found);
    if (!text.ok) return text;
    body += rest.value.slice(from, at) + text.value;
    from = at;
  }
  return ok(body + rest.value.slice(from));
}
