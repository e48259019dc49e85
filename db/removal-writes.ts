import type { Statement, Value } from "./driver.ts";
import type { Removal, Removals, Return } from "./removal.ts";

/** UTF-16 units of JSON that one statement takes, so that no parameter comes near what D1 allows, whatever the letters are. */
const CHUNK = 256 * 1024;

/** An end that is told again is not written again, and `removed` is the last that there is. */
const insert = (guard: string): string => `INSERT INTO removals (node, kind, operation, at_ms, decision_id,
  target, object_id, runtime_handler, names, size_bytes, why, "end", message, pod_namespace, pod_name, pod_uid, container_name)
SELECT ?, ?, ?, ?, ?, ${Array.from({ length: 12 }, (_, i) => `json_extract(value, '$[${i}]')`).join(", ")}
FROM json_each(?) WHERE ${guard}
ON CONFLICT (node, object_id, target, runtime_handler, at_ms) DO UPDATE
SET "end" = excluded."end", message = excluded.message, decision_id = excluded.decision_id
WHERE removals."end" <> 'removed' AND (removals."end", removals.message) IS NOT (excluded."end", excluded.message)`;

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

/** Of an image's removals the last before this pass, for the pass may remove it once more; told again, it stays as it is. */
const comeBack = (guard: string): string => `UPDATE removals SET again_at_ms = back.at_ms FROM (
  SELECT json_extract(value, '$[2]') AS at_ms, (
    SELECT seq FROM removals WHERE node = ? AND object_id = json_extract(value, '$[0]') AND target = 'image'
      AND runtime_handler = json_extract(value, '$[1]') AND at_ms < ? AND "end" = 'removed' ORDER BY at_ms DESC LIMIT 1
  ) AS seq FROM json_each(?) WHERE ${guard}
) AS back WHERE removals.seq = back.seq AND removals.again_at_ms IS NULL`;

const returnOf = ({ id, runtimeHandler, againAtMs }: Return) => [id, runtimeHandler, againAtMs];

/** What writes down a pass of a node, as far as decision `decisionId` tells it. `guard` is an SQL condition for doing so, with its parameters. */
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
    ...chunks(returns.map(returnOf)).map((rows) => ({ sql: backSql, params: [node, atMs, rows, ...guardParams] })),
  ];
}

/** Rows -> texts of JSON arrays of them, each as long as one statement takes. */
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
