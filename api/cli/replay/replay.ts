import type { Kind } from "../../model/decision.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { LEFT_OUT } from "../../service/replay/parsed.ts";
import type { ReplayAnswer } from "../../service/replay/replay-answer.ts";
import { Counter, type Counts, lostOf, passedOf } from "../../service/replay/tally.ts";
import { storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { timesOf, tokenOf } from "../history/source.ts";
import { type ChangeFlags, readChange } from "../inputs/change.ts";
import { EXIT, type Fault, fault, type Outcome, printText, stopFlag, type Terminal, warnAll } from "../terminal.ts";
import { progressOn } from "./progress.ts";
import type { ReplayPages, ReplayRequest } from "./replay-api.ts";
import { changedText, lostText, tallyText, unreadableText } from "./replay-text.ts";

interface ReportFlags {
  /** Changed decisions that are listed, and as many that cannot be read, unless `all` of them are. */
  readonly limit: number;
  readonly all?: boolean;
  /** A line of JSON for each of them, for where each page ended, and for what was counted. */
  readonly json?: boolean;
  /** Where an earlier run was left. */
  readonly pageToken?: string;
}

/** Prints the changed decisions as they come and what was counted at the end, and keeps the counts alone. */
class ReplayReport {
  readonly #given: ReportFlags;
  readonly #terminal: Terminal;
  readonly #counter = new Counter();
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
    if (this.#given.json === true && page.nextPageToken !== null) this.#going(page);
  }

  /** From where it can go on though it is killed: what was told before that line is told. */
  #going({ progress, reachedAt, nextPageToken }: ReplayAnswer): void {
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
    // nothing is said of what is not there; an interrupted run may have been at its end
    const isNothing = passedOf(this.counts) === 0 && this.#given.pageToken === undefined;
    return ok(gone > 0 || isNothing ? EXIT.cannotRun : EXIT.ok);
  }

  interrupted(token: string): Outcome {
    this.#total(token);
    return fault(EXIT.interrupted, `interrupted: ${this.#goesOn(token)}`);
  }

  /** `token`: of the page that could not be had. */
  broken(error: Fault, token: string | undefined): Outcome {
    // a replay that never began cannot go on
    if (token === undefined || token === this.#given.pageToken) return err(error);
    this.#total(token);
    return err({ exit: error.exit, lines: [...error.lines, this.#goesOn(token)] });
  }

  #goesOn(token: string): string {
    return `${passedOf(this.counts)} decisions are counted, up to ${this.#last.reachedAt}; go on with the same command and --page-token ${token}`;
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
    if (lostOf(tally.counts) > 0) printText(this.#terminal, `\n${lostText(tally.counts)}\n`);
    if (pageToken !== undefined) this.#terminal.warn("counted from where --page-token goes on");
  }
}

export interface ReplayFlags extends ChangeFlags {
  readonly dataDir?: string;
  readonly api?: string;
  readonly tokenFile?: string;
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
      import("../history/open-history.ts"),
      import("./replay-store.ts"),
    ]);
    return withHistory(storeSetting(given, cli), false, async (store) => {
      const pages = await pagesOfStore(store, wanted.value);
      return pages.ok ? run(pages.value, given, cli) : pages;
    });
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // without the history's drivers, as a client needs none
  const { pagesOfApi } = await import("./replay-api.ts");
  const pages = pagesOfApi(api, token.value, wanted.value);
  return pages.ok ? run(pages.value, given, cli) : pages;
}

async function wantedOf(given: ReplayFlags, nowMs: number, { terminal }: Cli): Promise<Result<ReplayRequest, Fault>> {
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
