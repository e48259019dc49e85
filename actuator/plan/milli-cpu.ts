import { bandwidthV1, bandwidthV2, UNLIMITED } from "./values.ts";

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

export interface CpuText {
  readonly file: string;
  readonly text: string;
  /** v1: the period that goes with a quota. */
  readonly period?: string | undefined;
  /** Whether the cgroup's weight is by the line; the curve has no way back. */
  readonly isLinear: boolean;
}

/** `76m` for `77` shares: what a CPU value means in thousandths of a CPU; undefined for any other file, and for no limit. */
export function milliCpuText({ file, text, period, isLinear }: CpuText, rules: CpuRules): string | undefined {
  if (file === "cpu.cfs_quota_us" || file === "cpu.max") {
    const bandwidth = file === "cpu.max" ? bandwidthV2(text) : bandwidthV1(text, period ?? "100000");
    if (bandwidth === null || bandwidth.quota === UNLIMITED) return undefined;
    return `${rules.quotaToMilliCpu(Number(bandwidth.quota), Number(bandwidth.period))}m`;
  }
  const number = /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined;
  if (number === undefined) return undefined;
  if (file === "cpu.shares") return `${rules.sharesToMilliCpu(number)}m`;
  return file === "cpu.weight" && isLinear ? `${rules.weightToMilliCpu(number)}m` : undefined;
}
