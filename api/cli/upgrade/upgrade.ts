import { ok, type Result } from "../../base/result.ts";
import type { Kind } from "../../model/decision.ts";
import { type ChosenProfile, knownVersion, namedVersion } from "../../profiles/index.ts";
import { yieldToEventLoop } from "../../service/task-queue.ts";
import { configured, versionBefore } from "../../service/upgrade/asked.ts";
import { HistoryCounter } from "../../service/upgrade/history-sections.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import type { UpgradePage } from "../../service/upgrade/upgrade-page.ts";
import { placed, upgradeReport } from "../../service/upgrade/upgrade-report.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { asksCluster, type ClusterFlags, withoutEnv } from "../cluster-options.ts";
import { timesOf, tokenOf } from "../inputs/history-source.ts";
import { flagsAndDropInsOf, type LintFiles, type LintNode, placesOf, readLintFiles } from "../lint/lint-input.ts";
import { progressOn } from "../replay/progress.ts";
import { EXIT, type Fault, fault, type Outcome, stopFlag, warnAll } from "../terminal.ts";
import { printUpgrade, type UpgradeForm, type UpgradeReports } from "./upgrade-output.ts";
import { MAX_NODES, type UpgradeRequest, type UpgradeSource } from "./upgrade-source.ts";

export interface UpgradeFlags extends Omit<LintFiles, "node">, ClusterFlags, HistorySourceFlags {
  readonly to: string;
  readonly from?: string;
  /** Names of nodes of the history, or of the cluster. */
  readonly node?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly kind?: Kind;
  readonly pageToken?: string;
  readonly output: UpgradeForm;
  readonly json?: boolean;
}

export async function upgrade(given: UpgradeFlags, cli: Cli): Promise<Outcome> {
  const request = requestOf(given, Date.now());
  if (!request.ok) return request;
  const { node: nodeName, ...files } = given;
  const read = await readLintFiles(files);
  if (!read.ok) return read;
  const { to: _, output: __, node: ___, ...others } = withoutEnv(given, cli);
  const named = { namesObject: false, hasFiles: Object.keys(others).length > 0 };
  if (asksCluster(given, cli, named)) return upgradeCluster(read.value, request.value, given, cli);
  const { since, until, pageToken, dataDir, database, api } = given;
  if (nodeName !== undefined && read.value.snapshot !== undefined) {
    return fault(EXIT.badInput, "--node uses the node's latest snapshot: give it without files of a node");
  }
  const asksHistory = [since, until, pageToken].some((one) => one !== undefined);
  const { file, commandLine, snapshot, warnings } = read.value;
  const hasFile = file !== null || commandLine !== null || snapshot !== undefined;
  warnAll(cli.terminal, warnings);
  if (!asksHistory && nodeName === undefined) {
    if (hasFile) return filesAlone(read.value, request.value, given, cli);
    if ((dataDir ?? database ?? api) === undefined) {
      return fault(
        EXIT.badInput,
        "nothing to check: give --config FILE, --snapshot FILE or --node NAME, --since 7d, or --context NAME of a live cluster",
      );
    }
  }
  const isStopped = stopFlag();
  return withSource(given, request.value, cli, (source) =>
    askSource(source, { given, request: request.value, read: read.value, asksHistory, isStopped }, cli),
  );
}

function requestOf(given: UpgradeFlags, nowMs: number): Result<UpgradeRequest, Fault> {
  const to = knownVersion("to", given.to);
  if (!to.ok) return fault(EXIT.badInput, `--to: ${to.error.message}`);
  const from = given.from === undefined ? ok(null) : namedVersion("from", given.from);
  if (!from.ok) return fault(EXIT.badInput, `--from: ${from.error.message}`);
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  const { sinceMs, untilMs } = times.value;
  if (sinceMs !== undefined && sinceMs > (untilMs ?? nowMs)) {
    return fault(
      EXIT.badInput,
      `--since ${given.since}: is later than ${given.until === undefined ? "now" : "--until"}`,
    );
  }
  const { kind } = given;
  return ok({ to: to.value, from: from.value, filter: { ...times.value, ...(kind === undefined ? {} : { kind }) } });
}

/** The report from files, without a history. */
function reportOfFiles(read: LintNode, to: ChosenProfile, from: ChosenProfile | null): Result<UpgradeReport, Fault> {
  const { file, snapshot, configuration } = read;
  const before = versionBefore(from, snapshot);
  if (!before.ok) return fault(EXIT.badInput, `--from ${before.error.message}`);
  const own = configured(file?.configuration, configuration);
  const report = upgradeReport({ ...own, ...flagsAndDropInsOf(read), snapshot, to, from: before.value });
  return ok(placed(report, placesOf(read)));
}

function filesAlone(read: LintNode, { to, from }: UpgradeRequest, given: UpgradeFlags, cli: Cli): Outcome {
  const report = reportOfFiles(read, to, from);
  if (!report.ok) return report;
  const found: UpgradeReports = { to, reports: [report.value], unreported: [], history: null };
  return ok(printUpgrade(found, formOf(given), cli.terminal));
}

async function upgradeCluster(
  read: LintNode,
  request: UpgradeRequest,
  given: UpgradeFlags,
  cli: Cli,
): Promise<Outcome> {
  const typed = withoutEnv(given, cli);
  const ofHistory = HISTORY_FLAGS.find((flag) => typed[flag] !== undefined);
  if (ofHistory !== undefined || read.snapshot !== undefined) {
    return fault(EXIT.badInput, "files of a node, and options of a history, are given without a cluster");
  }
  const [{ withCluster }, { reportsOfCluster }] = await Promise.all([
    import("../inputs/cluster-node.ts"),
    import("./upgrade-cluster.ts"),
  ]);
  const { to, from } = request;
  const asked = { to, from, configuration: read.file?.configuration, ...flagsAndDropInsOf(read) };
  const found = await withCluster(given, cli, (cluster) => reportsOfCluster(cluster, given.node, asked, given, cli));
  if (!found.ok) return found;
  const exit = printUpgrade({ to: request.to, ...found.value, history: null }, formOf(given), cli.terminal);
  // a node without a report could not be read
  return ok(exit === EXIT.cannotRun && found.value.unreported.length > 0 ? EXIT.failed : exit);
}
const HISTORY_FLAGS = ["since", "until", "pageToken", "kind", "dataDir", "database", "api"] as const;

const formOf = ({ json, output }: UpgradeFlags): UpgradeForm => (json === true ? "json" : output);

async function withSource(
  given: UpgradeFlags,
  request: UpgradeRequest,
  cli: Cli,
  work: (source: UpgradeSource) => Promise<Outcome>,
): Promise<Outcome> {
  const { api } = given;
  if (api === undefined) {
    const [{ withHistory }, { sourceOfStore }] = await Promise.all([
      import("../inputs/open-history.ts"),
      import("./upgrade-store.ts"),
    ]);
    return withHistory(storeSetting(given, cli), false, (store) => work(sourceOfStore(store, request)));
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // loads no database drivers, as a client needs none
  const { sourceOfApi } = await import("./upgrade-api.ts");
  const source = sourceOfApi(api, token.value, request);
  return source.ok ? work(source.value) : source;
}

interface UpgradeCall {
  readonly given: UpgradeFlags;
  readonly request: UpgradeRequest;
  readonly read: LintNode;
  readonly asksHistory: boolean;
  readonly isStopped: () => boolean;
}

async function askSource(source: UpgradeSource, asked: UpgradeCall, cli: Cli): Promise<Outcome> {
  const { given, request, asksHistory, isStopped } = asked;
  const reports = await reportsOf(source, asked);
  if (!reports.ok) return reports;
  const { to } = request;
  if (!asksHistory) return ok(printUpgrade({ to, ...reports.value, history: null }, formOf(given), cli.terminal));
  const ended = await compareHistory(source, given, isStopped);
  const history = {
    ...ended.counter.sum(),
    until: ended.last?.until ?? null,
    reachedAt: ended.last?.reachedAt ?? null,
  };
  // nothing was compared yet
  if (ended.fault !== null && ended.last === null) return { ok: false, error: ended.fault };
  const nextPageToken = ended.token;
  const exit = printUpgrade(
    { to, ...reports.value, history: { ...history, nextPageToken }, isRest: given.pageToken !== undefined },
    formOf(given),
    cli.terminal,
  );
  return ended.fault === null ? ok(exit) : { ok: false, error: ended.fault };
}

/** The reports on the files, on the named nodes, or on all nodes. */
async function reportsOf(
  source: UpgradeSource,
  { given, request: { to, from }, read, isStopped }: UpgradeCall,
): Promise<Result<Pick<UpgradeReports, "reports" | "unreported">, Fault>> {
  const { node: nodeName } = given;
  if (nodeName === undefined && (read.file !== null || read.commandLine !== null || read.snapshot !== undefined)) {
    const report = reportOfFiles(read, to, from);
    return report.ok ? ok({ reports: [report.value], unreported: [] }) : report;
  }
  const names = nodeName === undefined ? await source.nodes() : ok(nodeName);
  if (!names.ok) return names;
  const placeOf = placesOf(read);
  const reports: UpgradeReport[] = [];
  const unreported: { readonly node: string; readonly why: string }[] = [];
  if (nodeName === undefined && names.value.length === MAX_NODES) {
    const why = `only the first ${MAX_NODES} nodes are checked: name others with --node`;
    unreported.push({ node: "further nodes", why });
  }
  for (const node of names.value) {
    // lets a signal be handled, which a local history's answers do not
    await yieldToEventLoop();
    if (isStopped()) return fault(EXIT.interrupted, "interrupted: nothing was compared yet");
    const report = await source.reportOf(node, read.file?.configuration, flagsAndDropInsOf(read));
    if (!report.ok) return report;
    if (typeof report.value === "string") unreported.push({ node, why: report.value });
    else reports.push({ ...placed(report.value, placeOf), node });
  }
  return ok({ reports, unreported });
}

interface Compared {
  readonly counter: HistoryCounter;
  readonly last: Pick<UpgradePage, "until" | "reachedAt"> | null;
  /** The token to continue with; null if it is done. */
  readonly token: string | null;
  readonly fault: Fault | null;
}

/** Page after page, node after node, in constant memory, until the end, a failure, or a signal. */
async function compareHistory(
  source: UpgradeSource,
  { node: nodeName, pageToken }: UpgradeFlags,
  isStopped: () => boolean,
): Promise<Compared> {
  const progress = progressOn(process.stderr, () => performance.now());
  const counter = new HistoryCounter();
  const nodes = nodeName ?? [undefined];
  let last: UpgradePage | null = null;
  for (const [i, node] of nodes.entries()) {
    let token = i === 0 ? pageToken : undefined;
    while (true) {
      const page = await source.page(node, token);
      progress.clear();
      if (!page.ok) {
        const lines = token === undefined ? [] : [resumeText(nodes.slice(i), token)];
        return {
          counter,
          last,
          token: token ?? null,
          fault: { ...page.error, lines: [...page.error.lines, ...lines] },
        };
      }
      counter.add(page.value);
      last = page.value;
      const next = page.value.nextPageToken;
      if (isStopped() && next !== null) {
        const lines = [`interrupted: ${resumeText(nodes.slice(i), next)}`];
        return { counter, last, token: next, fault: { exit: EXIT.interrupted, lines } };
      }
      if (next === null) break;
      token = next;
      progress.show({ ...page.value, progress: (i + page.value.progress) / nodes.length }, counter.counts);
    }
  }
  return { counter, last, token: null, fault: null };
}

/** `left`: the nodes that are not done. */
function resumeText(left: readonly (string | undefined)[], token: string): string {
  const names = left.filter((name) => name !== undefined);
  const nodes = names.length < 2 ? "" : `--node ${names.join(" ")} `;
  return `continue with the same command and ${nodes}--page-token ${token}`;
}
