import { Lru, perObject } from "../../base/cache.ts";
import type { CgroupFile, CgroupPlan, CgroupValues } from "../../model/cgroups.ts";
import { type Bytes, KERNEL_CFS_PERIOD, NO_PAGE_LIMIT } from "../../model/units.ts";
import { pageSizeUnit } from "../hugepages.ts";

/** The files of one cgroup with the exact text to write, in an order in which they can be written. */
export const filesOf = (values: CgroupValues, version: 1 | 2): readonly CgroupFile[] =>
  version === 1 ? v1(values) : v2(values);

type ValuesAndFiles = Pick<CgroupPlan, "values" | "files">;
/**
 * One object for equal values, with their files, for plans that are cached: the pods of a fleet are made of few templates, and their
 * cgroups would be a fifth of the objects in memory.
 */
export const sharedValues = ({ values, files }: ValuesAndFiles, version: 1 | 2): ValuesAndFiles =>
  shared.getOrInsert(JSON.stringify([version, values]), { values, files });
/** The maximum number of different values that are shared. */
const SHARED = 8192;
const shared = new Lru<string, ValuesAndFiles>(SHARED);

type Files = CgroupFile[];
function put(files: Files, path: string, value: number | string | undefined): void {
  if (value !== undefined) files.push({ path, value: String(value) });
}
/**
 * The value, or undefined for 0, which means "unchanged" in the kubelet's Set. opencontainers/cgroups 0.0.6: fs, fs2.
 */
const unlessZero = (n: number | undefined): number | undefined => (n === 0 ? undefined : n);

function v1(v: CgroupValues): readonly CgroupFile[] {
  const files: Files = [];
  put(files, "cpu.shares", v.cpuShares);
  put(files, "cpu.cfs_period_us", unlessZero(v.cpuPeriod));
  put(files, "cpu.cfs_quota_us", unlessZero(v.cpuQuota));
  put(files, "cpuset.cpus", v.cpusetCpus);
  put(files, "cpuset.mems", v.cpusetMems);
  put(files, "memory.limit_in_bytes", unlessZero(v.memory));
  put(files, "memory.memsw.limit_in_bytes", unlessZero(v.memorySwap));
  put(files, "pids.max", pidsText(v.pidsLimit));
  return v.hugePageLimit === undefined ? files : files.concat(pagesV1(v.hugePageLimit));
}

function v2(v: CgroupValues): readonly CgroupFile[] {
  const files: Files = [];
  put(files, "cpu.weight", unlessZero(v.cpuWeight));
  put(files, "cpu.max", cpuMax(v));
  put(files, "cpuset.cpus", v.cpusetCpus);
  put(files, "cpuset.mems", v.cpusetMems);
  put(files, "memory.swap.max", maxText(v.memorySwap));
  put(files, "memory.max", v.memory === undefined || v.memory === 0 ? undefined : maxText(v.memory));
  put(files, "memory.min", v.memoryMin);
  put(files, "memory.low", v.memoryLow);
  put(files, "memory.high", maxText(v.memoryHigh));
  if (v.memoryOomGroup === true) put(files, "memory.oom.group", "1");
  put(files, "pids.max", pidsText(v.pidsLimit));
  return v.hugePageLimit === undefined ? files : files.concat(pagesV2(v.hugePageLimit));
}

type Limits = NonNullable<CgroupValues["hugePageLimit"]>;
/** Caches the files by limits object, since most cgroups of a node share one. */
const pageFiles = (ending: string): ((limits: Limits) => Files) =>
  perObject((limits) => {
    const files: Files = [];
    for (const [size, limit] of Object.entries(limits)) {
      const page = `hugetlb.${pageSizeUnit(Number(size))}`;
      put(files, `${page}.${ending}`, pagesText(limit));
      put(files, `${page}.rsvd.${ending}`, pagesText(limit));
    }
    return files;
  });
/** The text of a page limit; no limit is written as 2^62, as the kubelet writes it. */
const pagesText = (limit: Bytes): string => (limit === NO_PAGE_LIMIT ? "4611686018427387904" : String(limit));
const pagesV1 = pageFiles("limit_in_bytes");
const pagesV2 = pageFiles("max");

/**
 * The text of a limit, where -1 means no limit. A lower value (qosReserved of more than the node has) is written as it
 * is, for the kernel to refuse.
 */
const maxText = (n: number | undefined): string | undefined =>
  n === undefined ? undefined : n === -1 ? "max" : String(n);

/** `cpu.max` is one line, "quota period". */
function cpuMax(v: CgroupValues): string | undefined {
  const quota = v.cpuQuota ?? 0;
  const period = v.cpuPeriod ?? 0;
  if (quota === 0 && period === 0) return undefined;
  return `${quota > 0 ? String(quota) : "max"} ${String(period === 0 ? KERNEL_CFS_PERIOD : period)}`;
}

/**
 * The text of a limit of process ids, where -1 means none; 0 becomes 1, since 0 would prevent the pod's first process.
 */
function pidsText(limit: number | undefined): string | undefined {
  if (limit === undefined) return undefined;
  if (limit < 0) return "max";
  return String(limit === 0 ? 1 : limit);
}
