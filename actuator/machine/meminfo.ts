import { endianness } from "node:os";
import type { MemoryFacts } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

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

/** The auxiliary vector: pairs of 64-bit words, type and value, that the kernel gave this process. */
function readPageSize(files: MachineFiles): number | undefined {
  const auxv = files.bytes(AUXV);
  if (auxv === undefined) return undefined;
  const word = (at: number): bigint => (endianness() === "LE" ? auxv.readBigUInt64LE(at) : auxv.readBigUInt64BE(at));
  for (let at = 0; at + 16 <= auxv.length; at += 16) {
    if (word(at) === AT_PAGESZ) return Number(word(at + 8));
  }
  return files.note(AUXV, "has no page size (AT_PAGESZ)");
}
