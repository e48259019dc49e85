import type { CgroupMounts, MemoryUsage, SwapUsage } from "./facts.ts";
import type { MachineFiles } from "./files.ts";
import { kibLines, MEMINFO } from "./meminfo.ts";

interface Usage {
  readonly memory: MemoryUsage;
  readonly swap: SwapUsage;
}

/**
 * The machine's memory use as the kubelet reports and evicts by it: that of the root cgroup, against MemTotal.
 * v1: memory.usage_in_bytes and the hierarchy's totals. v2: the root has no memory.current, so usage is anon + file of
 * its memory.stat, which counts as v1 did (kubelet 1.36: opencontainers/cgroups rootStatsFromMeminfo; runc before 1.2
 * took MemTotal - MemFree), and swap is SwapTotal - SwapFree. `undefined` where the root group cannot be read.
 */
export function readUsage(
  files: MachineFiles,
  cgroup: CgroupMounts,
  totalBytes: number | undefined,
): Usage | undefined {
  if (cgroup.memory === undefined || cgroup.version === undefined) return undefined;
  const path = `${cgroup.memory}/memory.stat`;
  const text = files.text(path);
  if (text === undefined) return undefined;
  const stat = statLines(text);
  const meminfo = kibLines(files.text(MEMINFO) ?? "");
  const read = cgroup.version === 1 ? v1(files, cgroup.memory, stat) : v2(files, cgroup.memory, stat, meminfo);
  if (read === undefined) return files.note(path, "does not tell the memory in use");

  const workingSetBytes = Math.max(0, read.usage - (read.inactiveFile ?? 0));
  const swapTotal = meminfo.get("SwapTotal");
  return {
    memory: {
      availableBytes: totalBytes === undefined ? undefined : Math.max(0, totalBytes - workingSetBytes),
      usageBytes: read.usage,
      workingSetBytes,
      rssBytes: read.rss,
      pageFaults: stat.get("pgfault"),
      majorPageFaults: stat.get("pgmajfault"),
    },
    swap: {
      swapAvailableBytes: swapTotal === undefined ? undefined : Math.max(0, swapTotal - read.swap),
      swapUsageBytes: read.swap,
    },
  };
}

interface Read {
  readonly usage: number;
  readonly inactiveFile: number | undefined;
  readonly rss: number | undefined;
  readonly swap: number;
}
type Numbers = ReadonlyMap<string, number>;

function v1(files: MachineFiles, directory: string, stat: Numbers): Read | undefined {
  const usage = files.wholeNumber(`${directory}/memory.usage_in_bytes`);
  if (usage === undefined) return undefined;
  const [inactiveFile, rss] = [stat.get("total_inactive_file"), stat.get("total_rss")];
  return { usage, inactiveFile, rss, swap: stat.get("total_swap") ?? 0 };
}

function v2(files: MachineFiles, directory: string, stat: Numbers, meminfo: Numbers): Read | undefined {
  const [anon, file] = [stat.get("anon"), stat.get("file")];
  // In a container what is mounted as the root is a group of its own, and has the file.
  const current = files.optionalText(`${directory}/memory.current`);
  const emulated = anon === undefined || file === undefined ? undefined : anon + file;
  const usage = current === undefined ? emulated : files.wholeNumber(`${directory}/memory.current`);
  if (usage === undefined) return undefined;
  const swap = (meminfo.get("SwapTotal") ?? 0) - (meminfo.get("SwapFree") ?? 0);
  return { usage, inactiveFile: stat.get("inactive_file"), rss: anon, swap };
}

/** `name value` lines. */
function statLines(text: string): Numbers {
  const numbers = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [name, digits] = line.split(" ");
    const value = Number(digits);
    if (name !== undefined && digits !== undefined && Number.isSafeInteger(value)) numbers.set(name, value);
  }
  return numbers;
}
