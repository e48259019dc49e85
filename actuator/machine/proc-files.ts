import { endianness } from "node:os";
import { LIMITS } from "../../api/base/limits.ts";
import { pageSizeName } from "../../api/model/machine.ts";
import type { HugePages, MemoryFacts } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

/** A CPU's place as the kernel numbers it: `kernelCore` repeats in every socket. */
export interface CpuIds {
  readonly cpu: number;
  readonly kernelCore: number;
  readonly socket: number;
}

const CPUINFO = "/proc/cpuinfo";

/**
 * The online CPUs from /proc/cpuinfo, for machines that hide /sys. Without core or socket ids (as on arm64) every CPU
 * is its own core in socket 0.
 */
export function placesFromCpuinfo(files: MachineFiles): readonly CpuIds[] {
  const text = files.text(CPUINFO);
  if (text === undefined) return [];
  const places = text.split(/\n\s*\n/).flatMap((block) => placeOf(block) ?? []);
  if (places.length === 0) files.note(CPUINFO, "lists no processor");
  return places.slice(0, LIMITS.cpus);
}

function placeOf(block: string): CpuIds | undefined {
  const field = (name: string): number | undefined => {
    const digits = new RegExp(`^${name}\\s*:\\s*(\\d{1,6})$`, "m").exec(block)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  const cpu = field("processor");
  if (cpu === undefined) return undefined;
  return { cpu, kernelCore: field("core id") ?? cpu, socket: field("physical id") ?? 0 };
}

export const MEMINFO = "/proc/meminfo";
const AUXV = "/proc/self/auxv";
const AT_PAGESZ = 6n;

/** `MemTotal:  16384 kB` lines (with or without `Node 0 ` in front) as name -> bytes. */
export function kibLines(text: string): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^(?:Node \d+ )?([A-Za-z_()0-9]+):\s*(\d{1,12}) kB$/.exec(line.trim());
    if (match?.[1] !== undefined) bytes.set(match[1], Number(match[2]) * 1024);
  }
  return bytes;
}

export function readMemory(files: MachineFiles): MemoryFacts {
  const meminfo = files.text(MEMINFO);
  const lines = kibLines(meminfo ?? "");
  const totalBytes = lines.get("MemTotal");
  if (meminfo !== undefined && totalBytes === undefined) files.note(MEMINFO, "has no MemTotal line");
  return { totalBytes, swapTotalBytes: lines.get("SwapTotal"), pageSizeBytes: readPageSize(files) };
}

/**
 * The page size from the auxiliary vector: pairs of 64-bit words, type and value, that the kernel gave this process.
 */
function readPageSize(files: MachineFiles): number | undefined {
  const auxv = files.bytes(AUXV);
  if (auxv === undefined) return undefined;
  const word = (at: number): bigint => (endianness() === "LE" ? auxv.readBigUInt64LE(at) : auxv.readBigUInt64BE(at));
  for (let at = 0; at + 16 <= auxv.length; at += 16) {
    if (word(at) === AT_PAGESZ) return Number(word(at + 8));
  }
  return files.note(AUXV, "has no page size (AT_PAGESZ)");
}

/**
 * Pre-allocated huge pages by page size, from a directory of `hugepages-2048kB/nr_hugepages` (the machine's, or that of a
 * NUMA node). Empty if the kernel has no huge pages.
 */
export function readHugePages(files: MachineFiles, directory: string): HugePages {
  const pages: Record<string, number> = {};
  for (const name of files.names(directory)) {
    const kib = /^hugepages-(\d{1,9})kB$/.exec(name)?.[1];
    if (kib === undefined) continue;
    const count = files.wholeNumber(`${directory}/${name}/nr_hugepages`);
    if (count !== undefined && count >= 0) pages[pageSizeName(Number(kib) * 1024)] = count;
  }
  return pages;
}

/** 1Gi, 2Mi -> bytes of one page; the inverse of `pageSizeName`. */
export function pageBytes(size: string): number {
  const power = ["Ki", "Mi", "Gi"].indexOf(size.slice(-2)) + 1;
  return Number(size.slice(0, -2)) * 1024 ** power;
}
