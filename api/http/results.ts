import * as z from "zod";
import { err, ok, type Result } from "../base/result.ts";
import type { ApiDeps, Reply, Report } from "../dependencies.ts";
import { STEP_STATUSES, type StepStatus } from "../model/cgroups.ts";
import { issuesOf } from "../model/decode.ts";
import { count, text, timestamp } from "../model/fields.ts";
import { ID } from "../service/body-form.ts";
import { idOf } from "../service/canonical.ts";
import { parseJson } from "../service/json.ts";
import { historyProblem, inputProblem, type Problem, problem } from "../service/problem.ts";
import { readJsonBody } from "./body.ts";
import { decisionSeen, type Exchange, json, queryOf } from "./route.ts";

/** The results of steps that changed something: a file that already had the wanted value needs no change. */
const DONE: readonly string[] = ["planned", "applied"] satisfies StepStatus[];
const NOT_DONE: readonly string[] = ["failed", "rolled_back"] satisfies StepStatus[];
const MAX_STEPS = 50_000;

/** One step: its status, and whatever the actuator tells of it. */
const step = z.looseObject({ status: z.enum(STEP_STATUSES) });

/** A node's report of what it did with a decision: one report of all steps. */
export const resultsReport = z.strictObject({
  // no other text is an id
  decisionId: text.meta({ pattern: ID.source }),
  /** The reporter's counter; reports of one decision are listed in its order. */
  seq: count,
  at: timestamp,
  dryRun: z.boolean(),
  complete: z.boolean(),
  results: z.array(step).max(MAX_STEPS),
});
type ResultsReport = z.output<typeof resultsReport>;

/** The posted bytes as a report. Errors: every fault with its place. */
export async function readReport(bytes: Uint8Array, sha256: ApiDeps["sha256"]): Promise<Result<Report, Problem>> {
  const input = parseJson(bytes);
  if (!input.ok) return input;
  const report = resultsReport.safeParse(input.value);
  if (!report.success) return err(inputProblem(issuesOf(report.error, input.value, "")));
  return ok({ decisionId: report.data.decisionId, row: await rowOf(report.data, sha256) });
}

/** POST /v1/results: the same report twice is one row. */
export async function postResults(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, signal } = exchange;
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const report = await (deps.offThread?.report(bytes.value, signal) ?? readReport(bytes.value, deps.sha256));
  if (!report.ok) return report;
  const { decisionId } = report.value;
  const decision = await decisionSeen(exchange, decisionId);
  if (!decision.ok) return decision.error.code === "unknown_decision" ? unknownDecision(decisionId) : decision;
  const row = { ...report.value.row, atMs: deps.now() };
  const added = await deps.store.addResults(decisionId, [row]);
  if (!added.ok) {
    deps.metrics.historyFailed(added.error.code);
    return historyProblem(added.error);
  }
  if (!added.value.known) return unknownDecision(decisionId);
  const fresh = added.value.added === 1;
  if (fresh) deps.metrics.recorded("results", 1);
  const { id, okCount, failedCount } = row;
  return json({ id, decisionId, okCount, failedCount, fresh }, fresh ? 201 : 200);
}

const unknownDecision = (id: string): Result<never, Problem> =>
  problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``, {
    advice: "decide again with the same snapshot, then report under the id of that answer",
  });

async function rowOf(report: ResultsReport, sha256: ApiDeps["sha256"]): Promise<Report["row"]> {
  const { decisionId, seq, at, dryRun, complete, results } = report;
  const body = JSON.stringify({ at, dryRun, complete, steps: results });
  const having = (statuses: readonly string[]): number => results.filter((r) => statuses.includes(r.status)).length;
  return {
    id: await idOf(sha256, JSON.stringify([decisionId, seq, body])),
    seq,
    okCount: having(DONE),
    failedCount: having(NOT_DONE),
    body,
  };
}
