import type { ImageGcDecision } from "../../model/image-gc.ts";
import { mulDiv } from "../../model/units.ts";
import type { ImageGcPolicy } from "./policy.ts";

export interface DiskNumbers {
  readonly capacityBytes?: number | undefined;
  readonly availableBytes?: number | undefined;
}
export type DiskState = NonNullable<ImageGcDecision["fileSystem"]>;

/**
 * The image file system against the thresholds; a number that is not told is 0, and what is free beyond the capacity is not
 * there. With a capacity of 0 nothing else is worked out. kubelet 1.36: GarbageCollect.
 */
export function diskState(disk: DiskNumbers, policy: ImageGcPolicy): DiskState {
  const capacityBytes = disk.capacityBytes ?? 0;
  const availableBytes = Math.min(disk.availableBytes ?? 0, capacityBytes);
  if (capacityBytes === 0) return { capacityBytes, availableBytes, usagePercent: 0, wantedBytes: null };
  const usagePercent = 100 - mulDiv(availableBytes, 100, capacityBytes);
  const isOver = usagePercent >= policy.highThresholdPercent;
  const wantedBytes = isOver ? mulDiv(capacityBytes, 100 - policy.lowThresholdPercent, 100) - availableBytes : null;
  return { capacityBytes, availableBytes, usagePercent, wantedBytes };
}
