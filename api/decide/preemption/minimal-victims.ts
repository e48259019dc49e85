/** One item of a search: it frees amounts, in the order of the requirements, at a cost. */
export interface Item {
  /** The item's position in its original list; the last tie-breaker. */
  readonly index: number;
  readonly frees: readonly number[];
  readonly cost: number;
}
/** Items that together free all that is needed. */
export interface Selection {
  readonly items: readonly Item[];
  readonly cost: number;
}

/** Costs are sums of quotients, so smaller differences are rounding errors. */
export const EQUAL = 1e-9;

/** The sum over the needed resources of freed / needed: each resource weighs the same, as in the kubelet's distance. */
export function costOf(weights: readonly number[], frees: readonly number[]): number {
  let sum = 0;
  for (let r = 0; r < weights.length; r++) sum += (weights[r] as number) * (frees[r] as number);
  return sum;
}
/** Returns a lower bound of the cost: each amount of `rest` that is not freed yet costs at least itself. */
export function leastCost(weights: readonly number[], rest: readonly number[]): number {
  let sum = 0;
  for (let r = 0; r < weights.length; r++) sum += (weights[r] as number) * Math.max(0, rest[r] as number);
  return sum;
}

export function identical(a: Item, b: Item): boolean {
  for (let r = 0; r < a.frees.length; r++) if (a.frees[r] !== b.frees[r]) return false;
  return true;
}
/** Returns what remains of `rest` without the item. */
export function less(rest: readonly number[], { frees }: Item): readonly number[] {
  const after = rest.slice();
  for (let r = 0; r < after.length; r++) (after[r] as number) -= frees[r] as number;
  return after;
}
/** Whether no requirement is open any more. */
export function isFree(rest: readonly number[]): boolean {
  for (const amount of rest) if (amount > 0) return false;
  return true;
}

interface Search {
  readonly need: readonly number[];
  /** Cheapest first. */
  readonly items: readonly Item[];
  /** Cost of the first i items. */
  readonly costs: readonly number[];
  /** Per resource and start: the most that m of the items from there on can free, at `start * (size + 1) + m`. */
  readonly most: readonly Float64Array[];
  readonly size: number;
  readonly taken: Item[];
  best: Selection | null;
  bestCost: number;
  steps: number;
}

/**
 * The fewest items that free `need`, and of those sets the cheapest; `known` is a set that does. Depth first over sets of
 * growing size, cut by what the items left can free and by their cost. `exact` false: it ran out of `steps`.
 */
export function fewestItems(
  need: readonly number[],
  items: readonly Item[],
  known: Selection,
  steps: number,
): { readonly cover: Selection; readonly exact: boolean } {
  const sorted = [...items].sort((a, b) => a.cost - b.cost || a.index - b.index);
  const costs = [0];
  for (const { cost } of sorted) costs.push((costs.at(-1) as number) + cost);
  let left = steps;
  for (let size = leastSize(need, sorted); size <= known.items.length; size++) {
    const search: Search = {
      need,
      items: sorted,
      costs,
      most: need.map((_, r) => maxOf(sorted, r, size)),
      size,
      taken: [],
      best: null,
      bestCost: size === known.items.length ? known.cost : Number.POSITIVE_INFINITY,
      steps: left,
    };
    extend(search, 0, size, need, 0);
    left = search.steps;
    if (search.best !== null || left <= 0) return { cover: search.best ?? known, exact: left > 0 };
  }
  return { cover: known, exact: true };
}

/** Fewer cannot do: the largest of each resource together are too little. */
function leastSize(need: readonly number[], items: readonly Item[]): number {
  let least = 1;
  for (let r = 0; r < need.length; r++) {
    const amounts = Float64Array.from(items, ({ frees }) => frees[r] as number).sort();
    let rest = need[r] as number;
    let size = 0;
    while (rest > 0 && size < amounts.length) rest -= amounts[amounts.length - ++size] as number;
    least = Math.max(least, size);
  }
  return least;
}

function maxOf(items: readonly Item[], r: number, size: number): Float64Array {
  const width = size + 1;
  const most = new Float64Array((items.length + 1) * width);
  const largest: number[] = [];
  for (let start = items.length - 1; start >= 0; start--) {
    const amount = (items[start] as Item).frees[r] as number;
    let place = largest.length;
    while (place > 0 && (largest[place - 1] as number) < amount) place--;
    if (place < size) largest.splice(place, 0, amount);
    if (largest.length > size) largest.pop();
    for (let m = 1; m <= size; m++) {
      most[start * width + m] = (most[start * width + m - 1] as number) + (largest[m - 1] ?? 0);
    }
  }
  return most;
}

/** Tries every set of `m` more items from `start` on. */
function extend(search: Search, start: number, m: number, rest: readonly number[], cost: number): void {
  const { items, costs, taken } = search;
  for (let i = start; i + m <= items.length; i++) {
    if (search.steps-- <= 0) return;
    const item = items[i] as Item;
    if (cost + (costs[i + m] as number) - (costs[i] as number) >= search.bestCost - EQUAL) return;
    if (!canFree(search, rest, i, m)) return;
    // an identical item was tried here before, with more items left
    if (i > start && identical(item, items[i - 1] as Item)) continue;
    const after = less(rest, item);
    if (m > 1) {
      taken.push(item);
      extend(search, i + 1, m - 1, after, cost + item.cost);
      taken.pop();
    } else if (isFree(after)) {
      search.bestCost = cost + item.cost;
      search.best = { items: [...taken, item], cost: search.bestCost };
      return;
    }
  }
}
function canFree({ most, size }: Search, rest: readonly number[], start: number, m: number): boolean {
  for (let r = 0; r < rest.length; r++) {
    if ((rest[r] as number) > (most[r]?.[start * (size + 1) + m] as number)) return false;
  }
  return true;
}
