import type { SimCgroup, SimKernel } from "./sim-kernel.ts";
import { NO_LIMIT, parseList } from "./sim-numbers.ts";

interface Limit {
  readonly mount: string;
  readonly file: string;
  /** The cgroup's value, comparable with the values of other cgroups; null: no limit. */
  readonly of: (cgroup: SimCgroup) => bigint | null;
}

const amount =
  (file: string) =>
  (cgroup: SimCgroup): bigint | null => {
    const text = cgroup.files.get(file) ?? "max";
    return text === "max" || BigInt(text) >= NO_LIMIT ? null : BigInt(text);
  };

/** Billionths of a CPU; exact for the periods that the trees use. */
function bandwidth(cgroup: SimCgroup): bigint | null {
  const v2 = cgroup.files.get("cpu.max")?.split(" ");
  const quota = v2?.[0] ?? cgroup.files.get("cpu.cfs_quota_us") ?? "-1";
  const period = v2?.[1] ?? cgroup.files.get("cpu.cfs_period_us") ?? "100000";
  return quota === "max" || quota === "-1" ? null : (BigInt(quota) * 1_000_000_000n) / BigInt(period);
}

const LIMITS: Readonly<Record<1 | 2, readonly Limit[]>> = {
  1: [
    { mount: "cpu", file: "cfs", of: bandwidth },
    ...["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"].map((file) => ({
      mount: "memory",
      file,
      of: amount(file),
    })),
    { mount: "pids", file: "pids.max", of: amount("pids.max") },
  ],
  2: [
    { mount: "", file: "cpu.max", of: bandwidth },
    ...["memory.max", "memory.swap.max", "pids.max"].map((file) => ({ mount: "", file, of: amount(file) })),
  ],
};

/** Every cgroup whose limit is above that of its nearest limited ancestor. The list must be empty at any moment. */
export function exceeding(kernel: SimKernel): string[] {
  const found: string[] = [];
  for (const { mount, file, of } of LIMITS[kernel.rules.version]) {
    const visit = (cgroup: SimCgroup, above: bigint | null): void => {
      const own = of(cgroup);
      if (own !== null && above !== null && own > above) found.push(`${cgroup.path} ${file}: ${own} > ${above}`);
      for (const child of cgroup.children.values()) visit(child, own ?? above);
    };
    const top = kernel.tops.get(mount);
    if (top !== undefined) visit(top, null);
  }
  return found;
}

/** The CPUs that two containers have at the same time. Only containers with an assigned CPU set count. */
export function shared(kernel: SimKernel, given: ReadonlySet<string>): string[] {
  const owners = new Map<number, string>();
  const found: string[] = [];
  for (const cgroup of kernel.tops.get(kernel.rules.version === 1 ? "cpuset" : "")?.subtree() ?? []) {
    if (!given.has(cgroup.path)) continue;
    for (const cpu of parseList(cgroup.files.get("cpuset.cpus") ?? "") ?? []) {
      const owner = owners.get(cpu);
      if (owner !== undefined) found.push(`CPU ${cpu}: ${owner} and ${cgroup.path}`);
      owners.set(cpu, cgroup.path);
    }
  }
  return found;
}
