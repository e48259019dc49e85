import type { Kind } from "../model/decision.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Stats } from "../model/stats.ts";

/** Kinds that decide nothing without a time. */
const TIMED: ReadonlySet<Kind> = new Set<Kind>(["eviction", "image-gc", "container-gc"]);

/** Where stats were given and no time, the latest time in them; undefined where none is wanted or none is there. */
export function assumedTime(kind: Kind, { observedAt, stats }: Snapshot): string | undefined {
  if (!TIMED.has(kind) || observedAt !== undefined || stats === undefined) return undefined;
  const latest = Math.max(...timesOf(stats).map((time) => Date.parse(time)));
  return Number.isFinite(latest) ? new Date(latest).toISOString() : undefined;
}

function timesOf({ node, pods = [] }: Stats): readonly string[] {
  const { systemContainers = [], memory, fs, runtime, rlimit } = node ?? {};
  const parts = [memory, fs, runtime?.imageFs, runtime?.containerFs, rlimit];
  const memories = [...systemContainers, ...pods].map((of) => of.memory);
  return [...parts, ...memories].flatMap((part) => (part?.time === undefined ? [] : [part.time]));
}
