import { err, ok, type Result } from "../../model/result.ts";
import type { NumaMask } from "./hint.ts";

/** Of one merge; a step is some nanoseconds. Sixteen nodes with all their sets in six lists stay below. */
export const MOST_MERGE_STEPS = 2 ** 24;

/** A merge that would take too long. The kubelet would try, and stand still meanwhile. */
export interface MergeRefusal {
  readonly code: "too_many_combinations";
  readonly message: string;
}

/**
 * Every set of nodes, none empty, that is common to one set of each list. The combinations are the product of the lists, but
 * their intersections are at most 2^n, so list after list is folded into what is reached so far.
 */
export function intersections(
  lists: readonly ReadonlySet<NumaMask>[],
  all: NumaMask,
): Result<ReadonlySet<NumaMask>, MergeRefusal> {
  let reached: ReadonlySet<NumaMask> = new Set(all === 0 ? [] : [all]);
  let steps = 0;
  const transformed = 3 * (32 - Math.clz32(all)) * (all + 1);
  for (const list of lists) {
    const pairs = reached.size * list.size;
    steps += Math.min(pairs, transformed);
    if (steps > MOST_MERGE_STEPS) return err(tooMany(lists));
    reached = pairs <= transformed ? byPairs(reached, list) : byTransform(reached, list, all);
  }
  return ok(reached);
}
function tooMany(lists: readonly ReadonlySet<NumaMask>[]): MergeRefusal {
  const sizes = lists.map((list) => list.size).join(" x ");
  const message = `merging ${sizes} NUMA hints takes more than ${MOST_MERGE_STEPS} steps`;
  return { code: "too_many_combinations", message };
}

function byPairs(left: ReadonlySet<NumaMask>, right: ReadonlySet<NumaMask>): ReadonlySet<NumaMask> {
  const met = new Set<NumaMask>();
  for (const a of left) for (const b of right) met.add(a & b);
  met.delete(0);
  return met;
}

/** The same for long lists: pairs that meet in a superset are counted by product, then the counts are taken apart. */
function byTransform(left: ReadonlySet<NumaMask>, right: ReadonlySet<NumaMask>, all: NumaMask): ReadonlySet<NumaMask> {
  const a = supersets(left, all);
  const b = supersets(right, all);
  // at most 2^16 times 2^16 pairs: exact
  for (let mask = 0; mask <= all; mask++) a[mask] = (a[mask] as number) * (b[mask] as number);
  addSupersets(a, -1);
  const met = new Set<NumaMask>();
  for (let mask = 1; mask <= all; mask++) if (a[mask] !== 0) met.add(mask);
  return met;
}
/** For each mask, how many of `masks` hold all its nodes. */
function supersets(masks: ReadonlySet<NumaMask>, all: NumaMask): Float64Array {
  const counts = new Float64Array(all + 1);
  for (const mask of masks) counts[mask] = 1;
  addSupersets(counts, 1);
  return counts;
}
/** `sign` -1 undoes what 1 did. */
function addSupersets(counts: Float64Array, sign: 1 | -1): void {
  for (let bit = 1; bit < counts.length; bit <<= 1) {
    for (let mask = 0; mask < counts.length; mask++) {
      if ((mask & bit) === 0) counts[mask] = (counts[mask] as number) + sign * (counts[mask | bit] as number);
    }
  }
}
