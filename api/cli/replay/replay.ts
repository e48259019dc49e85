import { byText } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { isVerdict, type Kind } from "../../model/decision.ts";
import { verdictLabel } from "../../model/kinds.ts";
import { LEFT_OUT } from "../../service/replay/parsed.ts";
import type { ReplayAnswer, ReplayQuestion } from "../../service/replay/replay-answer.ts";
import type { Versions } from "../../service/replay/replay-one.ts";
import {
  type ChangedDecision,
  type Counts,
  changedOf,
  notReplayedOf,
  passedOf,
  podsText,
  ReplayTally,
  representedText,
  type Tally,
  type UnreadableDecision,
  type VerdictChange,
} from "../../service/replay/tally.ts";
import { differenceLine } from "../../text/difference.ts";
import { type Color, clip, type Paint, printable } from "../../text/style.ts";
import { type Column, table } from "../../text/table.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { type ChangeFlags, readChange } from "../inputs/change.ts";
import { timesOf, tokenOf } from "../inputs/history-source.ts";
import {
  EXIT,
  type Fault,
  fault,
  isGood,
  type Outcome,
  printText,
  stopFlag,
  type Terminal,
  warnAll,
} from "../terminal.ts";
import { progressOn } from "./progress.ts";
import type { ReplayPages } from "./replay-api.ts";

interface ReportFlags {
  /** The most changed decisions to list, and the most unreadable ones, unless `all` is set. */
  readonly limit: number;
  readonly all?: boolean;
  /** Prints a line of JSON for each, for where each page ended, and for the counts. */
  readonly json?: boolean;
  /** Where an earlier run stopped. */
  readonly pageToken?: string;
}

/** Prints changed decisions as they arrive and counts at the end, storing only the counts. */
class ReplayReport {
  readonly #given: ReportFlags;
  readonly #terminal: Terminal;
  readonly #counter = new ReplayTally();
  readonly #listed = { changed: 0, unreadable: 0 };
  #last: Pick<ReplayAnswer, "until" | "reachedAt"> = { until: "", reachedAt: null };

  constructor(given: ReportFlags, terminal: Terminal) {
    this.#given = given;
    this.#terminal = terminal;
  }

  get counts(): Counts {
    return this.#counter.counts;
  }

  add(page: ReplayAnswer): void {
    this.#counter.add(page);
    this.#last = page;
    this.#list("changed", page.changed, changedText);
    this.#list("unreadable", page.unreadable, unreadableText);
    if (this.#given.json === true && page.nextPageToken !== null) this.#printProgress(page);
  }

  /** Prints where the replay can continue if it is killed: everything before that line has been printed. */
  #printProgress({ progress, reachedAt, nextPageToken }: ReplayAnswer): void {
    const going = { counts: this.counts, progress, reachedAt, nextPageToken };
    this.#terminal.write(`${JSON.stringify({ going })}\n`);
  }

  #list<T>(what: "changed" | "unreadable", page: readonly T[], textOf: (one: T, terminal: Terminal) => string): void {
    const { json, all, limit } = this.#given;
    for (const one of page) {
      if (json === true) this.#terminal.write(`${JSON.stringify(one)}\n`);
      else if (all === true || this.#listed[what] < limit) printText(this.#terminal, textOf(one, this.#terminal));
      else continue;
      this.#listed[what]++;
    }
  }

  done(): Outcome {
    this.#total(null);
    const { differs, refused, gone, unreadable } = this.counts;
    if (unreadable > 0) return ok(EXIT.failed);
    if (differs + refused > 0) return ok(EXIT.negative);
    // an empty history gives no result; an interrupted run may have been at its end
    const isNothing = passedOf(this.counts) === 0 && this.#given.pageToken === undefined;
    return ok(gone > 0 || isNothing ? EXIT.cannotRun : EXIT.ok);
  }

  interrupted(token: string): Outcome {
    this.#total(token);
    return fault(EXIT.interrupted, `interrupted: ${this.#resumeText(token)}`);
  }

  /** `token`: of the page that could not be read. */
  broken(error: Fault, token: string | undefined): Outcome {
    // a replay that never started cannot continue
    if (token === undefined || token === this.#given.pageToken) return err(error);
    this.#total(token);
    return err({ exit: error.exit, lines: [...error.lines, this.#resumeText(token)] });
  }

  #resumeText(token: string): string {
    return `${passedOf(this.counts)} decisions are counted, up to ${this.#last.reachedAt}; continue with the same command and --page-token ${token}`;
  }

  #total(nextPageToken: string | null): void {
    const tally = this.#counter.tally();
    const { json, pageToken } = this.#given;
    if (json === true) {
      const { until, reachedAt } = this.#last;
      this.#terminal.write(`${JSON.stringify({ summary: { ...tally, until, reachedAt, nextPageToken } })}\n`);
      return;
    }
    const { differs, refused, unreadable } = tally.counts;
    const { changed, unreadable: named } = this.#listed;
    const others = differs + refused + unreadable - changed - named;
    if (others > 0) printText(this.#terminal, `and ${others.toLocaleString("en")} more: --all lists them\n`);
    if (differs + refused + unreadable > 0) this.#terminal.write("\n");
    if (passedOf(tally.counts) === 0) this.#terminal.warn("no such decisions");
    else printText(this.#terminal, tallyText(tally, this.#terminal));
    if (notReplayedOf(tally.counts) > 0) printText(this.#terminal, `\n${lostText(tally.counts)}\n`);
    if (pageToken !== undefined) this.#terminal.warn("counted from where --page-token continues");
  }
}

export interface ReplayFlags extends ChangeFlags, HistorySourceFlags {
  readonly node?: string;
  readonly kind?: Kind;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly pageToken?: string;
}

export async function replay(given: ReplayFlags, cli: Cli): Promise<Outcome> {
  const wanted = await wantedOf(given, Date.now(), cli);
  if (!wanted.ok) return wanted;
  const { api } = given;
  if (api === undefined) {
    const [{ withHistory }, { pagesOfStore }] = await Promise.all([
      import("../inputs/open-history.ts"),
      import("./replay-store.ts"),
    ]);
    return withHistory(storeSetting(given, cli), false, async (store) => {
      const pages = await pagesOfStore(store, wanted.value);
      return pages.ok ? run(pages.value, given, cli) : pages;
    });
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // loads no database drivers, as a client needs none
  const { pagesOfApi } = await import("./replay-api.ts");
  const pages = pagesOfApi(api, token.value, wanted.value);
  return pages.ok ? run(pages.value, given, cli) : pages;
}

async function wantedOf(given: ReplayFlags, nowMs: number, { terminal }: Cli): Promise<Result<ReplayQuestion, Fault>> {
  const { node, kind, since, until } = given;
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  const { sinceMs, untilMs } = times.value;
  if (sinceMs !== undefined && sinceMs > (untilMs ?? nowMs)) {
    return fault(EXIT.badInput, `--since ${since}: is later than ${until === undefined ? "now" : `--until ${until}`}`);
  }
  const change = await readChange(given);
  if (!change.ok) return change;
  const { kubelet, config } = given;
  warnAll(terminal, [...change.value.notices, ...(kubelet === undefined || config !== undefined ? [] : [LEFT_OUT])]);
  const filter = { ...times.value, ...(node === undefined ? {} : { node }), ...(kind === undefined ? {} : { kind }) };
  return ok({ filter, change: change.value.change });
}

/** Page after page, in constant memory, until the end, a failure, or a signal. */
async function run(pages: ReplayPages, given: ReplayFlags, cli: Cli): Promise<Outcome> {
  const isStopped = stopFlag();
  const progress = progressOn(process.stderr, () => performance.now());
  const report = new ReplayReport(given, cli.terminal);
  let token = given.pageToken;
  while (true) {
    const page = await pages(token);
    progress.clear();
    if (!page.ok) return report.broken(page.error, token);
    report.add(page.value);
    const { nextPageToken } = page.value;
    if (nextPageToken === null) return report.done();
    token = nextPageToken;
    if (isStopped()) return report.interrupted(token);
    progress.show(page.value, report.counts);
  }
}

/** The nodes with the most changes are listed; the others are counted. */
const NODES = 20;

/** A changed decision: one line, and one for the first place where it differs. */
function changedText(
  { decidedAt, node, kind, pod, recordedVerdict, recordedReason, verdict, reason, id, ...more }: ChangedDecision,
  { columns, paint }: Terminal,
): string {
  const who = podsText(more);
  const parts = [decidedAt, node, kind, ...(who === "" ? [] : [who]), `kubelet ${versionsText(more)}`];
  const head = parts.map(printable).join("  ");
  const recorded = { kind, pod, verdict: recordedVerdict, reason: recordedReason };
  const line = `${head}  ${verdictsText(recorded, { kind, pod, verdict, reason }, paint)}  ${printable(id)}`;
  return `${line}\n  ${clip(detailText(more), Math.max(20, columns - 2))}\n`;
}

const versionsText = ({ recordedUnder, replayedUnder }: Versions): string =>
  recordedUnder === replayedUnder ? recordedUnder : `${recordedUnder} -> ${replayedUnder}`;

/** An unreadable decision: one line, and one for what is wrong with it. */
function unreadableText(
  { decidedAt, node, kind, id, unreadable }: UnreadableDecision,
  { columns, paint }: Terminal,
): string {
  const head = [decidedAt, node, kind].map(printable).join("  ");
  const why = clip(printable(unreadable), Math.max(20, columns - 2));
  return `${head}  ${paint("red", "(unreadable)")}  ${printable(id)}\n  ${why}\n`;
}

/** The decisions without a result: `2,500 of 2,504 decisions could not be decided again: 2,500 have no snapshot any more`. */
function lostText(counts: Counts): string {
  const { gone, unreadable } = counts;
  const parts = [
    ...(gone > 0 ? [`${text(gone)} ${gone === 1 ? "has" : "have"} no snapshot any more`] : []),
    ...(unreadable > 0 ? [`${text(unreadable)} cannot be read`] : []),
  ];
  return `${text(gone + unreadable)} of ${text(passedOf(counts))} decisions could not be decided again: ${parts.join(", ")}`;
}

function detailText({
  differences,
  differenceCount,
  problem,
}: Pick<ChangedDecision, "differences" | "differenceCount" | "problem">): string {
  if (problem !== null) return printable(`${problem.code}: ${problem.detail}`);
  const [first] = differences;
  if (first === undefined) return "";
  const others = differenceCount > 1 ? `, and ${differenceCount - 1} more` : "";
  return `${differenceLine(first)}${others}`;
}

/** How a decision ended; `verdict` is null if it is refused. */
interface End {
  readonly kind: string;
  readonly verdict: string | null;
  readonly pod?: ChangedDecision["pod"];
  readonly reason?: string | null | undefined;
}
/** In the words of lists: `admitted`, `refused OutOfcpu`. */
function endText({ kind, verdict, reason, ...about }: End, paint: Paint): string {
  if (verdict === null) return paint("red", "(refused)");
  const word = [verdictLabel({ kind, verdict, ...about }), ...(reason ? [reason] : [])].join(" ");
  return paint(colorOf(verdict), printable(word));
}
const colorOf = (verdict: string): Color => (isVerdict(verdict) && isGood(verdict) ? "green" : "yellow");
const verdictsText = (recorded: End, replayed: End, paint: Paint): string =>
  recorded.verdict === replayed.verdict
    ? endText(recorded, paint)
    : `${endText(recorded, paint)} -> ${endText(replayed, paint)}`;

const COUNTS = ["REPLAYED", "SAME", "DIFFERS", "REFUSED", "GONE"];
/** The columns of counts, with one for unreadable decisions if there are any. */
const countColumns = ({ counts }: Tally): readonly Column[] =>
  [...COUNTS, ...(counts.unreadable > 0 ? ["UNREADABLE"] : [])].map((title) => ({ title, align: "right" }));
const text = (n: number): string => n.toLocaleString("en");
const cellsOf = ({ replayed, same, differs, refused, gone, unreadable }: Counts, { counts }: Tally) => [
  text(replayed),
  text(same),
  { text: text(differs), ...(differs > 0 && { color: "yellow" as const }) },
  { text: text(refused), ...(refused > 0 && { color: "red" as const }) },
  text(gone),
  ...(counts.unreadable > 0 ? [{ text: text(unreadable), ...(unreadable > 0 && { color: "red" as const }) }] : []),
];

/** Shows the counts: by kind, by node, by kubelet version, and verdict by verdict. */
function tallyText(tally: Tally, terminal: Terminal): string {
  const { columns: width, paint } = terminal;
  const kinds = Object.entries(tally.byKind).map(([kind, counts]) => ({
    cells: [printable(kind), ...cellsOf(counts, tally)],
  }));
  const total = { cells: ["all", ...cellsOf(tally.counts, tally)] };
  const byKind = table(
    [{ title: "KIND" }, ...countColumns(tally)],
    [...kinds, ...(kinds.length > 1 ? [total] : [])],
    width,
    paint,
  );
  const parts = [
    byKind,
    representedText(tally.counts).replace(/.$/, "$&\n"),
    nodesText(tally, terminal),
    versionsTable(tally, terminal),
    verdictChanges(tally.verdicts, terminal),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function nodesText(tally: Tally, { columns: width, paint }: Terminal): string {
  const nodes = Object.entries(tally.byNode).sort(([a, x], [b, y]) => changedOf(y) - changedOf(x) || byText(a, b));
  const rows = nodes.slice(0, NODES).map(([node, counts]) => ({ cells: [printable(node), ...cellsOf(counts, tally)] }));
  const others = nodes.length - rows.length;
  const more = others === 0 ? "" : `and ${text(others)} more nodes, with no more changes\n`;
  return table([{ title: "NODE", shrinkTo: 10 }, ...countColumns(tally)], rows, width, paint) + more;
}

function versionsTable(tally: Tally, { columns: width, paint }: Terminal): string {
  const rows = tally.byVersion.map((one) => ({ cells: [versionsText(one), ...cellsOf(one, tally)] }));
  return rows.length === 0 ? "" : table([{ title: "KUBELET" }, ...countColumns(tally)], rows, width, paint);
}

function verdictChanges(changes: readonly VerdictChange[], { columns: width, paint }: Terminal): string {
  if (changes.length === 0) return "";
  const rows = changes.map(({ kind, recorded, replayed, count }) => ({
    cells: [kind, verdictsText({ kind, verdict: recorded }, { kind, verdict: replayed }, paint), text(count)],
  }));
  const columns: readonly Column[] = [{ title: "KIND" }, { title: "VERDICT" }, { title: "DECISIONS", align: "right" }];
  return table(columns, rows, width, paint);
}
