import type { CgroupValues } from "../../../api/model/cgroups.ts";
import { type Bytes, NO_PAGE_LIMIT } from "../../../api/model/units.ts";
import type { LinuxContainerResources } from "../../containerd/messages.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Pages = NonNullable<LinuxContainerResources["hugepageLimits"]>;

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];
/** The kubelet's value for "no limit": 1 << 62. */
const NO_PAGES = 2 ** 62;

/**
 * The resources of a container as the runtime takes them, when it is made and when they change. A value that is absent is left to
 * the runtime; a memory limit of -1 is none, which CRI says by leaving it out. kubelet 1.36: generateLinuxContainerResources.
 */
export function containerResources(values: CgroupValues, version: 1 | 2): LinuxContainerResources {
  const resources: Writable<LinuxContainerResources> = {};
  const put = <K extends keyof LinuxContainerResources>(key: K, value: LinuxContainerResources[K] | undefined) => {
    if (value !== undefined) resources[key] = value;
  };
  put("cpuPeriod", values.cpuPeriod);
  put("cpuQuota", values.cpuQuota);
  put("cpuShares", values.cpuShares);
  put("memoryLimitInBytes", limit(values.memory));
  put("oomScoreAdj", values.oomScoreAdj);
  put("cpusetCpus", values.cpusetCpus);
  put("cpusetMems", values.cpusetMems);
  if (values.hugePageLimit !== undefined) resources.hugepageLimits = pagesOf(values.hugePageLimit);
  if (version === 1) put("memorySwapLimitInBytes", limit(values.memorySwap));
  const unified = version === 1 ? {} : unifiedOf(values);
  if (Object.keys(unified).length > 0) resources.unified = unified;
  return resources;
}
const limit = (bytes: Bytes | undefined): number | undefined => (bytes === undefined || bytes <= 0 ? undefined : bytes);

/** Values without a field in CRI go by the name of their file. */
function unifiedOf(v: CgroupValues): Readonly<Record<string, string>> {
  const unified: Record<string, string> = {};
  const put = (file: string, bytes: Bytes | undefined): void => {
    if (bytes !== undefined) unified[file] = bytes === -1 ? "max" : String(bytes);
  };
  if (v.memoryOomGroup === true) unified["memory.oom.group"] = "1";
  put("memory.swap.max", v.memorySwap);
  put("memory.min", v.memoryMin);
  put("memory.low", v.memoryLow);
  put("memory.high", v.memoryHigh);
  return unified;
}

const pagesOf = (limits: Readonly<Record<string, Bytes>>): Pages =>
  Object.entries(limits).map(([size, bytes]) => ({
    pageSize: pageSizeText(Number(size)),
    limit: bytes === NO_PAGE_LIMIT ? NO_PAGES : bytes,
  }));

/** 2097152 -> `2MB`, as the kernel names its files. kubernetes 1.36: HugePageUnitSizeFromByteSize. */
function pageSizeText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size % 1024 === 0 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size}${UNITS[unit]}`;
}
