/** What a search chooses from: something that frees amounts, in the order of the need, at a cost. */
export interface Item {
  /** Its place in the list that it came from; the last tie-breaker. */
  readonly index: number;
  readonly frees: readonly number[];
  readonly cost: number;
}
/** Items that together free all that is needed. */
export interface Cover {
  readonly items: readonly Item[];
  readonly cost: number;
}

/** Costs are sums of quotients: what differs by less is equal. */
export const EQUAL = 1e-9;

/** The sum over the needed resources of freed / needed: each resource weighs the same, as in the kubelet's distance. */
export function costOf(weights: readonly number[], frees: readonly number[]): number {
  let sum = 0;
  for (let r = 0; r < weights.length; r++) sum += (weights[r] as number) * (frees[r] as number);
  return sum;
}
/** What nobody has freed of `rest` costs at least itself. */
export function leastCost(weights: readonly number[], rest: readonly number[]): number {
  let sum = 0;
  for (let r = 0; r < weights.length; r++) sum += (weights[r] as number) * Math.max(0, rest[r] as number);
  return sum;
}

export function identical(a: Item, b: Item): boolean {
  for (let r = 0; r < a.frees.length; r++) if (a.frees[r] !== b.frees[r]) return false;
  return true;
}
/** What stays open of `rest` with the item gone. */
export function less(rest: readonly number[], { frees }: Item): readonly number[] {
  const after = rest.slice();
  for (let r = 0; r < after.length; r++) (after[r] as number) -= frees[r] as number;
  return after;
}
/** Nothing is open any more. */
export function isFree(rest: readonly number[]): boolean {
  for (const amount of rest) if (amount > 0) return false;
  return true;
}
