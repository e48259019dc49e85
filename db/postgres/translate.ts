import { memo } from "../../api/base/cache.ts";

/**
 * The store's statements are written once, in SQLite's SQL (`db/sql/`). These rules replace all that differs in Postgres, in
 * order; a missing rule is a syntax error in the store's contract suite.
 */
const RULES: readonly (readonly [RegExp, string])[] = [
  // hints for SQLite's planner: the order of a join, an index, no index, a value that is not compared with partial indexes
  [/\bCROSS JOIN\b/g, "JOIN"],
  [/\bINDEXED BY \w+/g, ""],
  [/(?<=[\s(])\+(?=")/g, ""],
  [/\(SELECT \?\)/g, "?"],
  // JSON arrays: both databases call an element `value`
  [/\bjson_each\(([^()]+)\)/g, "json_array_elements_text(CAST($1 AS json)) AS json_each"],
  [/\bjson_extract\(([\w.]+), '\$\[(\d+)\]'\)/g, "(CAST($1 AS json) ->> $2)"],
  [/\binstr\(/g, "strpos("],
  // not the beginning of the transaction, which may have waited since then
  [/\bunixepoch\(\)/g, "CAST(extract(epoch FROM clock_timestamp()) AS bigint)"],
];

/** For some hundred fixed texts, and the lists' texts, which depend on their filters. */
const TEXTS = 2000;

export const inPostgres = memo(TEXTS, (sqlite: string): string => {
  let text = sqlite;
  for (const [found, own] of RULES) text = text.replace(found, own);
  let parameter = 0;
  return text.replace(/\?/g, () => `$${++parameter}`);
});
