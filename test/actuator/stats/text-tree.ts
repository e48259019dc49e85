import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { ROOT } from "../cgroups/hierarchy-kit.ts";
import { tempTree } from "../cgroups/temp-tree.ts";

/** The figures of a cgroup; the same figures are written in the format of either cgroup version. */
export interface Facts {
  readonly cpuMicros: number;
  readonly periods: number;
  readonly throttled: number;
  readonly throttledMicros: number;
  readonly memory: number;
  readonly inactiveFile: number;
  readonly anon: number;
  readonly swap: number;
  /** Null: no limit. */
  readonly limit: number | null;
  readonly tasks: number;
  readonly processes: readonly number[];
}
export const FACTS: Facts = {
  cpuMicros: 12_345_678,
  periods: 40,
  throttled: 10,
  throttledMicros: 250_000,
  memory: 300_000_000,
  inactiveFile: 100_000_000,
  anon: 150_000_000,
  swap: 4096,
  limit: 500_000_000,
  tasks: 7,
  processes: [101, 102, 103],
};

type Files = Readonly<Record<string, string>>;

/** The kernel's files, reduced to the lines that are read and those that could be confused with them. */
export function filesOf(version: 1 | 2, facts: Facts): Files {
  const procs = facts.processes.map((pid) => `${pid}\n`).join("");
  const shared = { "cgroup.procs": procs, "pids.current": `${facts.tasks}\n` };
  return version === 1 ? { ...shared, ...v1(facts) } : { ...shared, ...v2(facts) };
}

const v1 = (f: Facts): Files => ({
  "cpuacct.usage": `${f.cpuMicros * 1000}\n`,
  "cpu.stat": `nr_periods ${f.periods}\nnr_throttled ${f.throttled}\nthrottled_time ${f.throttledMicros * 1000}\n`,
  "memory.usage_in_bytes": `${f.memory}\n`,
  "memory.limit_in_bytes": `${f.limit ?? "9223372036854771712"}\n`,
  "memory.stat": [
    "cache 1",
    "rss 2",
    "swap 3",
    "inactive_file 4",
    "hierarchical_memory_limit 5",
    "total_cache 6",
    `total_rss ${f.anon}`,
    "total_rss_huge 7",
    `total_swap ${f.swap}`,
    `total_inactive_file ${f.inactiveFile}`,
    "total_active_file 8\n",
  ].join("\n"),
});

const v2 = (f: Facts): Files => ({
  "cpu.stat": [
    `usage_usec ${f.cpuMicros}`,
    "user_usec 1",
    "core_sched.force_idle_usec 2",
    `nr_periods ${f.periods}`,
    `nr_throttled ${f.throttled}`,
    `throttled_usec ${f.throttledMicros}`,
    "nr_bursts 3\n",
  ].join("\n"),
  "memory.current": `${f.memory}\n`,
  "memory.max": `${f.limit ?? "max"}\n`,
  "memory.swap.current": `${f.swap}\n`,
  "memory.stat": [
    `anon ${f.anon}`,
    "file 1",
    "file_mapped 2",
    "inactive_anon 3",
    `inactive_file ${f.inactiveFile}`,
    "active_file 4",
    "workingset_refault_anon 5\n",
  ].join("\n"),
  "cpu.pressure": pressure("1.53"),
  "memory.pressure": pressure("0.00"),
  "io.pressure": pressure("20.25"),
});
const pressure = (avg10: string): string =>
  `some avg10=${avg10} avg60=9.87 avg300=0.22 total=1234\nfull avg10=8.88 avg60=0.00 avg300=0.00 total=99\n`;

export interface TextTree {
  readonly hierarchy: Hierarchy;
  /** Writes files of a cgroup, in any hierarchy. */
  plant(path: string, files: Files): void;
}

/** Cgroups as directories and text files, removed after the test. */
export function textTree(version: 1 | 2): TextTree {
  const tree = tempTree(version, ROOT);
  onTestFinished(() => tree.remove());
  const opened = openHierarchy({ ...tree, root: ROOT });
  if (!opened.ok) throw new Error(opened.error.message);
  const plant = (path: string, files: Files): void => {
    for (const [file, text] of Object.entries(files)) {
      const controller = file === "cgroup.procs" ? "cpu" : file.slice(0, file.indexOf("."));
      const directory = join(tree.mountRoot, version === 1 ? controller : "", ROOT, path);
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, file), text);
    }
  };
  return { hierarchy: opened.value, plant };
}
