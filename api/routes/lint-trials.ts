import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow } from "../../db/store.ts";
import type { LintFinding } from "../decide/lint/lint.ts";
import { type Path, stepsOf } from "../inputs/origin.ts";
import { ok, type Result } from "../model/result.ts";
import { isObject } from "../replay/change.ts";
import { recordedAnswer } from "../replay/parsed.ts";
import { type Compared, historyReplayer, type Replayed, type Replayer, replayer } from "../replay/replay-one.ts";
import type { Recorded, Snapshots } from "./lint-recorded.ts";

type Asked<T> = Promise<Result<T, StoreFailure>>;

/** Tries one finding on recorded decisions. Errors: the history's. */
export interface Trial {
  /** Whether what a decision was made with has the finding too, by code and field: else it had no part in it. */
  readonly isIn: (recorded: Recorded) => boolean;
  /** Whether the finding, which is in it, touched the decision: see `touchedFindings`. */
  readonly isTouched: (row: DecisionRow, recorded: Recorded, today: Today) => Asked<boolean>;
}

export function trialOf(store: Snapshots, { code, field, fix }: LintFinding): Trial {
  const path = namesIn(field);
  const changes = changesBy(store, fix ?? withoutAt(path));
  const same = (finding: LintFinding): boolean => finding.code === code && finding.field === field;
  return {
    isIn: ({ findings }) => findings.some(same),
    isTouched: async (row, { configuration, findings }, today) => {
      if (fix !== null) return changes(row, today);
      const message = findings.find(same)?.message ?? "";
      const isSaid = await today.says(row, message);
      if (!isSaid.ok || isSaid.value) return isSaid;
      return isThere(configuration, path) ? changes(row, today) : ok(false);
    },
  };
}

/**
 * Recorded decisions as they would be decided today with nothing changed, so that one of an older version counts for itself.
 * Several findings ask about one after the other: the last is kept.
 */
export class Today {
  readonly #compared: Replayer<Compared>;
  readonly #whole: Replayer;
  constructor(store: Snapshots) {
    this.#compared = lastKept(historyReplayer(store, {}));
    this.#whole = lastKept(replayer(store, {}));
  }
  compared(row: DecisionRow): Asked<Compared> {
    return this.#compared(row);
  }
  whole(row: DecisionRow): Asked<Replayed> {
    return this.#whole(row);
  }
  /** Whether the answer has a message, such as a start error. */
  async says(row: DecisionRow, message: string): Asked<boolean> {
    const text = JSON.stringify(message).slice(1, -1);
    const now = await this.#compared(row);
    if (!now.ok) return now;
    if (now.value.state === "same") {
      // most have it nowhere, which takes no parsing to see
      if (!row.body.includes(text)) return ok(false);
      const recorded = recordedAnswer(row);
      return recorded.ok ? ok(JSON.stringify(recorded.value.decision).includes(text)) : recorded;
    }
    const again = await this.#whole(row);
    if (!again.ok) return again;
    const { answer, problem } = again.value;
    return ok(JSON.stringify(answer?.decision ?? problem).includes(text));
  }
}

function lastKept<R extends Compared>(replay: Replayer<R>): Replayer<R> {
  let last: { readonly id: string; readonly found: Result<R, StoreFailure> } | null = null;
  return async (row) => {
    if (last?.id !== row.id) last = { id: row.id, found: await replay(row) };
    return last.found;
  };
}

/** Whether with the patch a decision would be another than without. */
function changesBy(store: Snapshots, patch: unknown): (row: DecisionRow, today: Today) => Asked<boolean> {
  const change = { kubeletConfigurationPatch: patch };
  const compared = historyReplayer(store, change);
  const whole = replayer(store, change);
  return async (row, today) => {
    const before = await today.compared(row);
    if (!before.ok) return before;
    const after = await compared(row);
    if (!after.ok) return after;
    if (before.value.state !== "differs" || after.value.state !== "differs")
      return ok(before.value.state !== after.value.state);
    // both are other than what was recorded: only the answers tell whether they are the same
    const [was, is] = [await today.whole(row), await whole(row)];
    if (!was.ok) return was;
    if (!is.ok) return is;
    return ok(JSON.stringify(was.value.answer?.decision) !== JSON.stringify(is.value.answer?.decision));
  };
}

/** A list is taken away as a whole: a merge patch does not reach into one. */
function namesIn(field: string): readonly string[] {
  const steps: Path = stepsOf(field);
  const end = steps.findIndex((step) => typeof step === "number");
  return (end === -1 ? steps : steps.slice(0, end)).map(String);
}
const withoutAt = (path: readonly string[]): unknown =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), null);
function isThere(configuration: unknown, path: readonly string[]): boolean {
  let at = configuration;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return false;
    at = at[name];
  }
  return true;
}
