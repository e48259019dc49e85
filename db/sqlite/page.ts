import { type AnyColumn, desc, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/model/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import { decodePageToken, encodePageToken, type Place } from "../rows.ts";
import { MAX_PAGE } from "../store.ts";

interface PageQuery {
  readonly limit: number;
  readonly pageToken?: string | undefined;
}
interface Page<Row> {
  readonly rows: readonly Row[];
  readonly nextPageToken: string | null;
}

/** The order of a list, newest first; rows of one time by their number. */
export interface NewestFirst {
  readonly atMs: AnyColumn;
  readonly seq: AnyColumn;
}
export const newestFirst = ({ atMs, seq }: NewestFirst): readonly [SQL, SQL] => [desc(atMs), desc(seq)];

/**
 * One page of a list that is newest first. `read`: the rows that meet the condition (undefined: all), at most `limit` of them.
 * Errors: bad_page_token.
 */
export async function pageOf<Row>(
  { limit, pageToken }: PageQuery,
  { atMs, seq }: NewestFirst,
  read: (before: SQL | undefined, limit: number) => Promise<readonly Row[]>,
  placeOf: (row: Row) => Place,
): Promise<Result<Page<Row>, StoreFailure>> {
  const place = pageToken === undefined ? undefined : decodePageToken(pageToken);
  if (place === null)
    return failure("bad_page_token", "the page token is not one that a list gave out; start again without it");
  const size = Math.min(Math.max(Math.trunc(limit), 1), MAX_PAGE);
  const before = place && sql`(${atMs}, ${seq}) < (${place.atMs}, ${place.seq})`;
  const found = await read(before, size + 1);
  const rows = found.slice(0, size);
  const last = found.length > size ? rows.at(-1) : undefined;
  return ok({ rows, nextPageToken: last === undefined ? null : encodePageToken(placeOf(last)) });
}
