import { randomUUID } from "node:crypto";
import type { StepStatus } from "../../api/model/cgroups.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { JournalError } from "../core/record-file.ts";
import { guardPlan } from "../plan/guard.ts";
import { describeStep, type Step, type WritePlan } from "../plan/step.ts";
import type { Journal } from "./journal.ts";
import { applyStep, type Context, revertStep, type StepResult } from "./steps.ts";

interface ApplyRequest {
  readonly plan: WritePlan;
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
  /** The decision that the plan was made from; it is recorded with every value that is written. */
  readonly decisionId: string;
  /** The current boot; the plan has that of its observation. */
  readonly bootId: string;
  /** Change nothing; answer what would be done. */
  readonly dryRun: boolean;
}

export interface ApplyReport {
  readonly dryRun: boolean;
  /** One result for each step of the plan, in its order. */
  readonly results: readonly StepResult[];
  /** True when every step was applied, was not needed, or had no file in this kernel. */
  readonly complete: boolean;
  /** Set if the end of the plan could not be recorded: the plan will be undone at the next start. */
  readonly journalError: JournalError | null;
}

/**
 * Carries out a plan: guard, write, read back, step by step. A failed step stops the steps that need it and, in a
 * group, reverts what the group did; all others continue. Never throws because of the kernel or another writer.
 */
export async function applyPlan(request: ApplyRequest): Promise<ApplyReport> {
  const { plan, hierarchy, journal, bootId, decisionId } = request;
  if (request.dryRun) return { ...reportOf(plan.steps.map(planned)), dryRun: true };
  const allowed = guardPlan(plan, { bootId, root: hierarchy.root });
  if (!allowed.ok) return reportOf(plan.steps.map((step) => skipped(step, allowed.error.code, allowed.error.message)));
  if (plan.steps.length === 0) return reportOf([]);

  const planId = randomUUID();
  const { root, version, pageSize, steps } = plan;
  const begun = journal.begin({ planId, decisionId, bootId, root, version, pageSize, steps });
  if (!begun.ok)
    return reportOf(
      steps.map((step) => skipped(step, "no_journal", begun.error.message)),
      begun.error,
    );
  const results = await runSteps(steps, { hierarchy, version, pageSize });
  const ended = journal.end(planId, results);
  return reportOf(results, ended.ok ? null : ended.error);
}

async function runSteps(steps: readonly Step[], context: Context): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (const step of steps) {
    const blocker = step.needs.map((id) => results[id]).find((result) => result !== undefined && !isDone(result));
    if (blocker !== undefined) {
      // the first cause, however long the chain
      const why =
        blocker.code === "blocked" ? blocker.message : `not tried, because this was not done: ${blocker.message}`;
      results.push(skipped(step, "blocked", why));
      continue;
    }
    const result = await applyStep(step, context);
    results.push(result);
    if (!isDone(result)) await rollBack(step, results, context);
  }
  return results;
}

/** Undoes, newest first, what the failed step's group did before it. */
async function rollBack(failed: Step, results: StepResult[], context: Context): Promise<void> {
  if (failed.op !== "write" || failed.group === null) return;
  for (const done of results.toReversed()) {
    const { step } = done;
    if (step.op !== "write" || step.group !== failed.group || done.status !== "applied") continue;
    results[step.id] = await revertStep(done, step, context, failed);
  }
}

/** Whether the steps that need this one may continue. */
const isDone = (result: StepResult): boolean =>
  result.status === "applied" || result.status === "unchanged" || result.code === "no_such_file";

const notDone = (step: Step, status: StepStatus, code: StepResult["code"], message: string): StepResult => ({
  step,
  status,
  code,
  errno: null,
  before: null,
  readBack: null,
  message,
});
const planned = (step: Step): StepResult => notDone(step, "planned", null, describeStep(step));
const skipped = (step: Step, code: StepResult["code"], message: string): StepResult =>
  notDone(step, "skipped", code, message);

const reportOf = (results: readonly StepResult[], journalError: JournalError | null = null): ApplyReport => ({
  dryRun: false,
  results,
  complete: results.every((result) => isDone(result) || result.status === "planned"),
  journalError,
});
