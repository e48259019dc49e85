import { type FileRule, fixedRules, limitOf, ruleOf } from "./cgroup-files.ts";
import type { CgroupState } from "./state.ts";
import { type Target, textBefore } from "./targets.ts";
import {
  amountOf,
  type Bandwidth,
  bandwidthV1,
  bandwidthV2,
  compareBandwidth,
  roundedBySystemd,
  sameBandwidth,
  sameValue,
  UNLIMITED,
} from "./values.ts";

export interface Write {
  readonly file: string;
  readonly to: string;
}

/** One limit of one cgroup that must change; cpusets are handled separately (plan.ts). */
export interface Change {
  readonly path: string;
  readonly limit: string;
  readonly way: "set" | "widen" | "narrow";
  readonly writes: readonly Write[];
  /** Changes of one group are done together or put back together. */
  readonly group: string | null;
}

/** Differences between a target and the current state, in the order in which the files may be widened. */
export function changesOf(target: Target, state: CgroupState, driver: "cgroupfs" | "systemd"): readonly Change[] {
  const changes: Change[] = [];
  const done = new Set<string>();
  for (const rule of rulesOf(target, state.version)) {
    const limit = limitOf(rule.file);
    if (rule.kind === "cpuset" || done.has(limit)) continue;
    done.add(limit);
    const change = isBandwidth(rule)
      ? bandwidthChange(target, state, limit, driver)
      : plainChange(target, state, rule, limit);
    if (change !== null) changes.push(change);
  }
  return groupMemoryPair(changes);
}

const isBandwidth = (rule: FileRule): boolean => ["quota", "period", "cpu_max"].includes(rule.kind);

/** The desired files in the table's order, huge pages last. */
function rulesOf(target: Target, version: 1 | 2): FileRule[] {
  const fixed = fixedRules(version).filter((rule) => target.desired.has(rule.file));
  const rest = [...target.desired.keys()].filter((file) => file.startsWith("hugetlb."));
  return [...fixed, ...rest.flatMap((file) => ruleOf(version, file) ?? [])];
}

function plainChange(target: Target, state: CgroupState, rule: FileRule, limit: string): Change | null {
  const to = target.desired.get(rule.file) ?? "";
  const before = textBefore(state, target.path, rule);
  if (sameValue(rule, to, before, state.pageSize)) return null;
  return {
    path: target.path,
    limit,
    way: wayOf(rule, before, to, state.pageSize),
    writes: [{ file: rule.file, to }],
    group: null,
  };
}

function wayOf(rule: FileRule, before: string, to: string, pageSize: number): Change["way"] {
  if (rule.kind !== "amount") return "set";
  const a = amountOf(rule, before, pageSize);
  const b = amountOf(rule, to, pageSize);
  return a === null || b === null ? "set" : b > a ? "widen" : "narrow";
}

function bandwidthChange(
  target: Target,
  state: CgroupState,
  limit: string,
  driver: "cgroupfs" | "systemd",
): Change | null {
  const { before, desired } = state.version === 1 ? readV1(target, state) : readV2(target, state);
  if (before === null || desired === null || sameBandwidth(before, desired)) return null;
  // systemd would round our exact value again at its next reload, so its value stays
  if (driver === "systemd" && sameBandwidth(before, roundedBySystemd(desired))) return null;
  const writes: readonly Write[] =
    state.version === 1 ? bandwidthWrites(before, desired) : [{ file: limit, to: target.desired.get(limit) ?? "" }];
  const way = compareBandwidth(desired, before) < 0 ? "narrow" : "widen";
  return { path: target.path, limit, way, writes, group: writes.length > 1 ? `${target.path} ${limit}` : null };
}

interface Pair {
  readonly before: Bandwidth | null;
  readonly desired: Bandwidth | null;
}

function readV1(target: Target, state: CgroupState): Pair {
  const now = (file: string): string => textBefore(state, target.path, ruleNamed(file));
  const quota = now("cpu.cfs_quota_us");
  const period = now("cpu.cfs_period_us");
  return {
    before: bandwidthV1(quota, period),
    desired: bandwidthV1(
      target.desired.get("cpu.cfs_quota_us") ?? quota,
      target.desired.get("cpu.cfs_period_us") ?? period,
    ),
  };
}

function readV2(target: Target, state: CgroupState): Pair {
  const before = bandwidthV2(textBefore(state, target.path, ruleNamed("cpu.max", 2)));
  return { before, desired: bandwidthV2(target.desired.get("cpu.max") ?? "", before?.period) };
}

function ruleNamed(file: string, version: 1 | 2 = 1): FileRule {
  const rule = ruleOf(version, file);
  if (rule === null) throw new Error(`no rule for ${file}`);
  return rule;
}

const MEMORY_PAIR = ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"];

/** v1: the memory limit and memsw depend on each other, so if both go the same way they share a group. */
function groupMemoryPair(changes: readonly Change[]): readonly Change[] {
  const pair = changes.filter((change) => MEMORY_PAIR.includes(change.limit));
  if (pair.length < 2 || pair[0]?.way !== pair[1]?.way) return changes;
  return changes.map((change) => (pair.includes(change) ? { ...change, group: `${change.path} memory` } : change));
}

interface BandwidthWrite {
  readonly file: "cpu.cfs_quota_us" | "cpu.cfs_period_us";
  readonly to: string;
}

/**
 * cgroup v1: the writes that take quota and period from one value to another. The kernel checks each single write
 * against parent and children, so the state between two writes must lie between the old and the new bandwidth.
 * If neither order allows that, the quota is removed first: none means "as the parent", which is always accepted.
 */
export function bandwidthWrites(before: Bandwidth, desired: Bandwidth): readonly BandwidthWrite[] {
  const quota: BandwidthWrite = { file: "cpu.cfs_quota_us", to: quotaText(desired.quota) };
  const period: BandwidthWrite = { file: "cpu.cfs_period_us", to: desired.period.toString() };
  const sameQuota = before.quota === desired.quota;
  if (before.period === desired.period) return sameQuota ? [] : [quota];
  if (sameQuota) return [period];
  if (before.quota === UNLIMITED) return [period, quota];
  if (desired.quota === UNLIMITED) return [quota, period];
  if (isBetween({ quota: desired.quota, period: before.period }, before, desired)) return [quota, period];
  if (isBetween({ quota: before.quota, period: desired.period }, before, desired)) return [period, quota];
  return [{ file: "cpu.cfs_quota_us", to: quotaText(UNLIMITED) }, period, quota];
}

function isBetween(middle: Bandwidth, a: Bandwidth, b: Bandwidth): boolean {
  const [low, high] = compareBandwidth(a, b) <= 0 ? [a, b] : [b, a];
  return compareBandwidth(low, middle) <= 0 && compareBandwidth(middle, high) <= 0;
}

const quotaText = (quota: bigint): string => (quota === UNLIMITED ? "-1" : quota.toString());
