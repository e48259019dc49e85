import type { CgroupPlan, CgroupsDecision } from "../../../api/model/cgroups.ts";
import { cgroup, decide } from "./decisions.ts";

type Files = Record<string, string>;

interface Amounts {
  readonly shares: number;
  /** Thousandths of a CPU; null: no quota. */
  readonly cpu: number | null;
  /** MiB; null: no limit. */
  readonly memory: number | null;
  readonly pids: number | null;
  readonly period?: number;
  readonly cpus?: string;
}

function filesOf(version: 1 | 2, { shares, cpu, memory, pids, period = 100_000, cpus }: Amounts): Files {
  const quota = cpu === null ? null : (cpu * period) / 1000;
  const bytes = memory === null ? null : Math.round(memory * 2 ** 20);
  const files: Files = { "pids.max": pids === null ? "max" : String(pids) };
  if (version === 1) {
    files["cpu.shares"] = String(shares);
    files["cpu.cfs_quota_us"] = String(quota ?? -1);
    files["cpu.cfs_period_us"] = String(period);
    files["memory.limit_in_bytes"] = String(bytes ?? -1);
    files["memory.memsw.limit_in_bytes"] = String(bytes ?? -1);
    files["hugetlb.2MB.limit_in_bytes"] = "4611686018427387904";
  } else {
    files["cpu.weight"] = String(Math.max(1, Math.floor(shares / 26)));
    files["cpu.max"] = `${quota ?? "max"} ${period}`;
    files["memory.swap.max"] = "0";
    files["memory.max"] = String(bytes ?? "max");
    files["memory.min"] = "0";
    files["hugetlb.2MB.max"] = "4611686018427387904";
  }
  if (cpus !== undefined) files["cpuset.cpus"] = cpus;
  return files;
}

const tree = (version: 1 | 2, amounts: Readonly<Record<string, Amounts>>): CgroupsDecision => {
  const plans: CgroupPlan[] = Object.entries(amounts).map(([path, a]) => cgroup(path, filesOf(version, a)));
  return decide(version, plans);
};

const NONE = { cpu: null, memory: null, pids: null } as const;

/** The tree with the wide values: two pods, and limits that are not whole pages or that the kernel normalises. */
export const bigTree = (version: 1 | 2): CgroupsDecision =>
  tree(version, {
    "/kubepods": { shares: 1843, cpu: 2000, memory: 800, pids: 4000, cpus: "0,1" },
    "/kubepods/burstable": { shares: 593, cpu: 1900, memory: 700, pids: 3000 },
    "/kubepods/besteffort": { shares: 2, ...NONE },
    "/kubepods/burstable/pod1": { shares: 512, cpu: 1500, memory: 600, pids: 1024, period: 50_000 },
    "/kubepods/burstable/pod1/c1": { shares: 256, cpu: 750, memory: 300.0001, pids: 100, period: 50_000, cpus: "0-1" },
    "/kubepods/burstable/pod1/c2": { shares: 256, cpu: 750, memory: 300, pids: 100, cpus: "1" },
    "/kubepods/burstable/pod2": { shares: 81, cpu: 100, memory: 64, pids: 1024 },
  });

/** The same tree with low limits, narrower cpusets, another CFS period, and without pod2. */
export const smallTree = (version: 1 | 2): CgroupsDecision =>
  tree(version, {
    "/kubepods": { shares: 1024, cpu: 1000, memory: 400, pids: 2000, cpus: "0" },
    "/kubepods/burstable": { shares: 2, cpu: 900, memory: 300, pids: 1000 },
    "/kubepods/besteffort": { shares: 2, ...NONE },
    "/kubepods/burstable/pod1": { shares: 102, cpu: 200, memory: 200, pids: 512, period: 100_000 },
    "/kubepods/burstable/pod1/c1": { shares: 51, cpu: 100, memory: 100, pids: 50, cpus: "0" },
    "/kubepods/burstable/pod1/c2": { shares: 51, cpu: 100, memory: 100, pids: 50, cpus: "0" },
  });
