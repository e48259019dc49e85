import { type Cover, EQUAL, type Item, identical, isFree, leastCost, less } from "./cover.ts";

interface Search {
  /** What a unit of each resource costs. */
  readonly weights: readonly number[];
  /** Dearest first. */
  readonly items: readonly Item[];
  /** Per resource: what the items from a place on free together. */
  readonly sums: readonly Float64Array[];
  readonly taken: Item[];
  best: Cover;
  steps: number;
}

/**
 * The cheapest items that free `need`, and of those sets the smallest; `known` is a set that does. Depth first, each item
 * with and then without, cut by what is left and by the share of the need that is still open, which costs at least itself.
 * `exact` false: it ran out of `steps`.
 */
export function cheapestItems(
  need: readonly number[],
  weights: readonly number[],
  items: readonly Item[],
  known: Cover,
  steps: number,
): { readonly cover: Cover; readonly exact: boolean } {
  const sorted = [...items].sort((a, b) => b.cost - a.cost || a.index - b.index);
  const sums = need.map((_, r) => {
    const sum = new Float64Array(sorted.length + 1);
    for (let i = sorted.length - 1; i >= 0; i--) {
      sum[i] = (sum[i + 1] as number) + ((sorted[i] as Item).frees[r] as number);
    }
    return sum;
  });
  const search: Search = { weights, items: sorted, sums, taken: [], best: known, steps };
  extend(search, 0, need, 0);
  return { cover: search.best, exact: search.steps > 0 };
}

function extend(search: Search, start: number, rest: readonly number[], cost: number): void {
  const { items, weights, sums, taken } = search;
  if (isFree(rest)) {
    const cheaper = cost < search.best.cost - EQUAL;
    const smaller = cost <= search.best.cost + EQUAL && taken.length < search.best.items.length;
    if (cheaper || smaller) search.best = { items: [...taken], cost };
    return;
  }
  const bound = cost + leastCost(weights, rest);
  for (let i = start; i < items.length; i++) {
    if (search.steps-- <= 0 || !promises(search, bound) || !canFree(sums, rest, i)) return;
    const item = items[i] as Item;
    // without its twin, so without it too
    if (i > start && identical(item, items[i - 1] as Item)) continue;
    taken.push(item);
    extend(search, i + 1, less(rest, item), cost + item.cost);
    taken.pop();
  }
}
/** One more item may still make it cheaper, or as cheap with fewer. */
function promises({ best, taken }: Search, bound: number): boolean {
  if (bound < best.cost - EQUAL) return true;
  return bound <= best.cost + EQUAL && taken.length + 1 < best.items.length;
}
function canFree(sums: readonly Float64Array[], rest: readonly number[], start: number): boolean {
  for (let r = 0; r < rest.length; r++) if ((rest[r] as number) > (sums[r]?.[start] as number)) return false;
  return true;
}
