import { pageSizeUnit } from "../../api/decide/hugepages.ts";
import type { CgroupValues } from "../../api/model/cgroups.ts";

/** The kubelet's ResourceConfig of a cgroup of its own. */
export const resourceConfig = (values: CgroupValues): Record<string, unknown> => ({
  memory: values.memory ?? null,
  cpuShares: values.cpuShares ?? null,
  cpuQuota: values.cpuQuota ?? null,
  cpuPeriod: values.cpuPeriod ?? null,
  ...(values.hugePageLimit === undefined ? {} : { hugePageLimit: values.hugePageLimit }),
});

/** CRI's form: what is not set is 0, and page sizes go by the kernel's names. `pages`: those that are 0 are told too. */
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
