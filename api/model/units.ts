import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { count, optional, text, timestamp } from "./fields.ts";

const memory = z.object({
  time: optional(timestamp),
  availableBytes: optional(count),
  usageBytes: optional(count),
  workingSetBytes: optional(count),
});
/** Billionths of a core, over the last seconds. */
const cpu = z.object({ time: optional(timestamp), usageNanoCores: optional(count) });
/** The percentage of time in which all tasks waited for CPU. kubelet 1.34: KubeletPSI, cgroup v2 only. */
const pressure = z.object({ full: optional(z.object({ avg60: optional(z.number().min(0).max(100)) })) });
const fileSystem = z.object({
  time: optional(timestamp),
  availableBytes: optional(count),
  capacityBytes: optional(count),
  usedBytes: optional(count),
  inodes: optional(count),
  inodesFree: optional(count),
  inodesUsed: optional(count),
});
/** The space used by a container's layer, its logs or a volume; the size of the underlying file system is not read. */
const used = z.object({ usedBytes: optional(count), inodesUsed: optional(count) });

const podStats = z.object({
  podRef: z.object({ name: text, namespace: optional(text), uid: text }),
  containers: optional(
    z
      .array(z.object({ name: text, memory: optional(memory), rootfs: optional(used), logs: optional(used) }))
      .max(2 * LIMITS.containersPerPod),
  ),
  cpu: optional(
    z.object({
      usageNanoCores: optional(count),
      /**
       * The share of CFS periods, in thousandths since the last observation, in which the pod was throttled by its own quota or a
       * container's, whichever is larger. The kubelet's Summary does not have it: the daemon adds it.
       */
      throttledPermille: optional(z.int().min(0).max(1000)),
      psi: optional(pressure),
    }),
  ),
  memory: optional(memory),
  volume: optional(z.array(z.object({ name: text, ...used.shape })).max(LIMITS.volumesPerPod)),
  "ephemeral-storage": optional(used),
  process_stats: optional(z.object({ process_count: optional(count) })),
});
export type PodStats = z.output<typeof podStats>;

/** The fields of the kubelet's /stats/summary (stats/v1alpha1) that decisions or the advice on reservations read. */
export const stats = z.object({
  node: optional(
    z.object({
      /**
       * The kubelet's system containers: `pods` is the cgroup of all pods; `kubelet`, `runtime` and `misc` exist if it knows their
       * cgroups.
       */
      systemContainers: optional(
        z.array(z.object({ name: text, cpu: optional(cpu), memory: optional(memory) })).max(16),
      ),
      cpu: optional(cpu),
      memory: optional(memory),
      fs: optional(fileSystem),
      runtime: optional(z.object({ imageFs: optional(fileSystem), containerFs: optional(fileSystem) })),
      rlimit: optional(z.object({ time: optional(timestamp), maxpid: optional(count), curproc: optional(count) })),
      swap: optional(z.object({ swapAvailableBytes: optional(count), swapUsageBytes: optional(count) })),
      /**
       * The file systems of images and containers: both on the kubelet's own (`one`), together on another (`dedicated`), or each
       * on its own (`split`). The Summary names no devices, so the kubelet does not send this; absent: derived from the sizes.
       */
      fileSystems: optional(z.enum(["one", "dedicated", "split"])),
    }),
  ),
  pods: optional(z.array(podStats).max(LIMITS.pods)),
});
export type Stats = z.output<typeof stats>;

declare const unit: unique symbol;
type Unit<Name extends string> = number & { readonly [unit]: Name };

/** Bytes; a safe integer: |n| <= 2^53-1. */
export type Bytes = Unit<"Bytes">;
/** cpu.shares of cgroup v1, 2..262144. */
export type CpuShares = Unit<"CpuShares">;
/** cpu.weight of cgroup v2, 1..10000. */
export type CpuWeight = Unit<"CpuWeight">;
/** Microseconds. */
export type Micros = Unit<"Micros">;
/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = Unit<"EpochMs">;

const whole = (n: number, name: string): number => {
  if (!Number.isSafeInteger(n)) throw new RangeError(`${name} must be a whole number, got ${n}`);
  return n;
};
export const bytes = (n: number): Bytes => whole(n, "Bytes") as Bytes;
export const cpuShares = (n: number): CpuShares => whole(n, "CpuShares") as CpuShares;
export const cpuWeight = (n: number): CpuWeight => whole(n, "CpuWeight") as CpuWeight;
export const micros = (n: number): Micros => whole(n, "Micros") as Micros;
export const epochMs = (n: number): EpochMs => whole(n, "EpochMs") as EpochMs;

/** The period of CPU quotas in a new cgroup. Linux: sched_cfs_period. */
export const KERNEL_CFS_PERIOD = micros(100_000);

/** No limit for a huge page size in a QoS tier. The kubelet uses 1 << 62, which not every JSON reader can represent. */
export const NO_PAGE_LIMIT = -1 as Bytes;

/** Truncating division of integers, as Go's int64 `/`; exact for all safe integers, unlike `Math.trunc(a / b)`. */
export const quotient = (a: number, b: number): number => (a - (a % b)) / b;

/** a * b / c as with Go's int64: exact product, then truncation. */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b;
  return Number.isSafeInteger(product) ? quotient(product, c) : Number((BigInt(a) * BigInt(b)) / BigInt(c));
}
