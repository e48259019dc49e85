import type { DecisionFilter } from "../../db/store.ts";
import { isKind, KINDS } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import type { InputIssue } from "../model/input-issue.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import { notAmongIssue } from "../model/near-name.ts";
import { isObject } from "../model/own.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { PROFILES } from "../profiles/index.ts";
import { knownVersionIn, unknownField } from "../service/decision-request.ts";
import { parseJson } from "../service/json.ts";
import { historyProblem, inputProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { type Change, changed, recordedAnswer } from "../service/replay/parsed.ts";
import { type HistoryRequest, replayAnswer } from "../service/replay/replay-answer.ts";
import { historyReplayer, replayer } from "../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../service/replay/replay-page.ts";
import { postedValue, readJsonBody } from "./body.ts";
import { rangeIn } from "./decision-list.ts";
import { findDecision } from "./decisions.ts";
import { nodeNamed } from "./nodes.ts";
import { type Exchange, json } from "./route.ts";

export const DEFAULT_REPLAYED = 500;
const HISTORY_FIELDS: ReadonlySet<string> = new Set([
  "since",
  "until",
  "node",
  "kind",
  "kubeletConfiguration",
  "kubeletConfigurationPatch",
  "kubeletVersion",
  "limit",
  "pageToken",
]);

/** POST /v1/replay: decides a page of the history again, oldest first; records nothing. */
export async function postReplayHistory(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller, signal } = exchange;
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const request = historyRequest(input.value, ports.now());
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

function historyRequest(input: unknown, nowMs: number): Result<HistoryRequest, Problem> {
  if (!isObject(input)) return invalid("$", 'expected an object such as {"since": "2026-01-31T12:00:00Z"}');
  for (const name in input) if (!HISTORY_FIELDS.has(name)) return unknownField(name, HISTORY_FIELDS);
  const page = historyPageIn(input, nowMs);
  if (!page.ok) return page;
  const asked = changeIn(input);
  const change = asked.ok ? checkedChange(asked.value) : asked;
  return change.ok ? ok({ ...page.value, change: change.value }) : change;
}

/** Which page of which history a request's body asks for. Errors: each at its field. */
export function historyPageIn(body: Members, nowMs: number): Result<Omit<HistoryRequest, "change">, Problem> {
  const filter = filterIn(body, nowMs);
  if (!filter.ok) return filter;
  const limit = isGiven(body["limit"]) ? body["limit"] : DEFAULT_REPLAYED;
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > MAX_REPLAYED) {
    return invalid("limit", `must be a number from 1 to ${MAX_REPLAYED}`);
  }
  const { pageToken } = body;
  if (isGiven(pageToken) && typeof pageToken !== "string") return invalid("pageToken", "expected a text");
  return ok({
    filter: filter.value,
    limit: limit as number,
    ...(typeof pageToken === "string" ? { pageToken } : {}),
  });
}

function filterIn(body: Members, nowMs: number): Result<HistoryRequest["filter"], Problem> {
  const issues: InputIssue[] = [];
  const texts: { [name: string]: string } = {};
  for (const name of ["since", "until", "node", "kind"]) {
    const value = body[name];
    if (typeof value === "string") texts[name] = value;
    else if (isGiven(value)) issues.push({ path: name, message: "expected a text" });
  }
  const { node, kind } = texts;
  const range = rangeIn(texts, nowMs);
  issues.push(...range.issues);
  if (kind !== undefined && !isKind(kind)) issues.push(notAmongIssue("kind", kind, KINDS));
  if (issues.length > 0) return err(inputProblem(issues));
  const { sinceMs, untilMs } = range.times;
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    return invalid("since", `is later than until (${texts["until"]})`);
  }
  const filter: DecisionFilter = {
    ...range.times,
    ...(node === undefined ? {} : { node }),
    ...(kind !== undefined && isKind(kind) ? { kind } : {}),
  };
  return ok(filter);
}

export type Members = Readonly<Record<string, unknown>>;

/** Null is absent, as in Go. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The change that a request's body asks about. Errors: two configurations, a patch or a version that is none. */
export function changeIn(body: Members): Result<Change, Problem> {
  const { kubeletConfiguration, kubeletConfigurationPatch } = body;
  const version = knownVersionIn(body);
  if (!version.ok) return version;
  if (isGiven(kubeletConfiguration) && isGiven(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", "it is one or the other: kubeletConfiguration was given as well");
  }
  if (isGiven(kubeletConfigurationPatch) && !isObject(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", 'expected an object such as {"kubeReserved": {"cpu": "500m"}}');
  }
  return ok({
    kubeletConfiguration: kubeletConfiguration ?? undefined,
    kubeletConfigurationPatch: kubeletConfigurationPatch ?? undefined,
    kubeletVersion: version.value ?? undefined,
  });
}

const FIELD = "kubeletConfiguration";

/** Looks at a change by itself, before it is tried on thousands of decisions. Errors: every fault with its place in the body. */
export function checkedChange(change: Change): Result<Change, Problem> {
  const snapshot = decodeSnapshot(changed({}, change));
  if (snapshot.ok) return ok(change);
  const { kubeletConfigurationPatch: patch } = change;
  const field = isObject(patch) ? ["kubeletConfigurationPatch", ...configurationPath(patch)].join(".") : FIELD;
  const issues = snapshot.error.map(({ path, message }) => ({ path: field + path.slice(FIELD.length), message }));
  return err(inputProblem(issues));
}

const FIELDS: ReadonlySet<string> = new Set([
  "kubeletConfiguration",
  "kubeletConfigurationPatch",
  "kubeletVersion",
  "policyVersion",
]);

/** POST /v1/decisions/{id}/replay: decides again and compares; records nothing. */
export async function postReplay(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const request = await replayRequest(exchange);
  if (!request.ok) return request;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const again = await replayer(exchange.ports.store, request.value)(row);
  if (!again.ok) return historyProblem(again.error);
  const { answer, problem: why, state, differences, truncated } = again.value;
  if (answer === null) return err(why);
  const { policyVersion, decision, reasons, needs } = answer;
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return historyProblem(recorded.error);
  const { kubeletVersion: _, ...answered } = recorded.value;
  return json({
    id: row.id,
    kind: row.kind,
    node: row.node,
    snapshotId: row.snapshotId,
    recorded: { policyVersion: row.policyVersion, ...answered },
    replayed: { policyVersion, decision, reasons, needs },
    differences,
    truncated,
    same: state === "same",
  });
}

/** An empty body replays with nothing changed. */
async function replayRequest(exchange: Exchange): Promise<Result<Change, Problem>> {
  const { c } = exchange;
  if (
    c.req.header("content-type") === undefined &&
    (c.req.header("content-length") ?? "0") === "0" &&
    c.req.header("transfer-encoding") === undefined
  ) {
    return ok({});
  }
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const input = parseJson(bytes.value);
  if (!input.ok) return input;
  if (!isObject(input.value)) {
    return invalid("$", 'expected an object such as {"kubeletConfiguration": {...}}');
  }
  const body = input.value;
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const { policyVersion, kubeletVersion } = body;
  if (!isGiven(policyVersion)) return changeIn(body);
  const found = PROFILES.find((profile) => profile.policyVersion === policyVersion);
  if (found === undefined) {
    const asked = String(policyVersion).slice(0, 64);
    const known = PROFILES.map((profile) => profile.policyVersion).join(", ");
    return problem(
      "unknown_policy_version",
      `policy version \`${asked}\` is not here; this server decides as ${known}`,
    );
  }
  if (!isGiven(kubeletVersion)) return changeIn({ ...body, kubeletVersion: found.version });
  return invalid("policyVersion", "it is one or the other: kubeletVersion was given as well");
}
