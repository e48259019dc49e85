/** Fewer are sorted as fast by comparing. */
const MANY = 64;

/**
 * Sorted by a number, and what is equal in it by `byRest`. Of many the numbers alone are sorted, without calling back, and
 * each item is put where its number came to stand: ten thousand so take a fraction of the time that comparing them takes.
 */
export function sortedBy<T>(
  list: readonly T[],
  numberOf: (item: T) => number,
  byRest: (a: T, b: T) => number,
): readonly T[] {
  if (list.length < MANY) return [...list].sort((a, b) => numberOf(a) - numberOf(b) || byRest(a, b));
  const numbers = Float64Array.from(list, numberOf);
  const inOrder = numbers.slice().sort();
  const sorted = new Array<T>(list.length);
  const filled = new Int32Array(list.length);
  let isUnique = true;
  for (const [i, item] of list.entries()) {
    const start = firstPlace(inOrder, numbers[i] as number);
    const before = filled[start] as number;
    filled[start] = before + 1;
    sorted[start + before] = item;
    if (before > 0) isUnique = false;
  }
  if (!isUnique) sortEqual(sorted, filled, byRest);
  return sorted;
}

function firstPlace(inOrder: Float64Array, wanted: number): number {
  let low = 0;
  let high = inOrder.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((inOrder[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `filled`: how many of one number start at a place. */
function sortEqual<T>(sorted: T[], filled: Int32Array, byRest: (a: T, b: T) => number): void {
  for (let start = 0; start < sorted.length; start += filled[start] as number) {
    const count = filled[start] as number;
    if (count === 1) continue;
    const equal = sorted.slice(start, start + count).sort(byRest);
    for (const [i, item] of equal.entries()) sorted[start + i] = item;
  }
}
