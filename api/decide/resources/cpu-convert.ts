import { err, ok, type Result } from "../../base/result.ts";
import {
  type CpuShares,
  type CpuWeight,
  cpuShares,
  cpuWeight,
  type Micros,
  micros,
  quotient,
} from "../../model/units.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { goDurationText } from "../go/strconv.ts";

export const CUSTOM_PERIOD = "CustomCPUCFSQuotaPeriod";

/** kubelet 1.36: ValidateKubeletConfiguration. */
export function cfsPeriod(config: EffectiveConfiguration): Result<Micros, string> {
  const { cpuCFSQuotaPeriod: period, profile } = config;
  const fault = (text: string): Result<never, string> =>
    err(
      `invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${goDurationText(BigInt(period.nanos))}} ${text}`,
    );
  if (!gateOn(config, CUSTOM_PERIOD) && period.nanos !== profile.configuration.cpuCFSQuotaPeriod.nanos)
    return fault(`requires feature gate ${CUSTOM_PERIOD}`);
  if (period.nanos >= 1e6 && period.nanos <= 1e9) return ok(micros(period.micros));
  return fault("must be between 1ms and 1sec, inclusive");
}

const DEFAULT_PERIOD = micros(100_000);
/**
 * The period that a quota is counted over. `isCustom`: the gate CustomCPUCFSQuotaPeriod; without it, it is 100 ms whatever is
 * configured. kubelet 1.35: MilliCPUToQuota.
 */
export const quotaPeriod = (period: Micros, isCustom: boolean): Micros => (isCustom ? period : DEFAULT_PERIOD);

const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
const MIN_QUOTA = 1000;
export const BEST_EFFORT_SHARES = cpuShares(MIN_SHARES);
/** The kernel's "no quota". */
export const NO_QUOTA = micros(-1);

/** cpu.shares of a request in thousandths of a CPU. kubelet 1.36: MilliCPUToShares. */
export function milliCpuToShares(milli: number): CpuShares {
  if (milli === 0) return BEST_EFFORT_SHARES;
  return cpuShares(Math.min(MAX_SHARES, Math.max(MIN_SHARES, quotient(milli * 1024, 1000))));
}

/** CFS quota of a limit in thousandths of a CPU; 0 means none. At least 1000 us. kubelet 1.36: MilliCPUToQuota. */
export function milliCpuToQuota(milli: number, period: number): Micros {
  if (milli === 0) return micros(0);
  return micros(Math.max(MIN_QUOTA, quotient(milli * period, 1000)));
}

/** cpu.weight by the straight line, which the kubelet uses for its own cgroups. kubelet 1.36: getCPUWeight. */
export function linearWeight(shares: number): CpuWeight {
  if (shares >= MAX_SHARES) return cpuWeight(10_000);
  return cpuWeight(1 + quotient((shares - 2) * 9999, 262_142));
}

/** cpu.weight by the curve, which runtimes since runc 1.3.2 and crun 1.23 use for containers. opencontainers/cgroups 0.0.6. */
export function curveWeight(shares: number): CpuWeight {
  if (shares === 0) return cpuWeight(0);
  if (shares <= MIN_SHARES) return cpuWeight(1);
  if (shares >= MAX_SHARES) return cpuWeight(10_000);
  const l = Math.log2(shares);
  return cpuWeight(Math.ceil(10 ** ((l * l + 125 * l) / 612 - 7 / 34)));
}

/**
 * The request that corresponds to a weight, by the inverse of the line. kubelet 1.36: CPUWeightToShares,
 * SharesToMilliCPU.
 */
export function weightToMilliCpu(weight: number): number {
  return sharesToMilliCpu(quotient((weight - 1) * 262_142, 9999) + 2);
}
/** kubelet 1.36: SharesToMilliCPU. */
export const sharesToMilliCpu = (shares: number): number => (shares === 0 ? 0 : Math.ceil((shares * 1000) / 1024));
/** kubelet 1.36: QuotaToMilliCPU. */
export const quotaToMilliCpu = (quota: number, period: number): number =>
  quota === -1 ? 0 : quotient(quota * 1000, period);
