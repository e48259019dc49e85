import { existsSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { appendLine, type JournalError, readLines, renameFile, replaceFile } from "../core/record-file.ts";
import {
  type BeginPlan,
  type BeginRecord,
  type FileValue,
  type JournalRecord,
  parseRecord,
  type ValueRecord,
} from "./journal-records.ts";
import type { StepResult } from "./steps.ts";

/** Compacted at the end of a plan when it has grown past this and past twice what it was compacted to. */
const COMPACT_ABOVE_BYTES = 1 << 20;

/** The last write of ours to a file. */
export interface Written {
  readonly value: string;
  readonly decisionId: string;
}

/**
 * Remembers on disk what is about to be changed, so that a plan cut short is undone at the next start, and what was
 * last written to every file. One writer; a file of its own for each root.
 * INVARIANT: no step of a plan is tried before its `begin` is on disk.
 */
export class Journal {
  /** Lines that could not be read when the file was opened; they were left out. */
  readonly damaged: number;
  /** Where it lies. */
  readonly file: string;
  readonly #bootId: string;
  readonly #written = new Map<string, ValueRecord>();
  #open: BeginRecord | null = null;
  #bytes: number;
  #compactedTo = 0;

  private constructor(file: string, bootId: string, lines: readonly string[], bytes: number) {
    this.file = file;
    this.#bootId = bootId;
    this.#bytes = bytes;
    const records = lines.map(parseRecord);
    this.damaged = records.filter((record) => record === null).length;
    for (const record of records) if (record !== null) this.#take(record);
  }

  /** A last line without its end was cut off by a crash and is dropped. Values of another boot are forgotten. */
  static open(file: string, bootId: string): Result<Journal, JournalError> {
    const read = readLines(file);
    return read.ok ? ok(new Journal(file, bootId, read.value.lines, read.value.bytes)) : withoutIt(read.error);
  }

  /** The plan that was begun and never ended, or null. */
  get unclosed(): BeginRecord | null {
    return this.#open;
  }

  /** The last value that we wrote to this file since the machine was started. */
  written(path: string, file: string): Written | null {
    return this.#written.get(keyOf(path, file)) ?? null;
  }

  begin(plan: BeginPlan): Result<void, JournalError> {
    if (this.#open !== null) {
      const message = `plan ${this.#open.planId} was begun and never ended: undo it before another is begun`;
      return err({ code: "plan_unclosed", message });
    }
    const begun = this.#add({ type: "begin", ...plan });
    return begun.ok ? begun : withoutIt(begun.error);
  }

  /** Closes the plan and keeps the values of the steps that were applied. */
  end(planId: string, results: readonly StepResult[]): Result<void, JournalError> {
    return this.#close({ type: "end", planId, wrote: wroteOf(results), removed: removedOf(results) });
  }

  /** Closes a plan that was undone at the start, or that no longer matters because the machine was restarted. */
  discard(planId: string, how: "undone" | "dropped"): Result<void, JournalError> {
    return this.#close({ type: how, planId });
  }

  #close(record: JournalRecord): Result<void, JournalError> {
    const added = this.#add(record);
    if (!added.ok) return unclosed(added.error);
    if (this.#bytes < Math.max(COMPACT_ABOVE_BYTES, 2 * this.#compactedTo)) return added;
    const replaced = replaceFile(
      this.file,
      [...this.#written.values()].map((value) => JSON.stringify(value)),
    );
    if (replaced.ok) this.#bytes = this.#compactedTo = replaced.value;
    return replaced.ok ? ok(undefined) : err(named(replaced.error, "it is closed, and only not made smaller"));
  }

  #add(record: JournalRecord): Result<void, JournalError> {
    const added = appendLine(this.file, JSON.stringify(record));
    if (!added.ok) return added;
    this.#bytes += added.value;
    this.#take(record);
    return ok(undefined);
  }

  #take(record: JournalRecord): void {
    switch (record.type) {
      case "value":
        this.#remember(record);
        return;
      case "begin":
        this.#open = record;
        return;
      case "undone":
      case "dropped":
        this.#open = null;
        return;
      case "end": {
        const { decisionId = "", bootId = "" } = this.#open ?? {};
        for (const path of record.removed) this.#forget(path);
        for (const wrote of record.wrote) this.#remember({ type: "value", ...wrote, decisionId, bootId });
        this.#open = null;
      }
    }
  }

  #remember(value: ValueRecord): void {
    if (value.bootId === this.#bootId) this.#written.set(keyOf(value.path, value.file), value);
  }

  #forget(path: string): void {
    for (const [key, value] of this.#written) if (value.path === path) this.#written.delete(key);
  }
}

const named = (error: JournalError, effect: string): JournalError => ({
  ...error,
  message: `journal ${error.message}; ${effect}`,
});
const withoutIt = (error: JournalError): Result<never, JournalError> =>
  err(named(error, "nothing is changed without it"));
const unclosed = (error: JournalError): Result<never, JournalError> =>
  err(named(error, "the next start takes its plan for one that was cut short, and undoes it"));
const keyOf = (path: string, file: string): string => `${path} ${file}`;

/** Only what we wrote ourselves: a value that was there already has another author. */
function wroteOf(results: readonly StepResult[]): FileValue[] {
  const last = new Map<string, FileValue>();
  for (const { step, status, readBack } of results) {
    if (step.op !== "write" || status !== "applied") continue;
    last.set(keyOf(step.path, step.file), { path: step.path, file: step.file, value: readBack ?? step.to });
  }
  return [...last.values()];
}

const removedOf = (results: readonly StepResult[]): string[] =>
  results.flatMap(({ step, status }) => (step.op === "rmdir" && status === "applied" ? [step.path] : []));

/**
 * The file of a root's journal: `/r/x` -> `journal+r+x.jsonl`, since no root has a `+`. Earlier versions wrote `-`, which
 * `/r-x` has as well: such a file is taken over by the root that its last plan was for, and an observer reads it in its
 * place. Errors: an earlier file that cannot be read.
 */
export function journalFile({
  stateDir,
  cgroupRoot,
  mode,
}: Pick<ActuatorConfig, "stateDir" | "cgroupRoot" | "mode">): Result<string, JournalError> {
  const file = join(stateDir, `journal${cgroupRoot.replaceAll("/", "+")}.jsonl`);
  const earlier = join(stateDir, `journal${cgroupRoot.replaceAll("/", "-")}.jsonl`);
  if (existsSync(file) || !existsSync(earlier)) return ok(file);
  const read = readLines(earlier);
  if (!read.ok) return read;
  const plans = read.value.lines.map(parseRecord).filter((record) => record?.type === "begin");
  if ((plans.at(-1)?.root ?? cgroupRoot) !== cgroupRoot) return ok(file);
  if (mode === "observe") return ok(earlier);
  const renamed = renameFile(earlier, file);
  return renamed.ok ? ok(file) : renamed;
}
