import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { Removal, RemovalFilter, RemovalRow, Removals, ReturnedImage } from "../rows.ts";
import type { Store } from "../store.ts";
import type { Driver, Statement, Value } from "./driver.ts";
import { newestFirst, pageOf } from "./page.ts";
import { removals } from "./schema.ts";

/** Parses the JSON of an image's names. `corrupt`: the text is none. */
export function namesOf(id: string, text: string): Result<readonly string[], StoreFailure> {
  try {
    return ok(JSON.parse(text));
  } catch {
    return failure("corrupt", `removal of \`${id}\`: its names are not JSON; restore the database from a backup`);
  }
}

export function decodeRemoval(row: typeof removals.$inferSelect): Result<RemovalRow, StoreFailure> {
  const { seq: _, node: _node, objectId: id, podNamespace, podName, podUid, containerName, ...rest } = row;
  const names = namesOf(id, rest.names);
  if (!names.ok) return names;
  const pod = podName === null ? null : { namespace: podNamespace ?? "", name: podName, uid: podUid ?? "" };
  return ok({ ...rest, id, names: names.value, pod, container: containerName });
}

/** Uses instr instead of LIKE, whose pattern D1 limits to less than a digest's length. */
const contains = (text: SQL, part: string): SQL => sql`instr(lower(${text}), lower(${part})) > 0`;
const naming = (part: string): SQL => sql`(${contains(sql`${removals.objectId}`, part)}
  OR EXISTS (SELECT 1 FROM json_each(${removals.names}) WHERE ${contains(sql`json_each.value`, part)})
  OR ${contains(sql`${removals.podNamespace} || '/' || ${removals.podName}`, part)}
  OR ${contains(sql`${removals.containerName}`, part)})`;

const conditionOf = ({ node, kind, target, end, search, sinceMs, untilMs }: RemovalFilter): SQL | undefined =>
  and(
    eq(removals.node, node),
    kind === undefined ? undefined : eq(removals.kind, kind),
    target === undefined ? undefined : eq(removals.target, target),
    end === undefined ? undefined : eq(removals.end, end),
    sinceMs === undefined ? undefined : gte(removals.atMs, sinceMs),
    untilMs === undefined ? undefined : lt(removals.atMs, untilMs),
    search === undefined ? undefined : naming(search),
  );

export function removalsOf({ db, attempt }: Driver): Pick<Store, "listRemovals"> {
  return {
    listRemovals: ({ limit, pageToken, ...filter }) =>
      attempt(() =>
        pageOf({ limit, pageToken }, removals, {
          read: (before, most) =>
            db
              .select()
              .from(removals)
              .where(and(conditionOf(filter), before))
              .orderBy(...newestFirst(removals))
              .limit(most),
          placeOf: (row) => row,
          itemOf: decodeRemoval,
        }),
      ),
  };
}

/** The UTF-16 length of JSON per statement, so that a parameter stays below D1's limit in any script. */
const CHUNK = 256 * 1024;

/** The index of an image's size in `columnsOf`; the others are texts. */
const SIZE = 4;
const TEXT = "json_extract(value, '$[N]')";
const NUMBER = `CAST(${TEXT} AS bigint)`;
/** Inserts a removal. A repeated result is not written again, and `removed` is final. */
const insert = (guard: string): string => `INSERT INTO removals (node, kind, operation, at_ms, decision_id,
  target, object_id, runtime_handler, names, size_bytes, reason, result, message, pod_namespace, pod_name, pod_uid, container_name)
SELECT ?, ?, ?, ?, ?, ${Array.from({ length: 12 }, (_, i) => (i === SIZE ? NUMBER : TEXT).replace("N", String(i))).join(", ")}
FROM json_each(?) WHERE ${guard}
ON CONFLICT (node, object_id, target, runtime_handler, at_ms) DO UPDATE
SET result = excluded.result, message = excluded.message, decision_id = excluded.decision_id
WHERE removals.result <> 'removed' AND (removals.result, removals.message) IS DISTINCT FROM (excluded.result, excluded.message)`;

const columnsOf = ({ target, id, runtimeHandler, names, sizeBytes, why, end, message, pod, container }: Removal) => [
  target,
  id,
  runtimeHandler,
  names,
  sizeBytes,
  why,
  end,
  message,
  pod?.namespace ?? null,
  pod?.name ?? null,
  pod?.uid ?? null,
  container,
];

/**
 * Marks an image as returned, at its last removal before this pass, since the pass may remove it once more. A second report
 * does not change the mark.
 */
const comeBack = (guard: string): string => `WITH back(at_ms, seq) AS MATERIALIZED (
  SELECT CAST(json_extract(value, '$[2]') AS bigint), (
    SELECT seq FROM removals WHERE node = ? AND object_id = json_extract(value, '$[0]') AND target = 'image'
      AND runtime_handler = json_extract(value, '$[1]') AND at_ms < ? AND result = 'removed' ORDER BY at_ms DESC LIMIT 1
  ) FROM json_each(?) WHERE ${guard}
) UPDATE removals SET pulled_again_at_ms = back.at_ms FROM back WHERE removals.seq = back.seq AND removals.pulled_again_at_ms IS NULL`;

const returnOf = ({ id, runtimeHandler, againAtMs }: ReturnedImage) => [id, runtimeHandler, againAtMs];

/**
 * The statements that record a pass's removals, as far as decision `decisionId` lists them. `guard`: an SQL condition
 * with parameters.
 */
export function removalStatements(
  node: string,
  decisionId: string,
  { kind, operation, atMs, removals, returns }: Removals,
  guard: string,
  guardParams: readonly Value[],
): readonly Statement[] {
  const [insertSql, backSql] = [insert(guard), comeBack(guard)];
  return [
    ...chunks(removals.map(columnsOf)).map((rows) => ({
      sql: insertSql,
      params: [node, kind, operation, atMs, decisionId, rows, ...guardParams],
    })),
    ...chunks(returns.map(returnOf)).map((rows) => ({
      sql: backSql,
      params: [node, atMs, rows, ...guardParams],
      ofMany: true as const,
    })),
  ];
}

/** Rows -> texts of JSON arrays of them, each as long as one statement allows. */
function chunks(rows: readonly unknown[]): readonly string[] {
  const texts: string[] = [];
  let open: string[] = [];
  let length = 0;
  const close = (): void => {
    if (open.length > 0) texts.push(`[${open.join(",")}]`);
    open = [];
    length = 0;
  };
  for (const row of rows) {
    const text = JSON.stringify(row);
    if (length + text.length > CHUNK) close();
    open.push(text);
    length += text.length + 1;
  }
  close();
  return texts;
}
