import type { BesideFile } from "../decide/lint/start.ts";
import { isObject } from "../model/own.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { type ChosenProfile, knownVersion, namedVersion } from "../profiles/index.ts";
import { unknownField } from "../service/decision-request.ts";
import { historyProblem, inputProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { configured, type Subject, subjectOf, versionBefore } from "../service/upgrade/asked.ts";
import type { UpgradeReport } from "../service/upgrade/report.ts";
import { type UpgradePage, upgradePages } from "../service/upgrade/upgrade-page.ts";
import { upgradeReport } from "../service/upgrade/upgrade-report.ts";
import { postedValue } from "./body.ts";
import { aboutNode, besideIn, type LintSubject } from "./lint.ts";
import { historyPageIn, isGiven, type Members } from "./replay.ts";
import { type Exchange, json } from "./route.ts";

const FIELDS: ReadonlySet<string> = new Set([
  ...["to", "from", "kubeletConfiguration", "kubeletArgs", "kubeletDropIns", "snapshot", "snapshotId", "node"],
  ...["since", "until", "kind", "limit", "pageToken"],
]);
/** Members about a node that are posted, and not taken from the history. */
const GIVEN_OF_NODE = ["kubeletConfiguration", "kubeletArgs", "kubeletDropIns", "snapshot"];
/** With one of them the history is asked as well. */
const OF_HISTORY = ["since", "until", "pageToken"];

/** The answer of POST /v1/upgrade. */
export interface UpgradeAnswer {
  /** Null: neither a configuration nor a snapshot is known, the page is not the first, or `unreported` tells why. */
  readonly report: UpgradeReport | null;
  /** Why nothing can be said of a stored node beside its history; null: something is, or nobody asked. */
  readonly unreported: string | null;
  /** Null: no time was named. */
  readonly history: UpgradePage | null;
}

/** POST /v1/upgrade: what another kubelet does to a node, and a page of the history as it decides it; records nothing. */
export async function postUpgrade(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const body = input.value;
  if (!isObject(body)) return invalid("$", 'expected an object such as {"to": "1.37", "node": "n1"}');
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const versions = versionsIn(body);
  if (!versions.ok) return versions;
  const asksHistory = OF_HISTORY.some((name) => isGiven(body[name]));
  const beside = besideIn(body);
  if (!beside.ok) return beside;
  const about = await aboutNode(exchange, body);
  if (!about.ok) return about;
  const report = isGiven(body["pageToken"]) ? ok(null) : reportIn(body, beside.value, about.value, versions.value);
  const isStored = about.value.node !== null && !GIVEN_OF_NODE.some((name) => isGiven(body[name]));
  if (!report.ok && !(asksHistory && isStored)) return report;
  if (report.ok && report.value === null && !asksHistory && about.value.node === null) {
    const what = "is needed, or a snapshot, or `since`, from when on the history is asked";
    return invalid("kubeletConfiguration", what);
  }
  const history = asksHistory ? await historyOf(exchange, body, about.value, versions.value.to) : ok(null);
  if (!history.ok) return history;
  const told = report.ok
    ? { report: report.value, unreported: null }
    : { report: null, unreported: report.error.detail };
  const answer: UpgradeAnswer = { ...told, history: history.value };
  return json(answer);
}

interface Versions {
  readonly to: ChosenProfile;
  /** Null: that of the node's snapshot. */
  readonly from: ChosenProfile | null;
}

function versionsIn({ to, from }: Members): Result<Versions, Problem> {
  const after = knownVersion("to", to);
  if (!after.ok) return err(inputProblem([after.error]));
  const before = isGiven(from) ? namedVersion("from", from) : ok(null);
  return before.ok ? ok({ to: after.value, from: before.value }) : err(inputProblem([before.error]));
}

type Asked = Subject & BesideFile;

/** Null: the body names neither a configuration, nor a command line, nor a snapshot that is stored. */
function subjectIn(body: Members, beside: BesideFile, { posted }: LintSubject): Result<Asked | null, Problem> {
  const configuration = body["kubeletConfiguration"] ?? undefined;
  if (configuration !== undefined && !isObject(configuration)) {
    return invalid("kubeletConfiguration", 'expected an object such as {"maxPods": 110}');
  }
  if (posted === null) {
    const isNone = configuration === undefined && beside.args === null;
    return ok(isNone ? null : { ...configured(configuration, undefined), ...beside, snapshot: undefined });
  }
  const subject = subjectOf(posted, configuration, isGiven(body["snapshot"]) ? "snapshot" : "");
  return subject.ok ? ok({ ...subject.value, ...beside }) : err(inputProblem(subject.error));
}

/** Null: there is nothing to report of. */
function reportIn(
  body: Members,
  beside: BesideFile,
  about: LintSubject,
  versions: Versions,
): Result<UpgradeReport | null, Problem> {
  const subject = subjectIn(body, beside, about);
  if (!subject.ok || subject.value === null) return subject.ok ? ok(null) : subject;
  return reportOf(subject.value, versions);
}

function reportOf(subject: Asked, { to, from }: Versions): Result<UpgradeReport, Problem> {
  const before = versionBefore(from, subject.snapshot);
  if (before.ok) return ok(upgradeReport({ ...subject, to, from: before.value }));
  const { path, message } = before.error;
  return problem("needs_input", `${path}: ${message}`, { needs: [path] });
}

async function historyOf(
  { ports, signal }: Exchange,
  body: Members,
  { node }: LintSubject,
  { profile }: ChosenProfile,
): Promise<Result<UpgradePage, Problem>> {
  const nowMs = ports.now();
  const request = historyPageIn(body, nowMs);
  if (!request.ok) return request;
  const filter = { ...request.value.filter, ...(node === null ? {} : { node }) };
  const world = { nowMs, sha256: ports.sha256, signal };
  const page = await upgradePages(ports.store, profile)(world, { ...request.value, filter });
  if (page.ok) return page;
  if (page.error.code === "bad_page_token") return invalid("pageToken", page.error.message);
  return historyProblem(page.error);
}
