/** An image as the kubelet's removal rules use it. Times only need to be comparable with each other. */
export interface KnownImage {
  readonly name: string;
  readonly sizeBytes: number;
  readonly firstSeen: number;
  /** Absent: no container has been seen using the image. */
  readonly lastUsed?: number;
  /** The image is in use, pinned or too young. */
  readonly isHeld?: boolean;
}
export interface Thresholds {
  readonly high: number;
  readonly low: number;
}

/**
 * The names of the images that a kubelet removes, in its order: the least recently used first (images that were never
 * used before all others), then those detected first, until their sizes add up to what is needed to reach the low
 * threshold.
 */
export function imagesToRemove(
  images: readonly KnownImage[],
  { capacityBytes, availableBytes }: { readonly capacityBytes: number; readonly availableBytes: number },
  { high, low }: Thresholds,
): readonly string[] {
  const usedPercent = 100 - Math.floor((availableBytes * 100) / capacityBytes);
  if (usedPercent < high) return [];
  const wanted = Math.floor((capacityBytes * (100 - low)) / 100) - availableBytes;
  const order = images
    .filter(({ isHeld }) => isHeld !== true)
    .toSorted((a, b) => (a.lastUsed ?? -1) - (b.lastUsed ?? -1) || a.firstSeen - b.firstSeen);
  let freed = 0;
  const gone: string[] = [];
  for (const { name, sizeBytes } of order) {
    gone.push(name);
    freed += sizeBytes;
    if (freed >= wanted) break;
  }
  return gone;
}
