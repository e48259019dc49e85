import { ruleOf } from "./cgroup-files.ts";
import { type CpuRules, milliCpuText } from "./milli-cpu.ts";
import { roundedBySystemd } from "./systemd-rounding.ts";
import { amountOf, type Bandwidth, bandwidthV1, bandwidthV2, sameBandwidth, sameValue } from "./values.ts";

/** Causes of a difference that needs no repair. */
export const HARMLESS_CAUSES = ["page_rounding", "systemd_rounding", "weight_formula"] as const;
export type HarmlessCause = (typeof HARMLESS_CAUSES)[number];
/** Causes of a difference that nobody made: what is wanted has changed, or was never set. */
const PENDING_CAUSES = ["ours", "outdated", "new_cgroup"] as const;
/**
 * `ours` is our own earlier value, `outdated` what the pass before wanted and another wrote, such as a container's runtime
 * or a kubelet; `new_cgroup` is what a cgroup was made with since that pass. `never_written` is what the kernel or the
 * cgroup's maker left, or somebody changed; `other_writer` is somebody who changed what we wrote.
 */
export const DRIFT_CAUSES = [...HARMLESS_CAUSES, ...PENDING_CAUSES, "never_written", "other_writer"] as const;
export type DriftCause = (typeof DRIFT_CAUSES)[number];

/** Undefined: it is to be put right. */
export const harmlessCause = ({ cause }: { readonly cause: DriftCause | null }): HarmlessCause | undefined =>
  HARMLESS_CAUSES.find((one) => one === cause);

/** Causes that are told: a value that was right, or that we wrote, and is another now. The rest is the plan's next step. */
export const isTold = ({ cause }: Drift): boolean => !PENDING_CAUSES.some((one) => one === cause);
/** Causes that another than this actuator is behind, and that no rounding explains. */
export const isForeign = ({ cause }: Drift): boolean => cause === "never_written" || cause === "other_writer";

export interface DriftCase {
  readonly path: string;
  readonly file: string;
  readonly wanted: string;
  readonly actual: string;
  /** The last value that we wrote, from the journal. */
  readonly written: string | null;
  /** Its cgroup was made since the pass before. */
  readonly isNew?: boolean;
  /** What the pass before wanted. */
  readonly wantedThen?: string | undefined;
  /** v1: the period that goes with a quota. */
  readonly period?: string | undefined;
  /** The shares that a wanted weight was made of. */
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

/** Why a file does not hold, letter by letter, what is wanted; null when it does, or differs in spelling only. */
export function classifyDrift(drift: DriftCase, context: DriftContext): Drift | null {
  const { path, file, wanted, actual, written } = drift;
  if (wanted.trim() === actual.trim()) return null;
  const isLinear = drift.shares !== undefined && wanted.trim() === String(context.cpu.linear(drift.shares));
  const told = (text: string): string => {
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
    return found("systemd_rounding", `systemd rounds ${told(wanted)} up to whole 10 ms a second: ${told(actual)}`);
  }
  const rule = weightRule(drift, context);
  if (rule !== null) {
    return found(
      "weight_formula",
      `\`${actual}\` is the ${rule} weight of ${drift.shares} shares, wanted is \`${wanted}\``,
    );
  }
  if (written === null && drift.isNew === true)
    return found("new_cgroup", `${told(actual)} is what the cgroup was made with, wanted is ${told(wanted)}`);
  if (written === null && drift.wantedThen !== undefined && isSame(drift, drift.wantedThen, actual, context))
    return found("outdated", `${told(actual)} is what an earlier decision wanted, now it is ${told(wanted)}`);
  if (written === null)
    return found("never_written", `${told(actual)} is not from us, we never wrote here, wanted is ${told(wanted)}`);
  if (isSame(drift, written, actual, context)) {
    return found("ours", `${told(actual)} is what an earlier decision wanted, now it is ${told(wanted)}`);
  }
  return found(
    "other_writer",
    `we wrote ${told(written)}, another writer made it ${told(actual)}, wanted is ${told(wanted)}`,
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
  return file === "cpu.cfs_quota_us" ? bandwidthV1(text, period ?? "100000") : null;
}

/** The name of the formula that gives `actual` where the other one gives `wanted`; null when neither pair fits. */
function weightRule({ file, wanted, actual, shares }: DriftCase, { cpu }: DriftContext): "linear" | "curve" | null {
  if (file !== "cpu.weight" || shares === undefined) return null;
  const linear = String(cpu.linear(shares));
  const curve = String(cpu.curve(shares));
  if (wanted.trim() === linear && actual.trim() === curve) return "curve";
  if (wanted.trim() === curve && actual.trim() === linear) return "linear";
  return null;
}
