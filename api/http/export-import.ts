import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import type { ExportRow } from "../model/export-row.ts";
import { checkExportHeader, readExportLine } from "../service/export-line.ts";
import { DEFAULT_EXPORTED, exportPage } from "../service/export-page.ts";
import { historyProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { lines } from "./batch.ts";
import { bodyProblem, boundsOf, ndjsonStream } from "./body.ts";
import { nodeAsked, rangeIn } from "./decision-list.ts";
import { type Exchange, JSON_TYPE, json, queryOf, queryProblem } from "./route.ts";

/** Rows of one request: on Workers an invocation may run a thousand statements, and a row takes three or four. */
export const MAX_IMPORT_ROWS = 200;

/**
 * How much larger a row may be than the body it came from: its text is quoted in JSON again, and a decision may be
 * longer than its question.
 */
const DENSER = 4;

/** GET /v1/history: a page of an export, which `nodewise history export --api` writes as a file. */
export async function getHistory(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, signal } = exchange;
  const given = queryOf(exchange, ["node", "since", "until", "limit", "pageToken"]);
  if (!given.ok) return given;
  const { node: name, pageToken, ...range } = given.value;
  const nowMs = deps.now();
  const { issues, times } = rangeIn(range, nowMs);
  if (issues.length > 0) return queryProblem(issues);
  const node = await nodeAsked(exchange, name);
  if (!node.ok) return node;
  const page = await exportPage(deps.store, {
    part: { ...times, ...(node.value === null ? {} : { node: node.value }) },
    limit: range.limit === undefined ? DEFAULT_EXPORTED : Number(range.limit),
    ...(pageToken === undefined ? {} : { pageToken }),
    nowMs,
    signal,
  });
  if (!page.ok) return historyProblem(page.error);
  return ok({ status: 200, type: JSON_TYPE, body: JSON.stringify(page.value), untagged: true });
}

const tooLarge = (limit: number): Result<never, Problem> =>
  problem("body_too_large", `the rows have more than ${limit} bytes`, {
    advice: `send fewer at a time; one row that is larger needs an API with a larger --max-body-bytes, of which rows may have ${DENSER} times as many`,
  });

/** POST /v1/history: rows that `nodewise history export` wrote, behind its first line. All of them are imported, or none. */
export async function postHistory(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const stream = ndjsonStream(exchange);
  if (!stream.ok) return stream;
  const { deps, held, signal } = exchange;
  const { limit: usual, bytesPerSecond } = boundsOf(exchange);
  const limit = DENSER * usual;
  const rows: ExportRow[] = [];
  let isFirst = true;
  let size = 0;
  for await (const { number, bytes } of lines(stream.value, limit, { held, signal, bytesPerSecond })) {
    if (!bytes.ok) return bytes.error === "too_large" ? tooLarge(limit) : bodyProblem(bytes.error, limit);
    size += bytes.value.length;
    if (size > limit) return tooLarge(limit);
    const at = `line ${number}`;
    const line = readExportLine(bytes.value);
    if (!line.ok) return invalid(at, line.error);
    if (isFirst) {
      const header = checkExportHeader(line.value);
      if (!header.ok) return invalid(at, header.error);
      isFirst = false;
    } else if (line.value.type === "nodewise-history" || line.value.type === "end" || line.value.type === "token")
      return invalid(at, `a line of type \`${line.value.type}\` cannot be imported over HTTP: leave it out`);
    else rows.push(line.value);
    if (rows.length > MAX_IMPORT_ROWS)
      return invalid(at, `there are more than ${MAX_IMPORT_ROWS} rows: send the rest with the next request`);
  }
  if (isFirst) return invalid("line 1", "there is none: begin with the first line of the export");
  const imported = await deps.store.importRows(rows, deps.now());
  if (imported.ok) return json(imported.value);
  const { code, message } = imported.error;
  deps.metrics.historyFailed(code);
  // the posted rows are damaged, not the history
  return code === "corrupt" ? problem("invalid_input", message) : historyProblem(imported.error);
}
