import type { CgroupFsError } from "../cgroupfs/errors.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { JournalError } from "../core/record-file.ts";
import { ruleOf } from "../plan/cgroup-files.ts";
import { describeStep, type MkdirStep, type Step, type WriteStep } from "../plan/step.ts";
import { sameValue } from "../plan/values.ts";
import type { BeginRecord, Journal } from "./journal.ts";

/** `kept`: another writer changed it since, or it could not be undone; the message says which. */
export interface Undone {
  readonly step: Step;
  readonly status: "put_back" | "untouched" | "kept";
  readonly errno: string | null;
  readonly message: string;
}

export interface Recovery {
  /** `other_root`: the plan was for another root, open that one to undo it; nothing may be applied until then. */
  readonly outcome: "nothing" | "dropped" | "undone" | "other_root";
  readonly plan: BeginRecord | null;
  readonly steps: readonly Undone[];
  readonly journalError: JournalError | null;
}

/**
 * Undoes the plan that was begun and never ended: first the cgroups that it made are removed, if they are empty, then
 * values are put back, newest first. After a reboot there is nothing left to undo. A value that is neither the old nor the new one belongs to
 * another writer and stays. Orphans that were removed stay removed. May be cut short itself and run again.
 */
export async function recover(journal: Journal, hierarchy: Hierarchy, bootId: string): Promise<Recovery> {
  const plan = journal.unclosed;
  if (plan === null) return { outcome: "nothing", plan, steps: [], journalError: null };
  if (plan.bootId !== bootId) return close(journal, plan, "dropped", []);
  if (plan.root !== hierarchy.root || plan.version !== hierarchy.version) {
    return { outcome: "other_root", plan, steps: [], journalError: null };
  }
  const steps: Undone[] = [];
  // New cgroups first: what was written into them is not put back and would hold their parents to it.
  const newestFirst = plan.steps.toReversed();
  const order = [
    ...newestFirst.filter((step) => step.op === "mkdir"),
    ...newestFirst.filter((step) => step.op !== "mkdir"),
  ];
  for (const step of order) steps.push(await undo(step, plan, hierarchy));
  return close(journal, plan, "undone", steps);
}

function close(journal: Journal, plan: BeginRecord, outcome: "dropped" | "undone", steps: readonly Undone[]): Recovery {
  const closed = journal.discard(plan.planId, outcome);
  return { outcome, plan, steps, journalError: closed.ok ? null : closed.error };
}

async function undo(step: Step, plan: BeginRecord, hierarchy: Hierarchy): Promise<Undone> {
  switch (step.op) {
    case "write":
      return undoWrite(step, plan, hierarchy);
    case "mkdir":
      return undoMkdir(step, hierarchy);
    case "rmdir":
      return untouched(step, `${step.path} is not made again if it was removed`);
  }
}

async function undoWrite(step: WriteStep, { pageSize, version }: BeginRecord, hierarchy: Hierarchy): Promise<Undone> {
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

async function undoMkdir(step: MkdirStep, hierarchy: Hierarchy): Promise<Undone> {
  if (Object.keys(hierarchy.identities(step.path)).length === 0) return untouched(step, `${step.path} is not there`);
  const processes = hierarchy.processes(step.path);
  if (processes > 0) return kept(step, "EBUSY", `${step.path} holds ${processes} processes by now: left alone`);
  const removed = await hierarchy.remove(step.path, step.fresh ? undefined : step.controllers);
  return removed.ok ? putBack(step) : keptBy(step, removed.error);
}

const untouched = (step: Step, message: string): Undone => ({ step, status: "untouched", errno: null, message });
const kept = (step: Step, errno: string | null, message: string): Undone => ({ step, status: "kept", errno, message });
const keptBy = (step: Step, error: CgroupFsError): Undone => kept(step, error.errno, error.message);
const putBack = (step: Step): Undone => ({
  step,
  status: "put_back",
  errno: null,
  message: `undid: ${describeStep(step)}`,
});
