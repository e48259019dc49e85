import * as z from "zod";
import type { ResultRow } from "../../db/store.ts";
import { requireNode } from "../auth/authorize.ts";
import { issuesOf } from "../model/decode.ts";
import { count, text, timestamp } from "../model/fields.ts";
import { err, type Result } from "../model/result.ts";
import { idOf } from "./evaluate.ts";
import { historyProblem } from "./history-problem.ts";
import { postedValue } from "./posted-value.ts";
import { inputProblem, type Problem, problem } from "./problem.ts";
import { type Exchange, json, type Reply } from "./route.ts";

/** How a step of a plan ended. */
export const STEP_STATUSES = ["planned", "applied", "unchanged", "skipped", "failed", "rolled_back"] as const;
const DONE: readonly string[] = ["planned", "applied", "unchanged"] satisfies (typeof STEP_STATUSES)[number][];
const NOT_DONE: readonly string[] = ["failed", "rolled_back"] satisfies (typeof STEP_STATUSES)[number][];
const MAX_STEPS = 50_000;

/** One step: its status, and whatever the actuator tells of it. */
const step = z.looseObject({ status: z.enum(STEP_STATUSES) });

/** What a node did with a decision: one report of all steps. */
export const resultsReport = z.strictObject({
  decisionId: text,
  /** The reporter's counter; reports of one decision are listed in its order. */
  seq: count,
  at: timestamp,
  dryRun: z.boolean(),
  complete: z.boolean(),
  results: z.array(step).max(MAX_STEPS),
});
type ResultsReport = z.output<typeof resultsReport>;

/** POST /v1/results: the same report twice is one row. */
export async function postResults(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller } = exchange;
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const report = resultsReport.safeParse(input.value);
  if (!report.success) return err(inputProblem(issuesOf(report.error, input.value, "")));
  const { decisionId } = report.data;
  const decision = await ports.store.getDecision(decisionId);
  if (!decision.ok) return historyProblem(decision.error);
  if (decision.value === null) return unknownDecision(decisionId);
  const allowed = requireNode(caller, decision.value.node);
  if (!allowed.ok) return allowed;
  const row = await rowOf(report.data, ports.now(), ports.sha256);
  const added = await ports.store.addResults(decisionId, [row]);
  if (!added.ok) {
    ports.metrics.historyFailed(added.error.code);
    return historyProblem(added.error);
  }
  if (!added.value.known) return unknownDecision(decisionId);
  const fresh = added.value.added === 1;
  if (fresh) ports.metrics.recorded("results", 1);
  const { id, okCount, failedCount } = row;
  return json({ id, decisionId, okCount, failedCount, fresh }, fresh ? 201 : 200);
}

const unknownDecision = (id: string): Result<never, Problem> =>
  problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``, {
    advice: "decide again with the same snapshot, then report under the id of that answer",
  });

async function rowOf(
  report: ResultsReport,
  nowMs: number,
  sha256: (t: string) => string | Promise<string>,
): Promise<ResultRow> {
  const { decisionId, seq, at, dryRun, complete, results } = report;
  const body = JSON.stringify({ at, dryRun, complete, steps: results });
  const having = (statuses: readonly string[]): number => results.filter((r) => statuses.includes(r.status)).length;
  return {
    id: await idOf(sha256, JSON.stringify([decisionId, seq, body])),
    seq,
    okCount: having(DONE),
    failedCount: having(NOT_DONE),
    atMs: nowMs,
    body,
  };
}
