import { err, ok } from "../model/result.ts";
import type { ReplayAnswer } from "../replay/replay-answer.ts";
import { Counter, type Counts, lostOf, passedOf } from "../replay/tally.ts";
import { EXIT, type Fault, fault, type Outcome } from "./exit.ts";
import { changedText, lostText, tallyText, unreadableText } from "./replay-text.ts";
import type { Terminal } from "./terminal.ts";

export interface ReportGiven {
  /** Changed decisions that are listed, and as many that cannot be read, unless `all` of them are. */
  readonly limit: number;
  readonly all?: boolean;
  /** A line of JSON for each of them, for where each page ended, and for what was counted. */
  readonly json?: boolean;
  /** Where an earlier run was left. */
  readonly pageToken?: string;
}

/** Prints the changed decisions as they come and what was counted at the end, and keeps the counts alone. */
export class ReplayReport {
  readonly #given: ReportGiven;
  readonly #terminal: Terminal;
  readonly #counter = new Counter();
  readonly #listed = { changed: 0, unreadable: 0 };
  #last: Pick<ReplayAnswer, "until" | "reachedAt"> = { until: "", reachedAt: null };

  constructor(given: ReportGiven, terminal: Terminal) {
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
      else if (all === true || this.#listed[what] < limit) this.#terminal.write(textOf(one, this.#terminal));
      else continue;
      this.#listed[what]++;
    }
  }

  done(): Outcome {
    this.#total(null);
    const { differs, refused, gone, unreadable } = this.counts;
    if (unreadable > 0) return ok(EXIT.failed);
    if (differs + refused > 0) return ok(EXIT.negative);
    return ok(gone > 0 ? EXIT.cannotRun : EXIT.ok);
  }

  interrupted(token: string): Outcome {
    this.#total(token);
    return fault(EXIT.interrupted, `interrupted: ${this.#goesOn(token)}`);
  }

  /** `token`: of the page that could not be had. */
  broken(error: Fault, token: string | undefined): Outcome {
    // what never began cannot go on
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
    if (others > 0) this.#terminal.write(`and ${others.toLocaleString("en")} more: --all lists them\n`);
    if (differs + refused + unreadable > 0) this.#terminal.write("\n");
    if (passedOf(tally.counts) === 0) this.#terminal.warn("no such decisions");
    else this.#terminal.write(tallyText(tally, this.#terminal));
    if (lostOf(tally.counts) > 0) this.#terminal.write(`\n${lostText(tally.counts)}\n`);
    if (pageToken !== undefined) this.#terminal.warn("counted from where --page-token goes on");
  }
}
