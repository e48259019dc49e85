import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Fields, isObject } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { CgroupFsError } from "../cgroupfs/errors.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { appendLine, type JournalError, readLines, renameFile, replaceFile } from "../core/record-file.ts";
import { ruleOf } from "../plan/cgroup-files.ts";
import { describeStep, type MkdirStep, type Step, type WriteStep } from "../plan/step.ts";
import { sameValue } from "../plan/values.ts";
import type { StepResult } from "./steps.ts";

/** At the end of a plan, the journal is compacted if it exceeds this size and twice its size after the last compaction. */
const COMPACT_ABOVE_BYTES = 1 << 20;

/** The last value that the daemon wrote to a file. */
interface WrittenValue {
  readonly value: string;
  readonly decisionId: string;
}

/**
 * Records on disk what is about to be changed, so that an interrupted plan is undone at the next start, and what was
 * last written to every file. One writer; a separate file for each root. INVARIANT: no step of a plan is tried before
 * its `begin` is on disk.
 */
export class Journal {
  /** Lines that could not be read when the file was opened; they were left out. */
  readonly damaged: number;
  /** The path of the file. */
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

  /** The plan that was begun and not ended, or null. */
  get unclosed(): BeginRecord | null {
    return this.#open;
  }

  /** The last value that we wrote to this file since the machine was started. */
  written(path: string, file: string): WrittenValue | null {
    return this.#written.get(keyOf(path, file)) ?? null;
  }

  begin(plan: BeginPlan): Result<void, JournalError> {
    if (this.#open !== null) {
      const message = `plan ${this.#open.planId} was started and never finished: undo it before another is started`;
      return err({ code: "plan_unclosed", message });
    }
    const begun = this.#add({ type: "begin", ...plan });
    return begun.ok ? begun : withoutIt(begun.error);
  }

  /** Closes the plan and keeps the values of the steps that were applied. */
  end(planId: string, results: readonly StepResult[]): Result<void, JournalError> {
    return this.#close({ type: "end", planId, wrote: writtenValues(results), removed: removedOf(results) });
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
  err(named(error, "the next start takes its plan for one that was interrupted, and undoes it"));
const keyOf = (path: string, file: string): string => `${path} ${file}`;

/** The values that we wrote; a value that was already there has another author. */
function writtenValues(results: readonly StepResult[]): FileValue[] {
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
 * The file of a root's journal: `/r/x` -> `journal+r+x.jsonl`, since no root contains a `+`. Earlier versions wrote `-`, which
 * gives `/r-x` the same name: such a file is taken over by the root of its last plan, and an observer reads it instead.
 * Errors: an earlier file that cannot be read.
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

interface BeginPlan {
  readonly planId: string;
  readonly decisionId: string;
  readonly bootId: string;
  readonly root: string;
  readonly version: 1 | 2;
  readonly pageSize: number;
  readonly steps: readonly Step[];
}
interface BeginRecord extends BeginPlan {
  readonly type: "begin";
}
interface EndRecord {
  readonly type: "end";
  readonly planId: string;
  readonly wrote: readonly FileValue[];
  readonly removed: readonly string[];
}
interface FileValue {
  readonly path: string;
  readonly file: string;
  readonly value: string;
}
interface DiscardRecord {
  readonly type: "undone" | "dropped";
  readonly planId: string;
}
/** The last value of a file, as a compacted journal keeps it. */
interface ValueRecord extends FileValue {
  readonly type: "value";
  readonly decisionId: string;
  readonly bootId: string;
}
type JournalRecord = BeginRecord | EndRecord | DiscardRecord | ValueRecord;

/** A record; null: the line is not one of ours. */
function parseRecord(line: string): JournalRecord | null {
  const value = parseJson(line);
  if (!isObject(value)) return null;
  switch (value["type"]) {
    case "begin":
      return isBegin(value) ? (value as unknown as BeginRecord) : null;
    case "end":
      return isEnd(value) ? (value as unknown as EndRecord) : null;
    case "undone":
    case "dropped":
      return hasTexts(value, "planId") ? (value as unknown as DiscardRecord) : null;
    case "value":
      return hasTexts(value, "path", "file", "value", "decisionId", "bootId")
        ? (value as unknown as ValueRecord)
        : null;
    default:
      return null;
  }
}

const hasTexts = (value: Fields, ...names: readonly string[]): boolean =>
  names.every((name) => typeof value[name] === "string");
const areAll = (value: unknown, is: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(is);
const isText = (value: unknown): boolean => typeof value === "string";
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);

function isBegin(value: Fields): boolean {
  if (!hasTexts(value, "planId", "decisionId", "bootId", "root")) return false;
  if ((value["version"] !== 1 && value["version"] !== 2) || !Number.isSafeInteger(value["pageSize"])) return false;
  return areAll(value["steps"], isStep);
}

function isEnd(value: Fields): boolean {
  const isFileValue = (item: unknown): boolean => isObject(item) && hasTexts(item, "path", "file", "value");
  return hasTexts(value, "planId") && areAll(value["wrote"], isFileValue) && areAll(value["removed"], isText);
}

/** Whether a value has the fields of a step that undoing needs. */
function isStep(value: unknown): boolean {
  if (!isObject(value) || !hasTexts(value, "path")) return false;
  switch (value["op"]) {
    case "mkdir":
      return typeof value["fresh"] === "boolean" && areAll(value["controllers"], isText);
    case "write":
      return hasTexts(value, "file", "to") && isTextOrNull(value["from"]) && isTextOrNull(value["identity"]);
    case "rmdir":
      return true;
    default:
      return false;
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The result of undoing. `kept`: another writer changed the file since, or undoing failed; the message says which. */
interface UndoResult {
  readonly step: Step;
  readonly status: "put_back" | "untouched" | "kept";
  readonly errno: string | null;
  readonly message: string;
}

export interface Recovery {
  /** `other_root`: the plan was for another root, open that one to undo it; nothing may be applied until then. */
  readonly outcome: "nothing" | "dropped" | "undone" | "other_root";
  readonly plan: BeginRecord | null;
  readonly steps: readonly UndoResult[];
  readonly journalError: JournalError | null;
}

/**
 * Undoes the plan that was begun and not ended: first it removes the cgroups that the plan made, if they are empty, then it
 * restores values, newest first. After a reboot there is nothing to undo. A value that is neither the old nor the new one belongs
 * to another writer and stays. Removed orphans stay removed. If it is interrupted, it can run again.
 */
export async function recover(journal: Journal, hierarchy: Hierarchy, bootId: string): Promise<Recovery> {
  const plan = journal.unclosed;
  if (plan === null) return { outcome: "nothing", plan, steps: [], journalError: null };
  if (plan.bootId !== bootId) return close(journal, plan, "dropped", []);
  if (plan.root !== hierarchy.root || plan.version !== hierarchy.version) {
    return { outcome: "other_root", plan, steps: [], journalError: null };
  }
  const steps: UndoResult[] = [];
  // New cgroups first: values written into them are not restored, and would bind their parents.
  const newestFirst = plan.steps.toReversed();
  const order = [
    ...newestFirst.filter((step) => step.op === "mkdir"),
    ...newestFirst.filter((step) => step.op !== "mkdir"),
  ];
  for (const step of order) steps.push(await undo(step, plan, hierarchy));
  return close(journal, plan, "undone", steps);
}

function close(
  journal: Journal,
  plan: BeginRecord,
  outcome: "dropped" | "undone",
  steps: readonly UndoResult[],
): Recovery {
  const closed = journal.discard(plan.planId, outcome);
  return { outcome, plan, steps, journalError: closed.ok ? null : closed.error };
}

async function undo(step: Step, plan: BeginRecord, hierarchy: Hierarchy): Promise<UndoResult> {
  switch (step.op) {
    case "write":
      return undoWrite(step, plan, hierarchy);
    case "mkdir":
      return undoMkdir(step, hierarchy);
    case "rmdir":
      return untouched(step, `${step.path} is not made again if it was removed`);
  }
}

async function undoWrite(
  step: WriteStep,
  { pageSize, version }: BeginRecord,
  hierarchy: Hierarchy,
): Promise<UndoResult> {
  const { path, file, to } = step;
  const now = hierarchy.read(path, file);
  const rule = ruleOf(version, file);
  if (!now.ok || rule === null) return untouched(step, `${path} ${file} is not there`);
  // Unseen in a cgroup that was there: v2 had not enabled the controller, so the kernel's first value is the old one.
  const from = step.from ?? (step.identity === null ? null : rule.fresh);
  if (from === null) return untouched(step, `${path} was new: it goes as a whole`);
  if (!sameValue(rule, to, now.value, pageSize)) {
    if (sameValue(rule, from, now.value, pageSize)) return untouched(step, `${path} ${file} still holds \`${from}\``);
    return kept(step, null, `${path} ${file} holds \`${now.value}\`, neither \`${from}\` nor \`${to}\`: left alone`);
  }
  const written = await hierarchy.write(path, file, from);
  return written.ok ? putBack(step) : keptBy(step, written.error);
}

async function undoMkdir(step: MkdirStep, hierarchy: Hierarchy): Promise<UndoResult> {
  if (Object.keys(hierarchy.identities(step.path)).length === 0) return untouched(step, `${step.path} is not there`);
  const processes = hierarchy.processes(step.path);
  if (processes > 0) return kept(step, "EBUSY", `${step.path} holds ${processes} processes by now: left alone`);
  const removed = await hierarchy.remove(step.path, step.fresh ? undefined : step.controllers);
  return removed.ok ? putBack(step) : keptBy(step, removed.error);
}

const untouched = (step: Step, message: string): UndoResult => ({ step, status: "untouched", errno: null, message });
const kept = (step: Step, errno: string | null, message: string): UndoResult => ({
  step,
  status: "kept",
  errno,
  message,
});
const keptBy = (step: Step, error: CgroupFsError): UndoResult => kept(step, error.errno, error.message);
const putBack = (step: Step): UndoResult => ({
  step,
  status: "put_back",
  errno: null,
  message: `undid: ${describeStep(step)}`,
});
