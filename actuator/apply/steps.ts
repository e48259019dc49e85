import type { StepStatus } from "../../api/model/cgroups.ts";
import type { CgroupFsCode, CgroupFsError } from "../cgroupfs/errors.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { Problem } from "../core/interfaces.ts";
import { controllerOf, ruleOf } from "../plan/cgroup-files.ts";
import { type GuardRefusal, guardMkdir, guardRmdir, guardWrite } from "../plan/guard.ts";
import { describeStep, type MkdirStep, type RmdirStep, type Step, type WriteStep } from "../plan/step.ts";
import { sameValue } from "../plan/values.ts";

/** Advice for a person. A CPU set is refused with EACCES if its parent lacks a CPU. */
const ADVICE: Readonly<Record<string, string>> = {
  EROFS: "it is mounted read-only for this daemon",
  EACCES: "this daemon lacks the right: see the mode and owner of the file, and CAP_DAC_OVERRIDE",
  EPERM: "the kernel or a security module forbids it to this daemon",
};

/**
 * The failed writes of a pass, one line for each step; the text stays the same while the failure does. A read-only
 * mount is reported once for all failures that it causes.
 */
export function stepNotices(
  results: readonly StepResult[],
  { readOnly }: Pick<Hierarchy, "readOnly">,
): readonly Problem[] {
  const failed = results.filter(({ status }) => status === "failed");
  const isOfMount = ({ errno }: StepResult): boolean => errno === "EROFS" && readOnly.length > 0;
  const messages = [
    ...(failed.some(isOfMount) ? readOnly : []),
    ...failed.filter((one) => !isOfMount(one)).map(lineOf),
  ];
  return messages.map((message) => ({ from: "cgroupfs", message }));
}

/** Figures that the kernel had would change from pass to pass. */
function lineOf({ step, errno, message }: StepResult): string {
  if (errno === null) return message;
  const isCpuset = step.op === "write" && step.file.startsWith("cpuset.");
  const advice = isCpuset && errno === "EACCES" ? undefined : ADVICE[errno];
  const tried = step.op === "write" ? `write ${step.path} ${step.file}: tried \`${step.to}\`, got ${errno}` : message;
  return advice === undefined ? tried : `${tried}; ${advice}`;
}

export interface StepResult {
  readonly step: Step;
  readonly status: StepStatus;
  /** Why it was skipped or failed: a guard's code, an error's, or one of ours. */
  readonly code: GuardRefusal["code"] | CgroupFsCode | "blocked" | "no_such_file" | "not_kept" | "no_journal" | null;
  readonly errno: string | null;
  /** The file's text just before; null: it did not exist or was not read. */
  readonly before: string | null;
  /** The file's text afterwards. */
  readonly readBack: string | null;
  readonly message: string;
}

export interface Context {
  readonly hierarchy: Hierarchy;
  readonly version: 1 | 2;
  readonly pageSize: number;
}

/** Carries out one step: checks that its target is as planned, acts, and reads back. */
export function applyStep(step: Step, context: Context): Promise<StepResult> {
  switch (step.op) {
    case "mkdir":
      return doMkdir(step, context);
    case "rmdir":
      return doRmdir(step, context);
    case "write":
      return doWrite(step, context);
  }
}

async function doMkdir(step: MkdirStep, { hierarchy }: Context): Promise<StepResult> {
  const verdict = guardMkdir(step, Object.keys(hierarchy.identities(step.path)).length > 0);
  if (!verdict.ok) return refused(step, verdict.error);
  const made = await hierarchy.create(step.path, step.controllers);
  return made.ok ? result(step, "applied") : failed(step, made.error);
}

async function doRmdir(step: RmdirStep, { hierarchy }: Context): Promise<StepResult> {
  const identities = hierarchy.identities(step.path);
  const verdict = guardRmdir(step, { identities, processes: hierarchy.processes(step.path) });
  if (!verdict.ok) return refused(step, verdict.error);
  if (verdict.value === "unchanged") return result(step, "unchanged");
  const removed = await hierarchy.remove(step.path);
  return removed.ok ? result(step, "applied") : failed(step, removed.error);
}

async function doWrite(step: WriteStep, context: Context): Promise<StepResult> {
  const { hierarchy, version, pageSize } = context;
  const identity = hierarchy.identity(step.path, controllerOf(step.file));
  const before = textOf(hierarchy, step);
  const verdict = guardWrite(step, { identity, text: before, version, pageSize });
  if (!verdict.ok) return refused(step, verdict.error, before);
  if (verdict.value === "unchanged") return result(step, "unchanged", before, before);
  if (before === null) return absent(step);
  const written = await hierarchy.write(step.path, step.file, step.to);
  const after = textOf(hierarchy, step);
  if (!written.ok) return failed(step, written.error, before, after);
  if (isKept(step.file, step.to, after, context)) return result(step, "applied", before, after);
  const message = `wrote ${step.path} ${step.file} \`${step.to}\`, the kernel keeps \`${after}\``;
  return { ...result(step, "failed", before, after), code: "not_kept", message };
}

/** Writes again what an applied step found, because a later one of its group failed. */
export async function revertStep(
  done: StepResult,
  step: WriteStep,
  context: Context,
  because: Step,
): Promise<StepResult> {
  const old = done.before ?? step.from ?? "";
  const written = await context.hierarchy.write(step.path, step.file, old);
  const now = textOf(context.hierarchy, step);
  if (!written.ok) return failed(step, written.error, done.before, now);
  const message = `put back to ${old}, because this was not done: ${describeStep(because)}`;
  return { ...result(step, "rolled_back", done.before, now), message };
}

function isKept(file: string, desired: string, found: string | null, { version, pageSize }: Context): boolean {
  const rule = ruleOf(version, file);
  return rule !== null && found !== null && sameValue(rule, desired, found, pageSize);
}

function textOf(hierarchy: Hierarchy, { path, file }: WriteStep): string | null {
  const found = hierarchy.read(path, file);
  return found.ok ? found.value : null;
}

const result = (
  step: Step,
  status: StepStatus,
  before: string | null = null,
  readBack: string | null = null,
): StepResult => ({ step, status, code: null, errno: null, before, readBack, message: describeStep(step) });

const refused = (step: Step, { code, message }: GuardRefusal, found: string | null = null): StepResult => ({
  ...result(step, "skipped", found, found),
  code,
  message,
});

const absent = (step: WriteStep): StepResult => ({
  ...result(step, "skipped"),
  code: "no_such_file",
  errno: "ENOENT",
  message: `this kernel has no ${step.file} in ${step.path}`,
});

const failed = (
  step: Step,
  { code, errno, message }: CgroupFsError,
  before: string | null = null,
  readBack: string | null = null,
): StepResult => ({ ...result(step, "failed", before, readBack), code, errno, message });
