import { memo } from "../../api/base/cache.ts";

/**
 * Paths of cgroups as a decision has them: absolute, below the actuator's own root (`/` is that root itself).
 * No empty, `.` or `..` segment, no control character, no segment that could be mistaken for a file of the kernel.
 */
export const isCgroupPath = (path: string): boolean => path.length <= MAX_LENGTH && isGood(path);
const MAX_LENGTH = 4095;
/** Cached, since a pass checks a few hundred paths some thousand times. */
const isGood = memo(
  2048,
  (path) => path === "/" || (path.startsWith("/") && path.slice(1).split("/").every(isSegment)),
);

/** A character of a text is three bytes at most, and a name has room for 255. */
const utf8 = new TextEncoder();
const FILE_LIKE = /^(cgroup|cpu|cpuacct|cpuset|memory|pids|hugetlb|io|blkio|devices|freezer|misc|rdma)\./;

function isSegment(segment: string): boolean {
  if (segment === "" || segment === "." || segment === "..") return false;
  if (segment.length > 85 && utf8.encode(segment).length > 255) return false;
  if (FILE_LIKE.test(segment)) return false;
  for (const char of segment) if (char < " " || char === "\u007f") return false;
  return true;
}

/** The parent's path; null for the root. */
export function parentOf(path: string): string | null {
  if (path === "/") return null;
  const cut = path.lastIndexOf("/");
  return cut === 0 ? "/" : path.slice(0, cut);
}

/** The ancestors from the parent up to the root. */
export function* ancestorsOf(path: string): Generator<string> {
  for (let up = parentOf(path); up !== null; up = parentOf(up)) yield up;
}

/** The nearest ancestor that `has` accepts, or null. */
export function nearestAncestor(path: string, has: (ancestor: string) => boolean): string | null {
  for (const up of ancestorsOf(path)) if (has(up)) return up;
  return null;
}

export const isBelow = (path: string, ancestor: string): boolean =>
  ancestor === "/" ? path !== "/" : path.startsWith(`${ancestor}/`);

const depthOf = (path: string): number => (path === "/" ? 0 : path.split("/").length - 1);

/** All paths with missing ancestors, parents first; cgroups of one depth keep their order. */
export function parentsFirst(paths: Iterable<string>): string[] {
  const all = new Set<string>();
  for (const path of paths) {
    for (const up of ancestorsOf(path)) all.add(up);
    all.add(path);
  }
  return [...all].sort((a, b) => depthOf(a) - depthOf(b));
}

/**
 * The reason for a step's place in the order: `create`/`complete`/`orphan` create and remove; `widen` runs from the top,
 * `narrow` from the bottom; `set` has no order; a cpuset first gives CPUs up (`release`), then takes some (`claim`), then drops
 * those that it only held for its children (`settle`).
 */
export type StepReason = "orphan" | "create" | "complete" | "release" | "set" | "widen" | "claim" | "narrow" | "settle";

interface StepOf<Op extends string> {
  /** Place in the plan, from 0. */
  readonly id: number;
  readonly op: Op;
  readonly path: string;
  readonly why: StepReason;
  /** Ids of steps without which this one may not be tried. */
  readonly needs: readonly number[];
}

export interface MkdirStep extends StepOf<"mkdir"> {
  readonly controllers: readonly string[];
  /** False: the cgroup exists and only lacks these controllers. */
  readonly fresh: boolean;
}

export interface WriteStep extends StepOf<"write"> {
  readonly file: string;
  /** The text when the plan was made; null in a new cgroup, whose initial value is not yet known. */
  readonly from: string | null;
  readonly to: string;
  /** The directory that the plan saw; null in a new cgroup. */
  readonly identity: string | null;
  /** Steps of one group are applied together or reverted together; null: the step is on its own. */
  readonly group: string | null;
}

export interface RmdirStep extends StepOf<"rmdir"> {
  readonly identities: Readonly<Record<string, string>>;
}

export type Step = MkdirStep | WriteStep | RmdirStep;

const SKIP_CODES = [
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
  /** The file; null: the whole cgroup. */
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
