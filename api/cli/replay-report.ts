import { err, ok } from "../model/result.ts";
import type { ReplayAnswer } from "../replay/replay-answer.ts";
import { Counter, type Counts } from "../replay/tally.ts";
import { EXIT, type Fault, fault, type Outcome } from "./exit.ts";
import { changedText, tallyText } from "./replay-text.ts";
import type { Terminal } from "./terminal.ts";

export interface ReportGiven {
  /** Changed decisions that are listed, unless `all` of them are. */
  readonly limit: number;
  readonly all?: boolean;
  /** A line of JSON for each of them, and one for what was counted. */
  readonly json?: boolean;
  /** Where an earlier run was left. */
  readonly pageToken?: string;
}

/** Prints the changed decisions as they come and what was counted at the end, and keeps the counts alone. */
export class ReplayReport {
  readonly #given: ReportGiven;
  readonly #terminal: Terminal;
  readonly #counter = new Counter();
  #listed = 0;
  #last: Pick<ReplayAnswer, "until" | "reachedAt"> = { until: "", reachedAt: null };

  constructor(given: ReportGiven, terminal: Terminal) {
    this.#given = given;
    this.#terminal = terminal;
  }

  get counts(): Counts {
    return this.#counter.counts;
  }

  add(page: ReplayAnswer): void {
    const { json, all, limit } = this.#given;
    this.#counter.add(page);
    this.#last = page;
    for (const one of page.changed) {
      if (json === true) this.#terminal.write(`${JSON.stringify(one)}\n`);
      else if (all === true || this.#listed < limit) this.#terminal.write(changedText(one, this.#terminal));
      else continue;
      this.#listed++;
    }
  }

  done(): Outcome {
    this.#total(null);
    const { differs, refused } = this.counts;
    return ok(differs + refused > 0 ? EXIT.negative : EXIT.ok);
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
    const { replayed } = this.counts;
    return `${replayed} decisions are counted, up to ${this.#last.reachedAt}; go on with the same command and --page-token ${token}`;
  }

  #total(nextPageToken: string | null): void {
    const tally = this.#counter.tally();
    const { json, pageToken } = this.#given;
    if (json === true) {
      const { until, reachedAt } = this.#last;
      this.#terminal.write(`${JSON.stringify({ summary: { ...tally, until, reachedAt, nextPageToken } })}\n`);
      return;
    }
    const { replayed, differs, refused } = tally.counts;
    const others = differs + refused - this.#listed;
    if (others > 0) this.#terminal.write(`and ${others.toLocaleString("en")} more: --all lists them\n`);
    if (differs + refused > 0) this.#terminal.write("\n");
    if (replayed > 0) this.#terminal.write(tallyText(tally, this.#terminal));
    else this.#terminal.warn("no such decisions");
    if (pageToken !== undefined) this.#terminal.warn("counted from where --page-token goes on");
  }
}
