/** What was available at a time. */
export interface Point {
  readonly atMs: number;
  readonly available: number;
}
/** Fewer say nothing: two points are a line through whatever noise is in them. */
const FEWEST = 3;
/** The last so many count: a trend that has turned is told after half of them. */
const LATEST = 12;

/**
 * How fast an amount changes now, per second; null with fewer than three times. The median of the slopes between every two
 * points (Theil and Sen): a node's free disk jumps when images go and its free memory when a pod goes, and one jump must
 * not turn a forecast round, as it does with least squares. Up to 29 % of the points may be off.
 */
export function slopePerSecond(points: readonly Point[]): number | null {
  const byTime = [...new Map(points.map((p) => [p.atMs, p])).values()].sort((a, b) => a.atMs - b.atMs);
  if (byTime.length < FEWEST) return null;
  const latest = byTime.slice(-LATEST);
  const slopes: number[] = [];
  for (const [i, a] of latest.entries()) {
    for (const b of latest.slice(i + 1)) slopes.push(((b.available - a.available) * 1000) / (b.atMs - a.atMs));
  }
  slopes.sort((a, b) => a - b);
  const middle = slopes.length >> 1;
  const upper = slopes[middle] as number;
  return slopes.length % 2 === 1 ? upper : ((slopes[middle - 1] as number) + upper) / 2;
}

/** Milliseconds until an amount has fallen by `distance`; null where it does not fall. */
export function msToFall(distance: number, perSecond: number | null): number | null {
  if (perSecond === null || perSecond >= 0) return null;
  return Math.round((distance * 1000) / -perSecond);
}
