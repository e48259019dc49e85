import type { CgroupsDecision } from "../../api/model/decision.ts";
import { classifyDrift, type Drift, type DriftCause, type DriftContext } from "./drift.ts";
import { isNewSince, type LastLook, wantedThen } from "./last-look.ts";
import type { CpuRules } from "./milli-cpu.ts";
import type { CgroupState } from "./state.ts";
import { targetsOf } from "./targets.ts";

/** The last value that we wrote to a file, from the journal; null: we never wrote it. */
export type Written = (path: string, file: string) => string | null;

/**
 * Every file of every existing cgroup of the decision that does not hold what is wanted, each with its cause. `last`: what
 * the pass before left behind; null: there was none, so that nothing counts as new.
 */
export function findDrift(
  decision: CgroupsDecision,
  state: CgroupState,
  written: Written,
  cpu: CpuRules,
  last: LastLook | null = null,
): readonly Drift[] {
  const shares = new Map(decision.cgroups.map((cgroup) => [cgroup.path, cgroup.values.cpuShares]));
  const context: DriftContext = { version: state.version, pageSize: state.pageSize, cpu };
  const found: Drift[] = [];
  for (const { path, observed, wanted } of targetsOf(decision, state, "existing").targets.values()) {
    for (const [file, text] of wanted) {
      const actual = observed?.files[file];
      if (observed === null || actual === undefined || actual.trim() === text) continue;
      const known = { path, file, wanted: text, actual, written: written(path, file), shares: shares.get(path) };
      const then = { isNew: isNewSince(last, observed, file), wantedThen: wantedThen(last, path, file) };
      const drift = classifyDrift({ ...known, ...then, period: observed.files["cpu.cfs_period_us"] }, context);
      if (drift !== null) found.push(drift);
    }
  }
  return found;
}

/** A file that does not hold what is wanted, letter by letter. */
export interface Difference {
  readonly path: string;
  readonly file: string;
  /** Null: it is not there, or cannot be read. */
  readonly actual: string | null;
  /** Null with `actual`. */
  readonly cause: DriftCause | null;
}

/** Every file of the decision that differs: those of its drift, and those that cannot be read, of containers that run only. */
export function differencesOf(
  decision: CgroupsDecision,
  state: CgroupState,
  drift: readonly Drift[],
): readonly Difference[] {
  const unread = decision.cgroups.flatMap(({ path, level, containerId, files }) => {
    if (level === "container" && containerId === null) return [];
    const seen = state.cgroups[path]?.files ?? {};
    const missing = files.filter(({ path: file }) => seen[file] === undefined);
    return missing.map(({ path: file }) => ({ path, file, actual: null, cause: null }));
  });
  return [...drift.map(({ path, file, actual, cause }) => ({ path, file, actual, cause })), ...unread];
}

/**
 * Files of containers that stay as they are, as `path file`: weights that the runtime made of the same shares by its own
 * formula. It would write them again whenever it is told of the container, against us each time.
 */
export function leftToRuntime(decision: CgroupsDecision, drift: readonly Drift[]): ReadonlySet<string> {
  const weights = drift.filter(({ cause }) => cause === "weight_formula");
  if (weights.length === 0) return new Set();
  const containers = new Set(decision.cgroups.filter(({ level }) => level === "container").map(({ path }) => path));
  return new Set(weights.filter(({ path }) => containers.has(path)).map(({ path, file }) => `${path} ${file}`));
}
