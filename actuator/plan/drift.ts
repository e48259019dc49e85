import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import { KERNEL_CFS_PERIOD } from "../../api/model/units.ts";
import { ruleOf } from "./cgroup-files.ts";
import { type CgroupState, isNewSince, type LastPassCgroups, lastDecidedValue } from "./state.ts";
import { targetsOf } from "./targets.ts";
import {
  amountOf,
  type Bandwidth,
  bandwidthV1,
  bandwidthV2,
  type CpuRules,
  milliCpuText,
  roundedBySystemd,
  sameBandwidth,
  sameValue,
} from "./values.ts";

/** Causes of a difference that needs no repair. */
export const HARMLESS_CAUSES = ["page_rounding", "systemd_rounding", "weight_formula"] as const;
export type HarmlessCause = (typeof HARMLESS_CAUSES)[number];
/** Causes of a difference that no other writer made: the decision changed, or the value was never written. */
const PENDING_CAUSES = ["ours", "outdated", "new_cgroup"] as const;
/**
 * Causes of a difference. `ours`: our own earlier value. `outdated`: the value of the last decision, written by
 * another process, such as a container's runtime or a kubelet. `new_cgroup`: the initial value of a cgroup created
 * since the last pass. `never_written`: the initial value, or a change by another process. `other_writer`: another
 * process changed what we wrote.
 */
export const DRIFT_CAUSES = [...HARMLESS_CAUSES, ...PENDING_CAUSES, "never_written", "other_writer"] as const;
export type DriftCause = (typeof DRIFT_CAUSES)[number];

/** The cause, if the difference may stay; undefined: it must be corrected. */
export const harmlessCause = ({ cause }: { readonly cause: DriftCause | null }): HarmlessCause | undefined =>
  HARMLESS_CAUSES.find((one) => one === cause);

/**
 * Whether a difference is reported: a value that was right, or that we wrote, and that changed. The others are just
 * the next plan's work.
 */
export const isReported = ({ cause }: Pick<Drift, "cause">): boolean => !PENDING_CAUSES.some((one) => one === cause);
/** Whether another process caused the difference, and no rounding explains it. */
export const isForeign = ({ cause }: Drift): boolean => cause === "never_written" || cause === "other_writer";

export interface DriftCase {
  readonly path: string;
  readonly file: string;
  readonly wanted: string;
  readonly actual: string;
  /** The last value that we wrote, from the journal. */
  readonly written: string | null;
  /** True: the cgroup was created since the last pass. */
  readonly isNew?: boolean;
  /** The text that the pass before decided. */
  readonly lastDecided?: string | undefined;
  /** v1: the quota's period. */
  readonly period?: string | undefined;
  /** The shares from which the wanted weight was computed. */
  readonly shares?: number | undefined;
}

export interface DriftContext {
  readonly version: 1 | 2;
  readonly pageSize: number;
  readonly cpu: CpuRules;
}

export interface Drift {
  readonly path: string;
  readonly file: string;
  readonly wanted: string;
  readonly actual: string;
  readonly written: string | null;
  readonly cause: DriftCause;
  readonly message: string;
}

/** Why a file's text differs from the wanted one; null if it is equal, or only spelled differently. */
export function classifyDrift(drift: DriftCase, context: DriftContext): Drift | null {
  const { path, file, wanted, actual, written } = drift;
  if (wanted.trim() === actual.trim()) return null;
  const isLinear = drift.shares !== undefined && wanted.trim() === String(context.cpu.linear(drift.shares));
  const quoted = (text: string): string => {
    const milliCpu = milliCpuText({ file, text, period: drift.period, isLinear }, context.cpu);
    return milliCpu === undefined ? `\`${text}\`` : `\`${text}\` (${milliCpu})`;
  };
  const found = (cause: DriftCause, message: string): Drift => ({
    path,
    file,
    wanted,
    actual,
    written,
    cause,
    message,
  });
  if (isSame(drift, wanted, actual, context)) {
    if (!isRounded(drift, context)) return null;
    return found("page_rounding", `the kernel rounds \`${wanted}\` down to \`${actual}\``);
  }
  if (isSystemdRounding(drift, context)) {
    return found("systemd_rounding", `systemd rounds ${quoted(wanted)} up to whole 10 ms a second: ${quoted(actual)}`);
  }
  const rule = weightRule(drift, context);
  if (rule !== null) {
    return found(
      "weight_formula",
      `\`${actual}\` is the ${rule} weight of ${drift.shares} shares, wanted is \`${wanted}\``,
    );
  }
  if (written === null && drift.isNew === true)
    return found("new_cgroup", `${quoted(actual)} is what the cgroup was made with, wanted is ${quoted(wanted)}`);
  if (written === null && drift.lastDecided !== undefined && isSame(drift, drift.lastDecided, actual, context))
    return found("outdated", `${quoted(actual)} is what an earlier decision wanted, now it is ${quoted(wanted)}`);
  if (written === null)
    return found("never_written", `${quoted(actual)} is not from us, we never wrote here, wanted is ${quoted(wanted)}`);
  if (isSame(drift, written, actual, context)) {
    return found("ours", `${quoted(actual)} is what an earlier decision wanted, now it is ${quoted(wanted)}`);
  }
  return found(
    "other_writer",
    `we wrote ${quoted(written)}, another writer made it ${quoted(actual)}, wanted is ${quoted(wanted)}`,
  );
}

function isSame({ file }: DriftCase, a: string, b: string, context: DriftContext): boolean {
  const rule = ruleOf(context.version, file);
  return rule === null ? a.trim() === b.trim() : sameValue(rule, a, b, context.pageSize);
}

function isRounded({ file, wanted }: DriftCase, context: DriftContext): boolean {
  const rule = ruleOf(context.version, file);
  if (rule?.kind !== "amount" || !/^\d+$/.test(wanted.trim())) return false;
  const kept = amountOf(rule, wanted, context.pageSize);
  return kept !== null && kept < BigInt(wanted.trim());
}

function isSystemdRounding(drift: DriftCase, context: DriftContext): boolean {
  const wanted = bandwidthOf(drift, drift.wanted, context.version);
  const actual = bandwidthOf(drift, drift.actual, context.version);
  return wanted !== null && actual !== null && sameBandwidth(roundedBySystemd(wanted), actual);
}

function bandwidthOf({ file, period }: DriftCase, text: string, version: 1 | 2): Bandwidth | null {
  if (version === 2) return file === "cpu.max" ? bandwidthV2(text) : null;
  return file === "cpu.cfs_quota_us" ? bandwidthV1(text, period ?? String(KERNEL_CFS_PERIOD)) : null;
}

/** The name of the formula that gives `actual` where the other one gives `wanted`; null if neither fits. */
function weightRule({ file, wanted, actual, shares }: DriftCase, { cpu }: DriftContext): "linear" | "curve" | null {
  if (file !== "cpu.weight" || shares === undefined) return null;
  const linear = String(cpu.linear(shares));
  const curve = String(cpu.curve(shares));
  if (wanted.trim() === linear && actual.trim() === curve) return "curve";
  if (wanted.trim() === curve && actual.trim() === linear) return "linear";
  return null;
}

/** The last value that we wrote to a file, from the journal; null: we never wrote it. */
type LastWritten = (path: string, file: string) => string | null;

/**
 * Every file of every existing cgroup of the decision that differs from the wanted text, with the cause. `last`: the cgroups
 * after the last pass; null: there was none, so nothing counts as new.
 */
export function findDrift(
  decision: CgroupsDecision,
  state: CgroupState,
  written: LastWritten,
  cpu: CpuRules,
  last: LastPassCgroups | null = null,
): readonly Drift[] {
  const shares = new Map(decision.cgroups.map((cgroup) => [cgroup.path, cgroup.values.cpuShares]));
  const context: DriftContext = { version: state.version, pageSize: state.pageSize, cpu };
  const found: Drift[] = [];
  for (const { path, observed, desired } of targetsOf(decision, state, "existing").targets.values()) {
    for (const [file, text] of desired) {
      const actual = observed?.files[file];
      if (observed === null || actual === undefined || actual.trim() === text) continue;
      const known = { path, file, wanted: text, actual, written: written(path, file), shares: shares.get(path) };
      const then = { isNew: isNewSince(last, observed, file), lastDecided: lastDecidedValue(last, path, file) };
      const drift = classifyDrift({ ...known, ...then, period: observed.files["cpu.cfs_period_us"] }, context);
      if (drift !== null) found.push(drift);
    }
  }
  return found;
}

/** A file whose text differs from the wanted one. */
export interface Difference {
  readonly path: string;
  readonly file: string;
  /** The actual value; null: the file does not exist, or cannot be read. */
  readonly actual: string | null;
  /** The cause; null with `actual`. */
  readonly cause: DriftCause | null;
}

/** All files of the decision that differ: those of the drift, and unreadable ones, only of running containers. */
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
 * Files of containers that are left unchanged, as `path file`: weights that the runtime computed from the same shares by
 * its own formula, and would restore at every update.
 */
export function leftToRuntime(decision: CgroupsDecision, drift: readonly Drift[]): ReadonlySet<string> {
  const weights = drift.filter(({ cause }) => cause === "weight_formula");
  if (weights.length === 0) return new Set();
  const containers = new Set(decision.cgroups.filter(({ level }) => level === "container").map(({ path }) => path));
  return new Set(weights.filter(({ path }) => containers.has(path)).map(({ path, file }) => `${path} ${file}`));
}
