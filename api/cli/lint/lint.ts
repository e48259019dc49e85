import type { Store } from "../../../db/store.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { ok, type Result } from "../../base/result.ts";
import { LINT_SEVERITIES, type LintFinding, type LintSeverity } from "../../decide/lint/finding.ts";
import { readFlags } from "../../decide/lint/flags.ts";
import { type KubeletStart, lintStart } from "../../decide/lint/start.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { chooseProfileFor, otherProfileReason, type ProfileNote } from "../../profiles/index.ts";
import { type Touched, type TouchedFinding, touchedFindings } from "../../service/lint-touched.ts";
import { postedSnapshot } from "../../service/replay/parsed.ts";
import { type CodedAnnotation, githubText, type JUnitCase, junitText, sarifText } from "../../text/ci.ts";
import { many } from "../../text/sentences/words.ts";
import { assumedLine, type Color, printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import type { ClusterFlags } from "../cluster-options.ts";
import { posterOf } from "../inputs/history-api.ts";
import { tokenOf } from "../inputs/history-source.ts";
import { READ_ONCE, readsOnce } from "../inputs/snapshot.ts";
import {
  EXIT,
  type ExitCode,
  type Fault,
  type Form,
  fault,
  type Outcome,
  printData,
  printText,
  type Terminal,
  warnAll,
} from "../terminal.ts";
import {
  flagsAndDropInsBody,
  flagsAndDropInsOf,
  type LintFiles,
  type LintNode,
  otherKubelet,
  placesOf,
  readLintNodes,
} from "./lint-input.ts";

const COLORS: Readonly<Record<LintSeverity, Color>> = {
  "refuses-start": "red",
  error: "red",
  warning: "yellow",
  note: "cyan",
};
const COLUMNS = [
  { title: "SEVERITY" },
  { title: "FIELD" },
  { title: "WHERE", giveUp: 2, cut: "start" },
  { title: "TOUCHED", align: "right" },
  { title: "CODE", giveUp: 1 },
] as const;

/** A row per finding, with its message, advice and patch below; then the number of findings. */
export function findingsText(
  findings: readonly TouchedFinding[],
  placeOf: (field: string) => string | null,
  { columns, paint }: Terminal,
): string {
  if (findings.length === 0) return `${paint("green", "nothing found")}\n`;
  const isCounted = findings.some(({ touched }) => touched !== null);
  const rows = findings.map(({ severity, field, message, kubelet, advice, fix, touched, code }) => ({
    cells: [
      { text: severity, color: COLORS[severity] },
      printable(field),
      printable(placeOf(field) ?? ""),
      isCounted ? touchedText(touched) : "",
      code,
    ],
    notes: [
      `  ${kubelet ? paint("dim", "kubelet: ") : ""}${printable(message)}`,
      `  ${paint("dim", "-> ")}${printable(advice)}`,
      ...(fix === null ? [] : [`  ${paint("dim", "patch: ")}${printable(JSON.stringify(fix))}`]),
    ],
  }));
  return `${table(COLUMNS, rows, columns, paint)}\n${countsText(findings)}\n`;
}

const touchedText = (touched: Touched | null): string =>
  touched === null ? "not counted" : `${touched.decisions} of ${touched.of}`;

function countsText(findings: readonly TouchedFinding[]): string {
  const counts = LINT_SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? "" : severity === "refuses-start" ? `${count} ${severity}` : many(count, severity);
  });
  const tried = findings.find(({ touched }) => touched !== null)?.touched;
  const looked =
    tried === undefined || tried === null
      ? ""
      : `; touched: recorded decisions whose own configuration has the finding too, and that the patch would have changed (without a patch: that the field affected), of the newest ${tried.of}`;
  return counts.filter((count) => count !== "").join(", ") + looked;
}

/** How findings are printed: for people, as data, or for continuous integration tools. */
type LintForm = Form | "sarif" | "junit" | "github";

export interface LintFlags extends LintFiles, ClusterFlags, HistorySourceFlags {
  /** Configurations, each linted separately, as with `config`. */
  readonly paths?: readonly string[];
  readonly kubelet?: string;
  readonly nodeName?: string;
  /** `dataDir` is from the environment: if it has no history, none is read. */
  readonly usesEnvironment?: boolean;
  readonly output: LintForm;
  readonly json?: boolean;
  readonly failOn?: (typeof FAIL_ON)[number];
}

/** Lints each of the files, or what the options name. A file that cannot be read is a finding. */
export async function lint(given: LintFlags, cli: Cli): Promise<Outcome> {
  const { paths = [], ...rest } = given;
  if (paths.length > 0 && given.config !== undefined) return fault(EXIT.badInput, ONE_WAY);
  if (!readsOnce([...paths, ...(paths.length > 1 ? Object.values(rest) : [])])) return fault(EXIT.badInput, READ_ONCE);
  const linted: LintedFile[] = [];
  const faults: string[] = [];
  for (const one of paths.length === 0 ? [rest] : paths.map((config) => ({ ...rest, config }))) {
    const ended = await lintAt(one, cli, (found, node) => {
      if (found.ok) linted.push(lintedFile(found.value, node, one));
      return found.ok ? ok(EXIT.ok) : found;
    });
    if (ended.ok) continue;
    // the other files are linted anyway
    if (paths.length === 0 || ended.error.exit !== EXIT.badInput) return ended;
    const name = one.config === "-" ? "standard input" : (one.config ?? "");
    linted.push(...unreadable(name, ended.error, given.kubelet));
    faults.push(...ended.error.lines);
  }
  const printed = print(linted, given, cli);
  return faults.length === 0 || !printed.ok ? printed : fault(EXIT.badInput, ...faults);
}

/** The lines of a fault as findings of their file. */
const unreadable = (file: string, { lines }: Fault, kubelet: string | undefined): readonly LintedFile[] =>
  lines.map((line) => {
    const [, place, text = line] = /^(.*?:\d+):\d+: (.*)$/s.exec(line) ?? [];
    const finding = { code: "unreadable", severity: "error", field: "", message: text, kubelet: false } as const;
    return {
      profile: chooseProfileFor(undefined, kubelet).note,
      findings: [{ ...finding, advice: "the file is not checked until it can be read", fix: null, touched: null }],
      name: file,
      placeOf: () => place ?? file,
    };
  });
const ONE_WAY = "--config FILE is the same as FILE: give the files without it";

/** Receives the findings; returns the command's outcome, which may be a fault. */
type ReportFindings = (linted: Findings, node: LintNode) => Outcome;

/** Lints each configuration of one file. */
async function lintAt(given: LintFlags, cli: Cli, take: ReportFindings): Promise<Outcome> {
  const read = await readLintNodes(given);
  if (!read.ok) return read;
  for (const node of read.value) {
    const ended = await lintOne(node, given, cli, take);
    if (!ended.ok) return ended;
  }
  return ok(EXIT.ok);
}

async function lintOne(node: LintNode, given: LintFlags, cli: Cli, take: ReportFindings): Promise<Outcome> {
  const { nodeName, api, dataDir, database } = given;
  const { file, commandLine, snapshot, warnings } = node;
  if (nodeName !== undefined && snapshot !== undefined) {
    return fault(EXIT.badInput, "--node-name uses the node's latest snapshot: give it without files of a node");
  }
  if (nodeName !== undefined && api === undefined && (dataDir ?? database) === undefined) {
    return fault(EXIT.badInput, "--node-name belongs to a history: name it with --data-dir, --database or --api");
  }
  if (file === null && commandLine === null && snapshot === undefined && nodeName === undefined) {
    return fault(
      EXIT.badInput,
      "nothing to check: give files, `nodewise lint kubelet.yaml`, `-` for standard input, or --kubelet-args FILE",
    );
  }
  warnAll(cli.terminal, warnings);
  if (api !== undefined) return take(await askApi(api, given, node, cli), node);
  const alone = (): Outcome => take(ok(untouched(findingsIn(localInput(node), given.kubelet))), node);
  if (dataDir === undefined && database === undefined) return alone();
  const { hasHistory, withHistory } = await import("../inputs/open-history.ts");
  if (nodeName === undefined && given.usesEnvironment === true) {
    if (dataDir === undefined || !hasHistory({ dataDir })) return alone();
  }
  return withHistory(storeSetting(given, cli), false, async (store) => take(await askStore(store, given, node), node));
}

interface Linted<F extends LintFinding> {
  /** The profile of the findings. */
  readonly profile: ProfileNote;
  readonly findings: readonly F[];
}
type Findings = Result<Linted<TouchedFinding>, Fault>;
export const untouched = ({ profile, findings }: Linted<LintFinding>): Linted<TouchedFinding> => ({
  profile,
  findings: findings.map((finding) => ({ ...finding, touched: null })),
});
interface LintAsked extends Pick<KubeletStart, "configuration" | "dropIns"> {
  /** Null if unknown. */
  readonly args: readonly string[] | null;
  readonly snapshot: Snapshot | undefined;
}
export const localInput = ({ snapshot, configuration, ...node }: LintNode): LintAsked => ({
  configuration: node.file === null ? configuration : node.file.configuration,
  ...flagsAndDropInsOf(node),
  snapshot,
});
export function findingsIn({ args, snapshot, ...start }: LintAsked, kubelet: string | undefined): Linted<LintFinding> {
  const { profile, note } = chooseProfileFor(snapshot, kubelet);
  const flags = args === null ? null : readFlags(args, profile);
  return { profile: note, findings: lintStart({ ...start, flags }, snapshot, profile) };
}

async function askApi(url: string, given: LintFlags, node: LintNode, cli: Cli): Promise<Findings> {
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const post = posterOf(url, token.value);
  if (!post.ok) return post;
  const { configuration: kubeletConfiguration, snapshot, ...beside } = localInput(node);
  const asked = { kubeletConfiguration, snapshot, node: given.nodeName, kubeletVersion: given.kubelet };
  const body = { ...asked, ...flagsAndDropInsBody(beside) };
  return post.value<Linted<TouchedFinding>>("v1/lint", body);
}

/** The time limit for a local history; no other request waits for it, so it may take long. */
const BUDGET_MS = 30_000;

async function askStore(store: Store, { nodeName, kubelet }: LintFlags, node: LintNode): Promise<Findings> {
  const about = nodeName === undefined ? ok(localInput(node)) : await latestOf(store, nodeName, node);
  if (!about.ok) return about;
  const { snapshot } = about.value;
  const known = await store.getNode(nodeName ?? snapshot?.node?.metadata.name ?? "");
  if (!known.ok) return fault(EXIT.failed, known.error.message);
  const filter = known.value === null ? {} : { node: known.value.name };
  const { profile, findings } = findingsIn(about.value, kubelet);
  const touched = await touchedFindings(store, findings, filter, BUDGET_MS);
  return touched.ok ? ok({ profile, findings: touched.value }) : fault(EXIT.failed, touched.error.message);
}

async function latestOf(store: Store, name: string, node: LintNode): Promise<Result<LintAsked, Fault>> {
  const { checkNode } = await import("../inputs/open-history.ts");
  const known = await checkNode(store, name, "--node-name");
  if (!known.ok) return known;
  const latest = await store.latestSnapshot(name);
  if (!latest.ok) return fault(EXIT.failed, latest.error.message);
  const posted = latest.value === null ? ok(null) : postedSnapshot(latest.value);
  if (!posted.ok) return fault(EXIT.failed, posted.error.message);
  const body = posted.value;
  const { kubeletConfiguration, ...rest } = body ?? {};
  const snapshot = body === null ? undefined : decodeSnapshot(rest);
  if (snapshot?.ok === false) return fault(EXIT.failed, `the latest snapshot of ${name} cannot be read`);
  const asked = localInput({ ...node, configuration: kubeletConfiguration, snapshot: snapshot?.value });
  if (asked.configuration === undefined && asked.args === null) {
    return fault(EXIT.badInput, `the latest snapshot of ${name} holds no configuration: give --config FILE`);
  }
  return otherKubelet(asked.snapshot, node.file, asked.configuration) ?? ok(asked);
}

/** The findings of one configuration, and where they are. */
interface LintedFile extends Linted<TouchedFinding> {
  /** The name for findings without a position: a file or a node. */
  readonly name: string;
  readonly placeOf: (field: string) => string | null;
}
export const lintedFile = (linted: Linted<TouchedFinding>, node: LintNode, given: LintFlags): LintedFile => ({
  ...linted,
  name:
    node.file?.name ??
    given.config ??
    given.kubeletArgs ??
    given.snapshot ??
    given.nodeName ??
    given.node ??
    "configuration",
  placeOf: placesOf(node),
});

export function print(linted: readonly LintedFile[], given: LintFlags, { terminal }: Cli): Outcome {
  const output = given.json === true ? "json" : given.output;
  const findings = linted.flatMap((one) => one.findings);
  if (output === "table") printText(terminal, linted.map((one) => textOf(one, linted.length > 1, terminal)).join("\n"));
  else if (output === "sarif") terminal.write(sarifText(packageJson.version, linted.flatMap(annotationsOf)));
  else if (output === "github") terminal.write(githubText(linted.flatMap(annotationsOf)));
  else if (output === "junit") terminal.write(junitText("nodewise lint", linted.flatMap(casesOf)));
  else {
    const placed = linted.flatMap(({ findings: all, placeOf, name }) =>
      all.map((finding) => {
        const where = placeOf(finding.field) ?? (linted.length > 1 ? name : null);
        return where === null ? finding : { ...finding, where };
      }),
    );
    printData(terminal, { profile: linted[0]?.profile, findings: placed }, output);
  }
  return ok(exitOf(findings, given.failOn));
}

function textOf({ profile, findings, placeOf, name }: LintedFile, isNamed: boolean, terminal: Terminal): string {
  const heading = isNamed ? `${terminal.paint("bold", printable(name))}\n` : "";
  const assumed = assumedLine(otherProfileReason(profile), terminal.paint);
  return `${heading}${assumed}${findingsText(findings, placeOf, terminal)}`;
}

const LEVEL: Readonly<Record<LintSeverity, CodedAnnotation["level"]>> = {
  "refuses-start": "error",
  error: "error",
  warning: "warning",
  note: "notice",
};
const annotationsOf = ({ findings, placeOf, name }: LintedFile): readonly CodedAnnotation[] =>
  findings.map(({ severity, code, field, message, advice }) => {
    const [, file = name, line = "1"] = /^(.*):(\d+)$/.exec(placeOf(field) ?? name) ?? [];
    const [title, text] = [`${code} (${severity})`, `${field === "" ? "" : `${field}: `}${message}; ${advice}`];
    return { level: LEVEL[severity], file, line: Number(line), title, message: text, code, subject: field };
  });

/** One test per finding, passed by a note; one passed test for a configuration without any. */
function casesOf(linted: LintedFile): readonly JUnitCase[] {
  const { name: suite } = linted;
  const cases = annotationsOf(linted).map(({ level, file, line, title, message, subject }) => ({
    suite,
    name: subject === "" ? title : `${subject}: ${title}`,
    seconds: 0,
    failure: level === "notice" ? null : { message, text: `${file}:${line}: ${message}` },
  }));
  return cases.length > 0 ? cases : [{ suite, name: "nothing found", seconds: 0, failure: null }];
}

/** The lowest severity that affects the exit code. */
const FAIL_ON = ["error", "warning"] as const;

export function exitOf(findings: readonly LintFinding[], failOn: (typeof FAIL_ON)[number] = "warning"): ExitCode {
  const severities = new Set(findings.map(({ severity }) => severity));
  if (severities.has("refuses-start")) return EXIT.refusesStart;
  return severities.has("error") || (failOn === "warning" && severities.has("warning")) ? EXIT.negative : EXIT.ok;
}
