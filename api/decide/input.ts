import type { Kind } from "../model/decision.ts";
import { traitsOf } from "../model/kinds.ts";
import { PARTS, type Snapshot } from "../model/snapshot.ts";

/** The parts that differ in every snapshot of a node, even if the node has not changed. */
const ALWAYS_NEW: ReadonlySet<string> = new Set([
  "observedAt",
  "bootId",
  "sequence",
  "clockSteppedMs",
  "clockSteppedSince",
  "stats",
] satisfies (keyof Snapshot)[]);
export const isAlwaysNew = (part: string): boolean => ALWAYS_NEW.has(part);
/** The other parts. */
export const LASTING = PARTS.filter((part) => !isAlwaysNew(part));

/** The snapshot without `ALWAYS_NEW`. */
export function lastingParts(snapshot: Snapshot): Snapshot {
  const lasting: Partial<Record<keyof Snapshot, unknown>> = {};
  for (const part of LASTING) if (snapshot[part] !== undefined) lasting[part] = snapshot[part];
  return lasting as Snapshot;
}

export const isCacheable = (kind: Kind): boolean => traitsOf(kind).cacheable;

/** A snapshot without `ALWAYS_NEW`, except for the sizes that cacheable kinds read; null: the kind is not cacheable. */
export function cacheableInput(kind: Kind, snapshot: Snapshot): Snapshot | null {
  if (!isCacheable(kind)) return null;
  const rest = lastingParts(snapshot);
  const node = snapshot.stats?.node;
  if (node === undefined) return rest;
  const fs = node.fs && { capacityBytes: node.fs.capacityBytes };
  const rlimit = node.rlimit && { maxpid: node.rlimit.maxpid };
  return { ...rest, stats: { node: { fs, rlimit, swap: node.swap } } };
}
