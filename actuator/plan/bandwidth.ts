import { type Bandwidth, compareBandwidth, UNLIMITED } from "./values.ts";

export interface BandwidthWrite {
  readonly file: "cpu.cfs_quota_us" | "cpu.cfs_period_us";
  readonly to: string;
}

/**
 * cgroup v1: the writes that take quota and period from one value to another. The kernel tests each single write
 * against parent and children, so what stands between two writes must lie between the old and the new bandwidth.
 * Where neither order gives that, the quota is lifted first: none means "as the parent", which is always accepted.
 */
export function bandwidthWrites(before: Bandwidth, wanted: Bandwidth): readonly BandwidthWrite[] {
  const quota: BandwidthWrite = { file: "cpu.cfs_quota_us", to: quotaText(wanted.quota) };
  const period: BandwidthWrite = { file: "cpu.cfs_period_us", to: wanted.period.toString() };
  const sameQuota = before.quota === wanted.quota;
  if (before.period === wanted.period) return sameQuota ? [] : [quota];
  if (sameQuota) return [period];
  if (before.quota === UNLIMITED) return [period, quota];
  if (wanted.quota === UNLIMITED) return [quota, period];
  if (isBetween({ quota: wanted.quota, period: before.period }, before, wanted)) return [quota, period];
  if (isBetween({ quota: before.quota, period: wanted.period }, before, wanted)) return [period, quota];
  return [{ file: "cpu.cfs_quota_us", to: quotaText(UNLIMITED) }, period, quota];
}

function isBetween(middle: Bandwidth, a: Bandwidth, b: Bandwidth): boolean {
  const [low, high] = compareBandwidth(a, b) <= 0 ? [a, b] : [b, a];
  return compareBandwidth(low, middle) <= 0 && compareBandwidth(middle, high) <= 0;
}

export const quotaText = (quota: bigint): string => (quota === UNLIMITED ? "-1" : quota.toString());
