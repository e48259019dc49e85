import type { DecisionFilter } from "../../db/store.ts";
import { isKind, KINDS } from "../model/decision.ts";
import type { InputIssue } from "../model/input-issue.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { unknownField } from "../service/decision-request.ts";
import { historyProblem, inputProblem, invalid, type Problem } from "../service/problem.ts";
import { isObject } from "../service/replay/parsed.ts";
import { type HistoryRequest, replayAnswer } from "../service/replay/replay-answer.ts";
import { historyReplayer } from "../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../service/replay/replay-page.ts";
import { nodeNamed, rangeIssues, rangeOf } from "./nodes.ts";
import { postedValue } from "./posted-value.ts";
import { changeIn, checkedChange, isGiven, type Members } from "./replay-change.ts";
import { type Exchange, json } from "./route.ts";

export const DEFAULT_REPLAYED = 500;
const FIELDS: ReadonlySet<string> = new Set([
  "since",
  "until",
  "node",
  "kind",
  "kubeletConfiguration",
  "kubeletConfigurationPatch",
  "limit",
  "pageToken",
]);

/** POST /v1/replay: decides a page of the history again, oldest first; records nothing. */
export async function postReplayHistory(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller, signal } = exchange;
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const request = historyRequest(input.value);
  if (!request.ok) return request;
  const { filter } = request.value;
  if (filter.node !== undefined) {
    const found = await nodeNamed(exchange, filter.node);
    if (!found.ok) return found;
  }
  const node = filter.node ?? caller.node;
  const nowMs = ports.now();
  const world = {
    store: ports.store,
    replay: historyReplayer(ports.store, request.value.change),
    nowMs,
    sha256: ports.sha256,
    signal,
  };
  const answer = await replayAnswer(world, { ...request.value, filter: { ...filter, ...(node !== null && { node }) } });
  if (answer.ok) return json(answer.value);
  if (answer.error.code === "bad_page_token") return invalid("pageToken", answer.error.message);
  return historyProblem(answer.error);
}

function historyRequest(input: unknown): Result<HistoryRequest, Problem> {
  if (!isObject(input)) return invalid("$", 'expected an object such as {"since": "2026-01-31T12:00:00Z"}');
  for (const name in input) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const filter = filterIn(input);
  if (!filter.ok) return filter;
  const limit = isGiven(input["limit"]) ? input["limit"] : DEFAULT_REPLAYED;
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > MAX_REPLAYED) {
    return invalid("limit", `must be a number from 1 to ${MAX_REPLAYED}`);
  }
  const { pageToken } = input;
  if (isGiven(pageToken) && typeof pageToken !== "string") return invalid("pageToken", "expected a text");
  const asked = changeIn(input);
  const change = asked.ok ? checkedChange(asked.value) : asked;
  if (!change.ok) return change;
  return ok({
    filter: filter.value,
    change: change.value,
    limit: limit as number,
    ...(typeof pageToken === "string" ? { pageToken } : {}),
  });
}

function filterIn(body: Members): Result<HistoryRequest["filter"], Problem> {
  const issues: InputIssue[] = [];
  const texts: { [name: string]: string } = {};
  for (const name of ["since", "until", "node", "kind"]) {
    const value = body[name];
    if (typeof value === "string") texts[name] = value;
    else if (isGiven(value)) issues.push({ path: name, message: "expected a text" });
  }
  const { node, kind } = texts;
  issues.push(...rangeIssues(texts));
  if (kind !== undefined && !isKind(kind)) issues.push({ path: "kind", message: `must be one of ${KINDS.join(", ")}` });
  if (issues.length > 0) return err(inputProblem(issues));
  const range = rangeOf(texts);
  const { sinceMs, untilMs } = range;
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    return invalid("since", `is later than until (${texts["until"]})`);
  }
  const filter: DecisionFilter = {
    ...range,
    ...(node === undefined ? {} : { node }),
    ...(kind !== undefined && isKind(kind) ? { kind } : {}),
  };
  return ok(filter);
}
