import * as z from "zod";
import { count, optional, text, timestamp } from "./fields.ts";
import { LIMITS } from "./limits.ts";

const memory = z.object({
  time: optional(timestamp),
  availableBytes: optional(count),
  usageBytes: optional(count),
  workingSetBytes: optional(count),
});
const fileSystem = z.object({
  time: optional(timestamp),
  availableBytes: optional(count),
  capacityBytes: optional(count),
  usedBytes: optional(count),
  inodes: optional(count),
  inodesFree: optional(count),
  inodesUsed: optional(count),
});
/** What a container's layer, its logs or a volume take up; the size of what they lie on is not read. */
const used = z.object({ usedBytes: optional(count), inodesUsed: optional(count) });

const podStats = z.object({
  podRef: z.object({ name: text, namespace: optional(text), uid: text }),
  containers: optional(
    z
      .array(z.object({ name: text, memory: optional(memory), rootfs: optional(used), logs: optional(used) }))
      .max(2 * LIMITS.containersPerPod),
  ),
  memory: optional(memory),
  volume: optional(z.array(z.object({ name: text, ...used.shape })).max(LIMITS.volumesPerPod)),
  "ephemeral-storage": optional(used),
  process_stats: optional(z.object({ process_count: optional(count) })),
});
export type PodStats = z.output<typeof podStats>;

/** The fields of the kubelet's /stats/summary (stats/v1alpha1) that a decision reads. */
export const stats = z.object({
  node: optional(
    z.object({
      /** The kubelet's `pods` is the cgroup of all pods. */
      systemContainers: optional(z.array(z.object({ name: text, memory: optional(memory) })).max(16)),
      memory: optional(memory),
      fs: optional(fileSystem),
      runtime: optional(z.object({ imageFs: optional(fileSystem), containerFs: optional(fileSystem) })),
      rlimit: optional(z.object({ time: optional(timestamp), maxpid: optional(count), curproc: optional(count) })),
      swap: optional(z.object({ swapAvailableBytes: optional(count), swapUsageBytes: optional(count) })),
      /**
       * Whether images and containers lie on the kubelet's own disk (`one`), together on another (`dedicated`), or each
       * on its own (`split`). The Summary names no devices, so the kubelet does not send it: absent, the sizes tell.
       */
      fileSystems: optional(z.enum(["one", "dedicated", "split"])),
    }),
  ),
  pods: optional(z.array(podStats).max(LIMITS.pods)),
});
export type Stats = z.output<typeof stats>;
