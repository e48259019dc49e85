import type { Kind } from "../model/decision.ts";
import { traitsOf } from "../model/kinds.ts";
import { PARTS, type Snapshot } from "../model/snapshot.ts";

/** The parts that differ in every snapshot of a node, even if the node has not changed. */
export const ALWAYS_NEW = [
  "observedAt",
  "bootId",
  "sequence",
  "clockSteppedMs",
  "clockSteppedSince",
  "stats",
] as const satisfies readonly (keyof Snapshot)[];
const NEW: ReadonlySet<keyof Snapshot> = new Set(ALWAYS_NEW);
/** The other parts. */
export const LASTING = PARTS.filter((part) => !NEW.has(part));

export const isCacheable = (kind: Kind): boolean => traitsOf(kind).cacheable;

/** A snapshot without `ALWAYS_NEW`, except for the sizes that cacheable kinds read; null: the kind is not cacheable. */
export function cacheableInput(kind: Kind, snapshot: Snapshot): Snapshot | null {
  if (!isCacheable(kind)) return null;
  const rest: Partial<Record<keyof Snapshot, unknown>> = {};
  for (const part of LASTING) if (snapshot[part] !== undefined) rest[part] = snapshot[part];
  const node = snapshot.stats?.node;
  if (node === undefined) return rest as Snapshot;
  const fs = node.fs && { capacityBytes: node.fs.capacityBytes };
  const rlimit = node.rlimit && { maxpid: node.rlimit.maxpid };
  rest.stats = { node: { fs, rlimit, swap: node.swap } };
  return rest as Snapshot;
}
