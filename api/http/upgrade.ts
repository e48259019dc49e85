import * as z from "zod";
import { isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { FlagsAndDropIns } from "../decide/lint/start.ts";
import type { Reply } from "../dependencies.ts";
import { optional } from "../model/fields.ts";
import type { Form } from "../model/forms.ts";
import { type ChosenProfile, chooseProfile, PROFILES } from "../profiles/index.ts";
import { knownVersionText, readBody, versionText } from "../service/body-form.ts";
import { historyProblem, inputProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { configured, type Subject, subjectOf, versionBefore } from "../service/upgrade/asked.ts";
import { upgradeReport as reportForm, type UpgradeReport } from "../service/upgrade/report.ts";
import { type UpgradePage, upgradePage, upgradePages } from "../service/upgrade/upgrade-page.ts";
import { upgradeReport } from "../service/upgrade/upgrade-report.ts";
import { postedValue } from "./body.ts";
import { aboutNode, flagsAndDropInsOf, type LintSubject, nodeMembers, startMembers } from "./lint.ts";
import { historyPageOf, pageMembers } from "./replay.ts";
import { type Exchange, json } from "./route.ts";

const VERSIONS = PROFILES.map(({ version }) => version).join(", ");
export const upgradeForm = z.strictObject({
  to: knownVersionText.describe(`the kubelet version to upgrade or downgrade to, one of ${VERSIONS}`),
  from: optional(versionText).describe(
    "the present kubelet version, used if the node in the snapshot reports none; the version that the node reports takes precedence. If Nodewise does not know the version, it uses the nearest one that it knows, which the report shows",
  ),
  ...startMembers,
  ...nodeMembers,
  ...pageMembers,
});
type UpgradeRequestBody = z.output<typeof upgradeForm>;
/** Members about a node that are posted, and not taken from the history. */
const GIVEN_OF_NODE: readonly (keyof UpgradeRequestBody)[] = [
  "kubeletConfiguration",
  "kubeletArgs",
  "kubeletDropIns",
  "snapshot",
];
/** Members that ask for the history as well. */
const OF_HISTORY: readonly (keyof UpgradeRequestBody)[] = ["since", "until", "pageToken"];

/** The answer of POST /v1/upgrade. */
export const upgradeAnswer = z.strictObject({
  report: reportForm
    .nullable()
    .describe(
      "the report on the configuration and the snapshot; null: there is neither, the request is for a page after the first, or `unreported` has the reason",
    ),
  unreported: z
    .string()
    .nullable()
    .describe(
      "why the report on the node's stored snapshot could not be made in addition to its history; null: it was made, or was not requested",
    ),
  history: upgradePage
    .nullable()
    .describe("a page of the history, oldest decision first; null: the request has neither since, until nor pageToken"),
});
export type UpgradeAnswer = Form<typeof upgradeAnswer>;

/** POST /v1/upgrade: what another kubelet does to a node, and a page of the history as it decides it; records nothing. */
export async function postUpgrade(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const read = readBody(upgradeForm, input.value, '{"to": "1.37", "node": "n1"}');
  if (!read.ok) return read;
  const body = read.value;
  const to = chooseProfile(body.to);
  const asksHistory = OF_HISTORY.some((name) => body[name] !== undefined);
  const beside = flagsAndDropInsOf(body);
  if (!beside.ok) return beside;
  const about = await aboutNode(exchange, body);
  if (!about.ok) return about;
  const report = body.pageToken === undefined ? reportIn(body, beside.value, about.value, to) : ok(null);
  const isStored = about.value.node !== null && !GIVEN_OF_NODE.some((name) => body[name] !== undefined);
  if (!report.ok && !(asksHistory && isStored)) return report;
  if (report.ok && report.value === null && !asksHistory && about.value.node === null) {
    const what = "is needed, or a snapshot, or `since`, from when on the history is asked";
    return invalid("kubeletConfiguration", what);
  }
  const history = asksHistory ? await historyOf(exchange, body, about.value, to) : ok(null);
  if (!history.ok) return history;
  const outcome = report.ok
    ? { report: report.value, unreported: null }
    : { report: null, unreported: report.error.detail };
  const answer: UpgradeAnswer = { ...outcome, history: history.value };
  return json(answer);
}

type Start = Subject & FlagsAndDropIns;

/** The subject; null: the body names no configuration, command line or stored snapshot. */
function subjectIn(
  body: UpgradeRequestBody,
  beside: FlagsAndDropIns,
  { posted }: LintSubject,
): Result<Start | null, Problem> {
  const configuration = body.kubeletConfiguration;
  if (configuration !== undefined && !isObject(configuration)) {
    return invalid("kubeletConfiguration", 'expected an object such as {"maxPods": 110}');
  }
  if (posted === null) {
    const isNone = configuration === undefined && beside.args === null;
    return ok(isNone ? null : { ...configured(configuration, undefined), ...beside, snapshot: undefined });
  }
  const subject = subjectOf(posted, configuration, body.snapshot === undefined ? "" : "snapshot");
  return subject.ok ? ok({ ...subject.value, ...beside }) : err(inputProblem(subject.error));
}

/** Null: there is nothing to report of. */
function reportIn(
  body: UpgradeRequestBody,
  beside: FlagsAndDropIns,
  about: LintSubject,
  to: ChosenProfile,
): Result<UpgradeReport | null, Problem> {
  const subject = subjectIn(body, beside, about);
  if (!subject.ok || subject.value === null) return subject.ok ? ok(null) : subject;
  const before = versionBefore(body.from === undefined ? null : chooseProfile(body.from), subject.value.snapshot);
  if (before.ok) return ok(upgradeReport({ ...subject.value, to, from: before.value }));
  const { path, message } = before.error;
  return problem("needs_input", `${path}: ${message}`, { needs: [path] });
}

async function historyOf(
  { deps, signal }: Exchange,
  body: UpgradeRequestBody,
  { node }: LintSubject,
  { profile }: ChosenProfile,
): Promise<Result<UpgradePage, Problem>> {
  const nowMs = deps.now();
  const request = historyPageOf(body, nowMs);
  if (!request.ok) return request;
  const filter = { ...request.value.filter, ...(node === null ? {} : { node }) };
  const world = { nowMs, sha256: deps.sha256, signal };
  const page = await upgradePages(deps.store, profile)(world, { ...request.value, filter });
  if (page.ok) return page;
  if (page.error.code === "bad_page_token") return invalid("pageToken", page.error.message);
  return historyProblem(page.error);
}
