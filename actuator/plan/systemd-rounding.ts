import { type Bandwidth, UNLIMITED } from "./values.ts";

const MICROS_PER_SECOND = 1_000_000n;
const STEP = 10_000n;

/**
 * What systemd makes of a quota: CPUQuotaPerSecUSec is rounded up to whole 10 ms, so 41700 of 100000 becomes 42000.
 * opencontainers/cgroups: addCPUQuota.
 */
export function roundedBySystemd({ quota, period }: Bandwidth): Bandwidth {
  if (quota === UNLIMITED) return { quota, period };
  const perSecond = (quota * MICROS_PER_SECOND) / period;
  const rounded = ((perSecond + STEP - 1n) / STEP) * STEP;
  return { quota: (rounded * period) / MICROS_PER_SECOND, period };
}
