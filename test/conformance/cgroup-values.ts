import { pageSizeUnit } from "../../api/decide/hugepages.ts";
import type { CgroupValues } from "../../api/model/cgroups.ts";

/** The values of a cgroup as the kubelet's ResourceConfig. */
export const resourceConfig = (values: CgroupValues): Record<string, unknown> => ({
  memory: values.memory ?? null,
  cpuShares: values.cpuShares ?? null,
  cpuQuota: values.cpuQuota ?? null,
  cpuPeriod: values.cpuPeriod ?? null,
  ...(values.hugePageLimit === undefined ? {} : { hugePageLimit: values.hugePageLimit }),
});

/**
 * The values in CRI's form: an absent value is 0, and page sizes have the kernel's names. `pages`: limits of 0 are
 * included.
 */
export function forRuntime(values: CgroupValues, pages = false): Record<string, unknown> {
  const hugepages = Object.entries(values.hugePageLimit ?? {}).filter(([, limit]) => pages || limit !== 0);
  return {
    cpuPeriod: values.cpuPeriod ?? 0,
    cpuQuota: values.cpuQuota ?? 0,
    cpuShares: values.cpuShares,
    hugepageLimits: Object.fromEntries(hugepages.map(([size, limit]) => [pageSizeUnit(Number(size)), limit])),
    memoryLimitBytes: values.memory ?? 0,
    oomScoreAdj: values.oomScoreAdj,
  };
}
