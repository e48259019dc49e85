import * as z from "zod";
import type { DecisionFilter } from "../../db/store.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { notAmongIssue } from "../base/near-name.ts";
import { type Fields, isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { isKind, KINDS } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { optional } from "../model/fields.ts";
import { configurationMeta, configurationPath } from "../model/kubelet-configuration.ts";
import { PROFILES } from "../profiles/index.ts";
import { knownVersionText, readBody } from "../service/body-form.ts";
import { parseJson } from "../service/json.ts";
import { historyProblem, inputProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { type Change, changed, recordedAnswer } from "../service/replay/parsed.ts";
import { type HistoryRequest, replayAnswer } from "../service/replay/replay-answer.ts";
import { historyReplayer, replayer } from "../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../service/replay/replay-page.ts";
import { postedValue, readJsonBody } from "./body.ts";
import { rangeIn, timeOrAgoMeta } from "./decision-list.ts";
import { findDecision } from "./decisions.ts";
import { nodeNamed } from "./nodes.ts";
import { type Exchange, json } from "./route.ts";

const DEFAULT_REPLAYED = 500;
/** A time in the query; `historyPageOf` checks all members together. */
const time = optional(z.unknown().meta(timeOrAgoMeta));
const notALimit = `must be a number from 1 to ${MAX_REPLAYED}`;
/** The page of the history that a request asks for, and which decisions of it. */
export const pageMembers = {
  since: time.describe("the beginning: decisions that were made at this time or later"),
  until: time.describe("the end: decisions that were made before this time; absent: now"),
  kind: optional(z.unknown().meta({ type: "string", enum: KINDS })).describe(
    "the kind of the decisions; absent: all kinds",
  ),
  limit: z
    .int(notALimit)
    .min(1, notALimit)
    .max(MAX_REPLAYED, notALimit)
    .default(DEFAULT_REPLAYED)
    .describe("the largest number of decisions of one page; a page that takes long ends earlier"),
  pageToken: optional(z.string("expected a text")).describe(
    "the nextPageToken of the previous page, with the same node, kind, configuration and version; the times of the first page apply",
  ),
};
/** At most one of the two configurations; without either, the configuration is unchanged. */
const changeMembers = {
  kubeletConfiguration: optional(z.unknown().meta(configurationMeta)).describe(
    "the KubeletConfiguration that replaces the recorded one as a whole: a field that it leaves out has the kubelet's default",
  ),
  kubeletConfigurationPatch: optional(
    z.custom<Fields>(isObject, 'expected an object such as {"kubeReserved": {"cpu": "500m"}}').meta(configurationMeta),
  ).describe("a JSON merge patch (RFC 7396) of the recorded KubeletConfiguration: null removes a field"),
  kubeletVersion: optional(knownVersionText).describe(
    "the kubelet version whose rules decide; absent: the recorded version. If the recorded configuration names every field, as /configz does, fields with a default of the recorded version that this version changes count as left out",
  ),
};
const { since, until, kind, limit, pageToken } = pageMembers;
export const historyReplayForm = z.strictObject({
  since,
  until,
  node: optional(z.unknown().meta({ type: "string" })).describe(
    "the node of the decisions; absent: all nodes that the token may see",
  ),
  kind,
  ...changeMembers,
  limit,
  pageToken,
});
export const replayForm = z.strictObject({
  ...changeMembers,
  policyVersion: optional(
    z.unknown().meta({ type: "string", enum: PROFILES.map((one) => one.policyVersion) }),
  ).describe(
    "the policy version whose rules decide, one of those of this server; kubeletVersion names the same by the kubelet version",
  ),
});

/** POST /v1/replay: decides a page of the history again, oldest first; records nothing. */
export async function postReplayHistory(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller, signal } = exchange;
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const request = historyRequest(input.value, deps.now());
  if (!request.ok) return request;
  const { filter } = request.value;
  if (filter.node !== undefined) {
    const found = await nodeNamed(exchange, filter.node);
    if (!found.ok) return found;
  }
  const node = filter.node ?? caller.node;
  const nowMs = deps.now();
  const world = {
    store: deps.store,
    replay: historyReplayer(deps.store, request.value.change),
    nowMs,
    sha256: deps.sha256,
    signal,
  };
  const answer = await replayAnswer(world, { ...request.value, filter: { ...filter, ...(node !== null && { node }) } });
  if (answer.ok) return json(answer.value);
  if (answer.error.code === "bad_page_token") return invalid("pageToken", answer.error.message);
  return historyProblem(answer.error);
}

function historyRequest(input: unknown, nowMs: number): Result<HistoryRequest, Problem> {
  const body = readBody(historyReplayForm, input, '{"since": "2026-01-31T12:00:00Z"}');
  if (!body.ok) return body;
  const page = historyPageOf(body.value, nowMs);
  if (!page.ok) return page;
  const asked = changeOf(body.value);
  const change = asked.ok ? checkedChange(asked.value) : asked;
  return change.ok ? ok({ ...page.value, change: change.value }) : change;
}

type AskedPage = Pick<z.output<typeof historyReplayForm>, keyof typeof pageMembers | "node">;
/** The page of the history that a request asks for. Errors: each at its field. */
export function historyPageOf(asked: AskedPage, nowMs: number): Result<Omit<HistoryRequest, "change">, Problem> {
  const filter = filterOf(asked, nowMs);
  if (!filter.ok) return filter;
  const { limit, pageToken } = asked;
  return ok({ filter: filter.value, limit, ...(pageToken === undefined ? {} : { pageToken }) });
}

function filterOf(asked: AskedPage, nowMs: number): Result<HistoryRequest["filter"], Problem> {
  const issues: InputIssue[] = [];
  const texts: { [name: string]: string } = {};
  for (const name of ["since", "until", "node", "kind"] as const) {
    const value = asked[name];
    if (typeof value === "string") texts[name] = value;
    else if (value !== undefined) issues.push({ path: name, message: "expected a text" });
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

/** The change that a request asks about. Errors: two configurations. */
function changeOf(
  asked: Partial<Pick<z.output<typeof replayForm>, keyof typeof changeMembers>>,
): Result<Change, Problem> {
  const { kubeletConfiguration, kubeletConfigurationPatch, kubeletVersion } = asked;
  if (kubeletConfiguration !== undefined && kubeletConfigurationPatch !== undefined) {
    return invalid("kubeletConfigurationPatch", "it is one or the other: kubeletConfiguration was given as well");
  }
  return ok({ kubeletConfiguration, kubeletConfigurationPatch, kubeletVersion });
}

const FIELD = "kubeletConfiguration";

/** Looks at a change by itself, before it is tried on thousands of decisions. Errors: every fault with its place in the body. */
function checkedChange(change: Change): Result<Change, Problem> {
  const snapshot = decodeSnapshot(changed({}, change));
  if (snapshot.ok) return ok(change);
  const { kubeletConfigurationPatch: patch } = change;
  const field = isObject(patch) ? ["kubeletConfigurationPatch", ...configurationPath(patch)].join(".") : FIELD;
  const issues = snapshot.error.map(({ path, message }) => ({ path: field + path.slice(FIELD.length), message }));
  return err(inputProblem(issues));
}

/** POST /v1/decisions/{id}/replay: decides again and compares; records nothing. */
export async function postReplay(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const request = await replayRequest(exchange);
  if (!request.ok) return request;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const again = await replayer(exchange.deps.store, request.value)(row);
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
  const body = readBody(replayForm, input.value, '{"kubeletConfiguration": {...}}');
  if (!body.ok) return body;
  const { policyVersion, ...asked } = body.value;
  if (policyVersion === undefined) return changeOf(asked);
  const found = PROFILES.find((profile) => profile.policyVersion === policyVersion);
  if (found === undefined) {
    const asked = String(policyVersion).slice(0, 64);
    const known = PROFILES.map((profile) => profile.policyVersion).join(", ");
    return problem(
      "unknown_policy_version",
      `policy version \`${asked}\` is not here; this server decides as ${known}`,
    );
  }
  if (asked.kubeletVersion === undefined) return changeOf({ ...asked, kubeletVersion: found.version });
  return invalid("policyVersion", "it is one or the other: kubeletVersion was given as well");
}
