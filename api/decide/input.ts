import type { Kind } from "../model/decision.ts";
import { traitsOf } from "../model/kinds.ts";
import { PARTS, type Snapshot } from "../model/snapshot.ts";

/** The parts that differ in every snapshot of a node, even if the node has not changed. */
const VOLATILE_PARTS: ReadonlySet<string> = new Set([
  "observedAt",
  "bootId",
  "sequence",
  "clockSteppedMs",
  "clockSteppedSince",
  "stats",
] satisfies (keyof Snapshot)[]);
export const isVolatilePart = (part: string): boolean => VOLATILE_PARTS.has(part);
/** The parts that change only with the node. */
export const STABLE_PARTS = PARTS.filter((part) => !isVolatilePart(part));

/** The snapshot without `VOLATILE_PARTS`. */
export function stableParts(snapshot: Snapshot): Snapshot {
  const stable: Partial<Record<keyof Snapshot, unknown>> = {};
  for (const part of STABLE_PARTS) if (snapshot[part] !== undefined) stable[part] = snapshot[part];
  return stable as Snapshot;
}

export const isCacheable = (kind: Kind): boolean => traitsOf(kind).cacheable;

/** A snapshot without `VOLATILE_PARTS`, except for the sizes that cacheable kinds read; null: the kind is not cacheable. */
export function cacheableInput(kind: Kind, snapshot: Snapshot): Snapshot | null {
  if (!isCacheable(kind)) return null;
  const rest = stableParts(snapshot);
  const node = snapshot.stats?.node;
  if (node === undefined) return rest;
  const fs = node.fs && { capacityBytes: node.fs.capacityBytes };
  const rlimit = node.rlimit && { maxpid: node.rlimit.maxpid };
  return { ...rest, stats: { node: { fs, rlimit, swap: node.swap } } };
}
