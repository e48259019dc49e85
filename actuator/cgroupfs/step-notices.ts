import type { StepResult } from "../apply.ts";
import type { Problem } from "../ports.ts";
import type { Hierarchy } from "./hierarchy.ts";

/** What a person can do; a CPU set is refused with EACCES for what its parent holds. */
const ADVICE: Readonly<Record<string, string>> = {
  EROFS: "it is mounted read-only for this daemon",
  EACCES: "this daemon lacks the right: see the mode and owner of the file, and CAP_DAC_OVERRIDE",
  EPERM: "the kernel or a security module forbids it to this daemon",
};

/**
 * What a pass could not write, one line for each failed step, in words that stay the same while it stands; a mount that is
 * read-only is told instead of all that fails for it.
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
