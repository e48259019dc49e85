import { KERNEL_CFS_PERIOD } from "../../api/model/units.ts";
import type { FileRule } from "./cgroup-files.ts";

const MICROS_PER_SECOND = 1_000_000n;
const STEP = 10_000n;

/**
 * A quota as systemd rounds it: CPUQuotaPerSecUSec is rounded up to whole 10 ms, so 41700 of 100000 becomes 42000.
 * opencontainers/cgroups: addCPUQuota.
 */
export function roundedBySystemd({ quota, period }: Bandwidth): Bandwidth {
  if (quota === UNLIMITED) return { quota, period };
  const perSecond = (quota * MICROS_PER_SECOND) / period;
  const rounded = ((perSecond + STEP - 1n) / STEP) * STEP;
  return { quota: (rounded * period) / MICROS_PER_SECOND, period };
}

/** A set of CPUs or memory nodes: bit n is member n. */
export type CpuSet = bigint;
export const NONE: CpuSet = 0n;

/** Higher than any kernel's limit (NR_CPUS is at most 8192). */
const MAX_ID = 8191;
const PART = /^(\d{1,5})(?:-(\d{1,5}))?$/;

/** `0-3,7`; an empty text is the empty set; null when it is no list. */
export function parseCpuset(text: string): CpuSet | null {
  const trimmed = text.trim();
  if (trimmed === "") return NONE;
  let set = NONE;
  for (const part of trimmed.split(",")) {
    const found = PART.exec(part.trim());
    if (found === null) return null;
    const first = Number(found[1]);
    const last = Number(found[2] ?? found[1]);
    if (last < first || last > MAX_ID) return null;
    set |= ((1n << BigInt(last - first + 1)) - 1n) << BigInt(first);
  }
  return set;
}

/** A set as the kernel prints it: ascending, ranges with a dash. */
export function formatCpuset(set: CpuSet): string {
  const parts: string[] = [];
  let start = -1;
  const bits = set.toString(2);
  for (let id = 0; id <= bits.length; id++) {
    const inside = bits[bits.length - 1 - id] === "1";
    if (inside && start < 0) start = id;
    if (inside || start < 0) continue;
    parts.push(start === id - 1 ? `${start}` : `${start}-${id - 1}`);
    start = -1;
  }
  return parts.join(",");
}

export const overlaps = (a: CpuSet, b: CpuSet): boolean => (a & b) !== NONE;
export const without = (a: CpuSet, b: CpuSet): CpuSet => a & ~b;

/** "No limit" in any spelling: `max`, -1, or the largest number of the file's counter. */
export const UNLIMITED = 1n << 63n;
const INT64_MAX = UNLIMITED - 1n;
const MIN_SHARES = 2n;
const MAX_SHARES = 262_144n;

const whole = (text: string): bigint | null => (/^-?\d{1,20}$/.test(text) ? BigInt(text) : null);

/** The amount that the kernel stores for a text: rounded down to the file's unit. Null: the text is no amount. */
export function amountOf(rule: FileRule, text: string, pageSize: number): bigint | null {
  const trimmed = text.trim();
  if (trimmed === "max") return UNLIMITED;
  const n = whole(trimmed);
  if (n === null) return null;
  if (n < 0n) return UNLIMITED;
  const page = BigInt(pageSize);
  const unit = rule.unit === "page" ? page : rule.unit === "one" ? 1n : rule.unit;
  const most = rule.unit === "one" ? INT64_MAX : ((INT64_MAX / page) * page) / unit;
  return n >= (rule.unit === "one" ? most : most * unit) ? UNLIMITED : n - (n % unit);
}

/** cpu.shares are clamped by the kernel; a weight out of range is refused by it. */
export function shareOf(rule: FileRule, text: string): bigint | null {
  const n = whole(text.trim());
  if (n === null || rule.file !== "cpu.shares") return n;
  return n < MIN_SHARES ? MIN_SHARES : n > MAX_SHARES ? MAX_SHARES : n;
}

/** CPU time a period may use, in microseconds. */
export interface Bandwidth {
  /** UNLIMITED: no quota. */
  readonly quota: bigint;
  readonly period: bigint;
}

/** cgroup v1: two files. */
export function bandwidthV1(quota: string, period: string): Bandwidth | null {
  const q = whole(quota.trim());
  const p = whole(period.trim());
  if (q === null || p === null || p <= 0n) return null;
  return { quota: q < 0n ? UNLIMITED : q, period: p };
}

/** cgroup v2: `cpu.max`, "quota period"; without a period the kernel keeps the current one. */
export function bandwidthV2(text: string, keptPeriod: bigint = BigInt(KERNEL_CFS_PERIOD)): Bandwidth | null {
  const [quota = "", period, ...rest] = text.trim().split(/\s+/);
  const q = quota === "max" ? UNLIMITED : whole(quota);
  const p = period === undefined ? keptPeriod : whole(period);
  if (q === null || p === null || q < 0n || p <= 0n || rest.length > 0) return null;
  return { quota: q, period: p };
}

/** Negative when a allows less CPU than b, zero when the same, positive when more. Exact. */
export function compareBandwidth(a: Bandwidth, b: Bandwidth): number {
  if (a.quota === UNLIMITED || b.quota === UNLIMITED) return sign(a.quota, b.quota, UNLIMITED);
  const left = a.quota * b.period;
  const right = b.quota * a.period;
  return left < right ? -1 : left > right ? 1 : 0;
}
const sign = (a: bigint, b: bigint, top: bigint): number => (a === b ? 0 : a === top ? 1 : -1);

export const sameBandwidth = (a: Bandwidth, b: Bandwidth): boolean => a.quota === b.quota && a.period === b.period;

/** Whether two texts of a file mean the same to the kernel. `desired`: ours; `found`: the file's. */
export function sameValue(rule: FileRule, desired: string, found: string, pageSize: number): boolean {
  const equal = (a: bigint | null, b: bigint | null): boolean => a !== null && a === b;
  switch (rule.kind) {
    case "amount":
      return equal(amountOf(rule, desired, pageSize), amountOf(rule, found, pageSize));
    case "share":
      return equal(shareOf(rule, desired), shareOf(rule, found));
    case "quota":
      return equal(quotaOf(desired), quotaOf(found));
    case "period":
      return equal(whole(desired.trim()), whole(found.trim()));
    case "cpuset":
      return equal(parseCpuset(desired), parseCpuset(found));
    case "cpu_max": {
      const b = bandwidthV2(found);
      const a = bandwidthV2(desired, b?.period);
      return a !== null && b !== null && sameBandwidth(a, b);
    }
    case "text":
      return desired.trim() === found.trim();
  }
}

function quotaOf(text: string): bigint | null {
  const n = whole(text.trim());
  return n !== null && n < 0n ? UNLIMITED : n;
}

/** Whether the file accepts the text at all. */
export function isValue(rule: FileRule, text: string): boolean {
  return text.length <= 4095 && !/[\n\0]/.test(text) && sameValue(rule, text, text, 4096);
}

/** The kubelet's and the runtimes' conversions of CPU values, handed in because the plan knows no policy. */
export interface CpuRules {
  /** cpu.weight of shares: the kubelet's line and the runtimes' curve. */
  linear(shares: number): number;
  curve(shares: number): number;
  /** Back to thousandths of a CPU; a weight by the line. */
  sharesToMilliCpu(shares: number): number;
  weightToMilliCpu(weight: number): number;
  quotaToMilliCpu(quota: number, period: number): number;
}

interface CpuText {
  readonly file: string;
  readonly text: string;
  /** v1: the quota's period. */
  readonly period?: string | undefined;
  /** True: the weight is a linear function of shares, which can be inverted; the curve cannot. */
  readonly isLinear: boolean;
}

/** `76m` for `77` shares: a CPU value in thousandths of a CPU; undefined for any other file, and for no limit. */
export function milliCpuText({ file, text, period, isLinear }: CpuText, rules: CpuRules): string | undefined {
  if (file === "cpu.cfs_quota_us" || file === "cpu.max") {
    const bandwidth = file === "cpu.max" ? bandwidthV2(text) : bandwidthV1(text, period ?? String(KERNEL_CFS_PERIOD));
    if (bandwidth === null || bandwidth.quota === UNLIMITED) return undefined;
    return `${rules.quotaToMilliCpu(Number(bandwidth.quota), Number(bandwidth.period))}m`;
  }
  const number = /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined;
  if (number === undefined) return undefined;
  if (file === "cpu.shares") return `${rules.sharesToMilliCpu(number)}m`;
  return file === "cpu.weight" && isLinear ? `${rules.weightToMilliCpu(number)}m` : undefined;
}
