import type { InputIssue } from "../../base/input-issue.ts";
import { ok, type Result } from "../../base/result.ts";
import type { ReserveAdvice, ReservesAdvice } from "../../model/advice.ts";
import {
  type AdviceRequest,
  adviceNumbers,
  adviseNode,
  DEFAULT_LIMIT,
  DEFAULT_SPAN_MS,
  MAX_LIMIT,
} from "../../service/advise/advise-node.ts";
import { adviseReserves } from "../../service/advise/reserves.ts";
import { many, ordinal } from "../../text/sentences/words.ts";
import { quantityText } from "../../text/size.ts";
import { type Color, printable, type Screen } from "../../text/style.ts";
import { type Column, type Row, table } from "../../text/table.ts";
import { sections, sentenceList } from "../../text/tables/shown.ts";
import { durationText, timeText } from "../../text/time-text.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { asksCluster, type ClusterFlags, withoutEnv } from "../cluster-options.ts";
import { timesOf, tokenOf } from "../inputs/history-source.ts";
import { EXIT, type Fault, type Form, fault, type Outcome, printData, printText, warnAll } from "../terminal.ts";
import { measuredNow, readMeasured } from "./measured-files.ts";

export interface AdviseFlags extends ClusterFlags, HistorySourceFlags {
  readonly node?: string;
  readonly since?: string;
  readonly until?: string;
  readonly percentile?: string;
  readonly margin?: string;
  readonly limit?: string;
  readonly kubelet?: string;
  readonly output: Form | "patch";
}

/** `nodewise advise reserves`: from files, a live cluster, a data directory, or a running API. */
export async function adviseOnReserves(files: readonly string[], given: AdviseFlags, cli: Cli): Promise<Outcome> {
  const { node, api } = given;
  const request = requestOf(given, Date.now());
  if (!request.ok) return request;
  if (files.length > 0) {
    const other = (["node", "since", "until", "limit", "api"] as const).find((name) => given[name] !== undefined);
    if (other !== undefined) return fault(EXIT.badInput, `--${other} belongs to the history: give it without files`);
    const measured = await readMeasured(files, given.kubelet);
    if (!measured.ok) return measured;
    warnAll(cli.terminal, measured.value.notices);
    const { percentile, marginPercent } = request.value;
    return print(adviseReserves({ ...measured.value, percentile, marginPercent }), given, cli);
  }
  if (asksCluster(given, cli, { namesObject: false, hasFiles: asksHistory(withoutEnv(given, cli)) }))
    return adviceOfCluster(given, request.value, cli);
  if (node === undefined)
    return fault(
      EXIT.badInput,
      "give --node NAME of the history, or files with answers of the kubelet's /stats/summary",
    );
  if (api !== undefined) {
    const advice = await adviceOfApi(api, node, given, request.value, cli);
    return advice.ok ? print(advice.value, given, cli) : advice;
  }
  const { checkNode, storeFault, withHistory } = await import("../inputs/open-history.ts");
  return withHistory(storeSetting(given, cli), false, async (store) => {
    const known = await checkNode(store, node);
    if (!known.ok) return known;
    const advice = await adviseNode(store, node, request.value);
    if (!advice.ok) return storeFault(advice);
    if (typeof advice.value === "string") return fault(EXIT.cannotRun, `--node ${node}: ${advice.value}`);
    return print(advice.value, given, cli);
  });
}

const asksHistory = ({ dataDir, database, api, since, until }: AdviseFlags): boolean =>
  [dataDir, database, api, since, until].some((given) => given !== undefined);

/** Advises from the kubelet's current measurements; only a history has peaks. */
async function adviceOfCluster(given: AdviseFlags, request: AdviceRequest, cli: Cli): Promise<Outcome> {
  if (asksHistory(withoutEnv(given, cli)))
    return fault(EXIT.badInput, "a live cluster has no history: leave --data-dir, --api, --since and --until out");
  const { readClusterNode } = await import("../inputs/cluster-node.ts");
  const read = await readClusterNode(given, { node: given.node, claims: false }, cli);
  if (!read.ok) return read;
  const measured = measuredNow(read.value.name, read.value.snapshot, given.kubelet);
  if (!measured.ok) return measured;
  const { percentile, marginPercent } = request;
  return print(adviseReserves({ ...measured.value, percentile, marginPercent }), given, cli);
}

function requestOf(given: AdviseFlags, nowMs: number): Result<AdviceRequest, Fault> {
  const numbers = adviceNumbers(given, given.api === undefined ? MAX_LIMIT : DEFAULT_LIMIT);
  if (!numbers.ok) return fault(EXIT.badInput, ...numbers.error.map(issueLine));
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  const { untilMs = nowMs + 1, sinceMs = untilMs - DEFAULT_SPAN_MS } = times.value;
  if (sinceMs > untilMs)
    return fault(
      EXIT.badInput,
      `--since ${given.since}: is later than ${given.until === undefined ? "now" : `--until ${given.until}`}`,
    );
  return ok({ ...numbers.value, span: { sinceMs, untilMs } });
}
const issueLine = ({ path, message }: InputIssue): string => `--${path}: ${message}`;

async function adviceOfApi(
  url: string,
  node: string,
  given: AdviseFlags,
  { span, limit }: AdviceRequest,
  cli: Cli,
): Promise<Result<ReservesAdvice, Fault>> {
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // loads no database drivers, as a client needs none
  const api = await import("../inputs/history-api.ts");
  const get = api.apiOf(url, token.value);
  if (!get.ok) return get;
  const { percentile, margin } = given;
  const times = { since: api.timeText(span.sinceMs), until: api.timeText(span.untilMs) };
  const query = { ...times, percentile, margin, limit: String(limit) };
  return get.value<ReservesAdvice>(`v1/nodes/${encodeURIComponent(node)}/advice/reserves`, query);
}

function print(advice: ReservesAdvice, { output }: AdviseFlags, { terminal }: Cli): Outcome {
  const { patch, measurements, findings } = advice;
  if (output === "table") printText(terminal, adviceText(advice, terminal));
  else if (output === "patch") {
    printData(terminal, patch, "yaml");
    const refusals = findings.filter(({ severity }) => severity === "refuses-start");
    warnAll(
      terminal,
      refusals.map(({ message }) => `the kubelet would not start with it: ${message}`),
    );
  } else printData(terminal, advice, output);
  if (measurements.count === 0) return fault(EXIT.cannotRun, "nothing was measured: no snapshot has stats of its node");
  return ok(findings.some(({ severity }) => severity === "refuses-start") ? EXIT.refusesStart : EXIT.ok);
}

/** An advice as text: what was measured, what to reserve, what that frees or costs, and what is unknown. */
function adviceText(advice: ReservesAdvice, screen: Screen): string {
  const { node, policyVersion, percentile, marginPercent, measurements, reserves, allocatable, findings, notes } =
    advice;
  const { paint } = screen;
  const title = `${paint("bold", printable(node ?? "(no node given)"))} · reserves · ${policyVersion}\n`;
  const what = `${ordinal(percentile)} percentile and ${marginPercent} % of ${many(measurements.count, "measurement")}${spanText(measurements)}\n`;
  return sections(
    title + what,
    reserves.length === 0 ? "" : reservesTable(reserves, percentile, screen),
    allocatable.length === 0 ? "" : effectTable(allocatable, screen),
    sentenceList(
      paint,
      "FINDINGS OF `nodewise lint`",
      findings.map(({ severity, field, message, advice: advised }) => {
        const color: Color = severity === "warning" ? "yellow" : severity === "note" ? "cyan" : "red";
        return `${paint(color, severity)} ${printable(`${field}: ${message}; ${advised}`)}`;
      }),
    ),
    sentenceList(
      paint,
      "NOTES",
      notes.map(({ message, advice: advised }) => printable(advised === null ? message : `${message}; ${advised}`)),
    ),
  );
}

function spanText({ from, to }: ReservesAdvice["measurements"]): string {
  if (from === null || to === null) return "";
  const [first, last] = [Date.parse(from), Date.parse(to)];
  return first === last
    ? `, of ${timeText(last)}`
    : `, ${timeText(first)} to ${timeText(last)} (${durationText(last - first)})`;
}

function reservesTable(reserves: readonly ReserveAdvice[], percentile: number, { paint, columns }: Screen): string {
  const right = (title: string, giveUp?: number): Column => ({
    title,
    align: "right",
    ...(giveUp === undefined ? {} : { giveUp }),
  });
  const rows = reserves.map((one): Row => {
    const { field, resource, median, atPercentile, peak, now, recommended } = one;
    return {
      cells: [
        field,
        resource,
        String(one.measurements),
        quantityText(resource, median),
        quantityText(resource, atPercentile),
        quantityText(resource, peak),
        now === null ? "–" : now,
        recommended === null ? "–" : { text: recommended, color: recommended === now ? "green" : "yellow" },
      ],
    };
  });
  return table(
    [
      { title: "RESERVATION" },
      { title: "RESOURCE" },
      right("MEASURED", 1),
      right("MEDIAN", 2),
      right(`P${percentile}`),
      right("PEAK", 3),
      right("NOW"),
      right("RECOMMENDED"),
    ],
    rows,
    columns,
    paint,
  );
}

function effectTable(allocatable: ReservesAdvice["allocatable"], { paint, columns }: Screen): string {
  const rows = allocatable.map(({ resource, from, to, change }): Row => {
    const color: Color = change.startsWith("-") ? "red" : change === "0" ? "dim" : "green";
    const eye = quantityText(resource, change);
    return {
      cells: [
        resource,
        quantityText(resource, from),
        quantityText(resource, to),
        { text: change === "0" ? "the same" : change.startsWith("-") ? eye : `+${eye}`, color },
      ],
    };
  });
  return table(
    [
      { title: "ALLOCATABLE" },
      { title: "NOW", align: "right" },
      { title: "WITH ADVICE", align: "right" },
      { title: "PODS GAIN", align: "right" },
    ],
    rows,
    columns,
    paint,
  );
}
