import type { FileRule } from "./cgroup-files.ts";
import { parseCpuset } from "./cpuset.ts";

/** "No limit", however a file spells it: `max`, -1, or the largest number its counter holds. */
export const UNLIMITED = 1n << 63n;
const INT64_MAX = UNLIMITED - 1n;
const DEFAULT_PERIOD = 100_000n;
const MIN_SHARES = 2n;
const MAX_SHARES = 262_144n;

const whole = (text: string): bigint | null => (/^-?\d{1,20}$/.test(text) ? BigInt(text) : null);

/** The amount that the kernel keeps of a text: rounded down to the file's unit. Null when it is no amount. */
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

/** cgroup v2: `cpu.max`, "quota period"; without a period the kernel keeps the one it has. */
export function bandwidthV2(text: string, keptPeriod: bigint = DEFAULT_PERIOD): Bandwidth | null {
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

/** Whether two texts of one file mean the same to the kernel. `wanted` is ours, `found` is what the file holds. */
export function sameValue(rule: FileRule, wanted: string, found: string, pageSize: number): boolean {
  const equal = (a: bigint | null, b: bigint | null): boolean => a !== null && a === b;
  switch (rule.kind) {
    case "amount":
      return equal(amountOf(rule, wanted, pageSize), amountOf(rule, found, pageSize));
    case "share":
      return equal(shareOf(rule, wanted), shareOf(rule, found));
    case "quota":
      return equal(quotaOf(wanted), quotaOf(found));
    case "period":
      return equal(whole(wanted.trim()), whole(found.trim()));
    case "cpuset":
      return equal(parseCpuset(wanted), parseCpuset(found));
    case "cpu_max": {
      const b = bandwidthV2(found);
      const a = bandwidthV2(wanted, b?.period);
      return a !== null && b !== null && sameBandwidth(a, b);
    }
    case "text":
      return wanted.trim() === found.trim();
  }
}

function quotaOf(text: string): bigint | null {
  const n = whole(text.trim());
  return n !== null && n < 0n ? UNLIMITED : n;
}

/** Whether a text is one that this file can take at all. */
export function isValue(rule: FileRule, text: string): boolean {
  return text.length <= 4095 && !/[\n\0]/.test(text) && sameValue(rule, text, text, 4096);
}
