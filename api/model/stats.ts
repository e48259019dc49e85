import * as z from "zod";
import { count, optional } from "./fields.ts";

const fileSystem = z.object({
  availableBytes: optional(count),
  capacityBytes: optional(count),
  usedBytes: optional(count),
  inodes: optional(count),
  inodesFree: optional(count),
  inodesUsed: optional(count),
});

/** The fields of the kubelet's /stats/summary (stats/v1alpha1) that a decision reads. */
export const stats = z.object({
  node: optional(
    z.object({
      memory: optional(
        z.object({
          availableBytes: optional(count),
          usageBytes: optional(count),
          workingSetBytes: optional(count),
        }),
      ),
      fs: optional(fileSystem),
      runtime: optional(z.object({ imageFs: optional(fileSystem), containerFs: optional(fileSystem) })),
      rlimit: optional(z.object({ maxpid: optional(count), curproc: optional(count) })),
      swap: optional(z.object({ swapAvailableBytes: optional(count), swapUsageBytes: optional(count) })),
    }),
  ),
});
export type Stats = z.output<typeof stats>;
