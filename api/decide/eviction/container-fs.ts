import type { EvictionSignal, FileSystems } from "../../model/eviction.ts";
import { isHard, type Threshold } from "./threshold.ts";

export interface WatchedThresholds {
  /** What a kubelet's first pass looks at: the derived thresholds are not among them yet. */
  readonly first: readonly Threshold[];
  readonly all: readonly Threshold[];
  /** The kubelet's words for thresholds that it overrides. */
  readonly warnings: readonly string[];
}
const PAIRS = [
  { container: "containerfs.available", node: "nodefs.available", image: "imagefs.available" },
  { container: "containerfs.inodesFree", node: "nodefs.inodesFree", image: "imagefs.inodesFree" },
] as const;

/**
 * containerfs thresholds are those of the file system that holds the containers' layers, whatever was configured: with one
 * disk and with split ones nodefs, with a dedicated one imagefs. Where a soft threshold has no grace period it counts as
 * the hard one. kubelet 1.36: UpdateContainerFsThresholds, whose result the pass that calls it does not use.
 */
export function withContainerFs(configured: readonly Threshold[], layout: FileSystems): WatchedThresholds {
  const first: (Threshold | null)[] = [...configured];
  const appended: Threshold[] = [];
  const warnings: string[] = [];
  for (const { container, node, image } of PAIRS) {
    for (const hard of [true, false]) {
      const source = lastOf(configured, layout === "dedicated" ? image : node, hard);
      const derived = source === undefined ? null : derive(configured[source] as Threshold, container);
      const own = lastOf(configured, container, hard);
      if (own !== undefined) {
        first[own] = derived;
        warnings.push(`found ${container} for ${hard ? "hard" : "soft"} eviction. ignoring`);
      } else if (derived !== null) appended.push(derived);
    }
  }
  const kept = first.filter((t) => t !== null);
  return { first: kept, all: [...kept, ...appended], warnings };
}
const derive = (source: Threshold, signal: EvictionSignal): Threshold => ({
  ...source,
  signal,
  derivedFrom: source.signal,
});
function lastOf(thresholds: readonly Threshold[], signal: EvictionSignal, hard: boolean): number | undefined {
  const at = thresholds.findLastIndex((t) => t.signal === signal && isHard(t) === hard);
  return at < 0 ? undefined : at;
}
