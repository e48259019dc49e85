import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { Problem } from "../core/ports.ts";
import type { StepResult } from "./steps.ts";

/** Advice for a person. A CPU set is refused with EACCES if its parent lacks a CPU. */
const ADVICE: Readonly<Record<string, string>> = {
  EROFS: "it is mounted read-only for this daemon",
  EACCES: "this daemon lacks the right: see the mode and owner of the file, and CAP_DAC_OVERRIDE",
  EPERM: "the kernel or a security module forbids it to this daemon",
};

/**
 * The failed writes of a pass, one line for each step; the words stay the same while the failure does. A read-only mount is
 * reported once, in place of all that fails because of it.
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
