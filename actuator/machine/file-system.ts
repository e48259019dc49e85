import type { StatsFsBase } from "node:fs";
import type { FileSystem } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

/** The file system that holds the kubelet's directory, `/` before that exists. */
export function readNodeFs(files: MachineFiles, kubeletDirectory: string): FileSystem | undefined {
  const stat = files.statfs(kubeletDirectory) ?? files.statfs("/");
  return stat === undefined ? files.note("/", "its file system could not be measured") : fileSystemOf(stat);
}

/**
 * Available is what an unprivileged writer gets (bavail), used is capacity less every free block, as cAdvisor counts:
 * reserved blocks are neither.
 */
export function fileSystemOf(stat: StatsFsBase<bigint>): FileSystem {
  const block = stat.frsize ?? stat.bsize;
  return {
    availableBytes: Number(stat.bavail * block),
    capacityBytes: Number(stat.blocks * block),
    usedBytes: Number((stat.blocks - stat.bfree) * block),
    inodesFree: Number(stat.ffree),
    inodes: Number(stat.files),
    inodesUsed: Number(stat.files - stat.ffree),
  };
}
