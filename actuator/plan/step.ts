/**
 * Why a step is where it is: `create`/`complete`/`orphan` make and remove; `widen` runs from the top, `narrow` from the
 * bottom; `set` has no order; a cpuset first gives up (`release`), then takes (`claim`), then lets go of what it only
 * held for its children (`settle`).
 */
export const WHY = ["orphan", "create", "complete", "release", "set", "widen", "claim", "narrow", "settle"] as const;
export type Why = (typeof WHY)[number];

interface StepOf<Op extends string> {
  /** Place in the plan, from 0. */
  readonly id: number;
  readonly op: Op;
  readonly path: string;
  readonly why: Why;
  /** Ids of steps without which this one may not be tried. */
  readonly needs: readonly number[];
}

export interface MkdirStep extends StepOf<"mkdir"> {
  readonly controllers: readonly string[];
  /** False when the cgroup is there already and only lacks these controllers. */
  readonly fresh: boolean;
}

export interface WriteStep extends StepOf<"write"> {
  readonly file: string;
  /** What the plan saw; null in a new cgroup, where the kernel's own value is not yet known. */
  readonly from: string | null;
  readonly to: string;
  /** The directory that the plan saw; null in a new cgroup. */
  readonly identity: string | null;
  /** Steps of one group are done together or put back together; null stands alone. */
  readonly group: string | null;
}

export interface RmdirStep extends StepOf<"rmdir"> {
  readonly identities: Readonly<Record<string, string>>;
}

export type Step = MkdirStep | WriteStep | RmdirStep;

export const SKIP_CODES = [
  "unsupported_controller",
  "missing_file",
  "not_settable",
  "bad_value",
  "bad_path",
  "duplicate_path",
  "container_not_started",
  "has_processes",
] as const;

/** Something that the decision names, or an orphan, that the plan leaves out; never an error. */
export interface Skip {
  readonly path: string;
  /** Null: the whole cgroup. */
  readonly file: string | null;
  readonly code: (typeof SKIP_CODES)[number];
  readonly message: string;
}

export interface WritePlan {
  readonly version: 1 | 2;
  readonly bootId: string;
  readonly root: string;
  /** Bytes; what "the same amount" means when a value is read back. */
  readonly pageSize: number;
  readonly steps: readonly Step[];
  readonly skipped: readonly Skip[];
}

/** `write /kubepods cpu.shares: 2 -> 102 (widen)` */
export function describeStep(step: Step): string {
  switch (step.op) {
    case "mkdir":
      return `${step.fresh ? "create" : "complete"} ${step.path}: ${step.controllers.join(",")}`;
    case "rmdir":
      return `remove ${step.path} (${step.why})`;
    case "write":
      return `write ${step.path} ${step.file}: ${step.from ?? "new"} -> ${step.to} (${step.why})`;
  }
}
