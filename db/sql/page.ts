import { type AnyColumn, desc, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import { type Cursor, decodePageToken, encodePageToken } from "../rows.ts";
import { MAX_PAGE } from "../store.ts";
import type { decisions, outcomes } from "./schema.ts";

interface PageQuery {
  readonly limit: number;
  readonly pageToken?: string | undefined;
}
interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string | null;
}
interface PageSource<Row, Item> {
  /** The rows that meet the condition (undefined: all), at most `limit` of them. */
  readonly read: (before: SQL | undefined, limit: number) => Promise<readonly Row[]>;
  readonly placeOf: (row: Row) => Cursor;
  readonly itemOf: (row: Row) => Result<Item, StoreFailure> | Promise<Result<Item, StoreFailure>>;
}

/** The order of a list, newest first; rows of one time by their number. */
interface NewestFirst {
  readonly atMs: AnyColumn;
  readonly seq: AnyColumn;
}
export const newestFirst = ({ atMs, seq }: NewestFirst): readonly [SQL, SQL] => [desc(atMs), desc(seq)];

/**
 * Rows of a pod by its uid, `namespace/name` or name. As a set of rows, because SQLite would rather walk the whole time index than
 * combine two pod indexes with OR.
 */
export function ofPod(table: typeof decisions | typeof outcomes, pod: string): SQL {
  const [namespace, name] = pod.split("/", 2);
  return name === undefined
    ? sql`${table.seq} IN (SELECT seq FROM ${table} WHERE pod_uid = ${pod} UNION SELECT seq FROM ${table} WHERE pod_name = ${pod})`
    : sql`${table.seq} IN (SELECT seq FROM ${table} WHERE pod_name = ${name} AND pod_namespace = ${namespace})`;
}

/** One page of a list, newest first. Errors: bad_page_token, and those of an item. */
export async function pageOf<Row, Item>(
  { limit, pageToken }: PageQuery,
  { atMs, seq }: NewestFirst,
  { read, placeOf, itemOf }: PageSource<Row, Item>,
): Promise<Result<Page<Item>, StoreFailure>> {
  const place = pageToken === undefined ? undefined : decodePageToken(pageToken);
  if (place === null)
    return failure("bad_page_token", "the page token is not one that a list gave out; start again without it");
  const size = Math.min(Math.max(Math.trunc(limit), 1), MAX_PAGE);
  const before = place && sql`(${atMs}, ${seq}) < (${place.atMs}, ${place.seq})`;
  const found = await read(before, size + 1);
  const rows = found.slice(0, size);
  const items: Item[] = [];
  for (const row of rows) {
    const item = await itemOf(row);
    if (!item.ok) return item;
    items.push(item.value);
  }
  const last = found.length > size ? rows.at(-1) : undefined;
  return ok({ items, nextPageToken: last === undefined ? null : encodePageToken(placeOf(last)) });
}
