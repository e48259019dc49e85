import { pageSizeName } from "../../api/model/machine.ts";
import type { HugePages } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

/**
 * Pre-allocated huge pages by page size from a directory of `hugepages-2048kB/nr_hugepages` (the machine's, or one of a
 * NUMA node). Empty where the kernel has no huge pages.
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
