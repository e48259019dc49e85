/**
 * Go's unstable sort, step for step: equal or inconsistently compared elements end where Go puts them. The sort is
 * deterministic: its random numbers are seeded with the length. Go 1.26: slices.SortFunc.
 */
export function sortFunc<T>(list: T[], isLess: (a: T, b: T) => boolean): void {
  const sorter: Sorter<T> = {
    list,
    less: (i, j) => isLess(list[i] as T, list[j] as T),
    swap: (i, j) => {
      [list[i], list[j]] = [list[j] as T, list[i] as T];
    },
  };
  quickSort(sorter, 0, list.length, bitLength(list.length));
}

/** Compares and swaps elements by index. */
interface Sorter<T = unknown> {
  readonly list: T[];
  readonly less: (i: number, j: number) => boolean;
  readonly swap: (i: number, j: number) => void;
}
const bitLength = (n: number): number => 32 - Math.clz32(n);

const MAX_INSERTION = 12;
const SHORTEST_NINTHER = 50;
const SHORTEST_SHIFTING = 50;
const MAX_STEPS = 5;
const MAX_SWAPS = 12;

/** Sorts [from, to). `limit`: the number of bad pivots before heapsort takes over. Go: pdqsortCmpFunc. */
function quickSort(sorter: Sorter, from: number, to: number, limit: number): void {
  let [a, b, left] = [from, to, limit];
  let wasBalanced = true;
  let wasPartitioned = true;
  for (;;) {
    const length = b - a;
    if (length <= MAX_INSERTION || left === 0) {
      (left === 0 && length > MAX_INSERTION ? heapSort : insertionSort)(sorter, a, b);
      return;
    }
    if (!wasBalanced) {
      breakPatterns(sorter, a, length);
      left--;
    }
    let { pivot, hint } = choosePivot(sorter, a, length);
    if (hint === "decreasing") {
      for (let [i, j] = [a, b - 1]; i < j; i++, j--) sorter.swap(i, j);
      pivot = b - 1 - (pivot - a);
      hint = "increasing";
    }
    if (wasBalanced && wasPartitioned && hint === "increasing" && partialInsertionSort(sorter, a, b)) return;
    if (a > 0 && !sorter.less(a - 1, pivot)) {
      a = partitionEqual(sorter, a, b, pivot);
      continue;
    }
    const { middle, was } = partition(sorter, a, b, pivot);
    wasPartitioned = was;
    const [before, after] = [middle - a, b - middle];
    wasBalanced = Math.min(before, after) >= Math.floor(length / 8);
    if (before < after) {
      quickSort(sorter, a, middle, left);
      a = middle + 1;
    } else {
      quickSort(sorter, middle + 1, b, left);
      b = middle;
    }
  }
}

/** Go: insertionSortCmpFunc. */
function insertionSort({ less, swap }: Sorter, a: number, b: number): void {
  for (let i = a + 1; i < b; i++) for (let j = i; j > a && less(j, j - 1); j--) swap(j, j - 1);
}

/** Go: heapSortCmpFunc. */
function heapSort(sorter: Sorter, a: number, b: number): void {
  const size = b - a;
  for (let i = Math.floor((size - 1) / 2); i >= 0; i--) siftDown(sorter, i, size, a);
  for (let i = size - 1; i >= 0; i--) {
    sorter.swap(a, a + i);
    siftDown(sorter, 0, i, a);
  }
}
function siftDown({ less, swap }: Sorter, from: number, size: number, first: number): void {
  let root = from;
  for (;;) {
    let child = 2 * root + 1;
    if (child >= size) return;
    if (child + 1 < size && less(first + child, first + child + 1)) child++;
    if (!less(first + root, first + child)) return;
    swap(first + root, first + child);
    root = child;
  }
}

/** Moves elements less than the pivot before its new place; `was`: they already were. Go: partitionCmpFunc. */
function partition({ less, swap }: Sorter, a: number, b: number, pivot: number) {
  swap(a, pivot);
  let [i, j] = [a + 1, b - 1];
  for (let was = true; ; was = false) {
    while (i <= j && less(i, a)) i++;
    while (i <= j && !less(j, a)) j--;
    if (i > j) {
      swap(j, a);
      return { middle: j, was };
    }
    swap(i++, j--);
  }
}

/** Moves elements equal to the pivot to the front; returns where they end. Go: partitionEqualCmpFunc. */
function partitionEqual({ less, swap }: Sorter, a: number, b: number, pivot: number): number {
  swap(a, pivot);
  let [i, j] = [a + 1, b - 1];
  for (;;) {
    while (i <= j && !less(a, i)) i++;
    while (i <= j && less(a, j)) j--;
    if (i > j) return i;
    swap(i++, j--);
  }
}

/** Fixes a few misplaced elements; returns whether everything is sorted then. Go: partialInsertionSortCmpFunc. */
function partialInsertionSort({ less, swap }: Sorter, a: number, b: number): boolean {
  let i = a + 1;
  for (let step = 0; step < MAX_STEPS; step++) {
    while (i < b && !less(i, i - 1)) i++;
    if (i === b) return true;
    if (b - a < SHORTEST_SHIFTING) return false;
    swap(i, i - 1);
    if (i - a >= 2) for (let j = i - 1; j >= 1 && less(j, j - 1); j--) swap(j, j - 1);
    if (b - i >= 2) for (let j = i + 1; j < b && less(j, j - 1); j++) swap(j, j - 1);
  }
  return false;
}

/** Go: breakPatternsCmpFunc, xorshift. */
function breakPatterns({ swap }: Sorter, a: number, length: number): void {
  if (length < 8) return;
  let random = BigInt(length);
  const mask = (1n << BigInt(bitLength(length))) - 1n;
  const middle = a + Math.floor(length / 4) * 2;
  for (let i = middle - 1; i <= middle + 1; i++) {
    random = BigInt.asUintN(64, random ^ (random << 13n));
    random ^= random >> 7n;
    random = BigInt.asUintN(64, random ^ (random << 17n));
    const other = Number(random & mask);
    swap(i, a + (other >= length ? other - length : other));
  }
}

/** Returns a median, and whether the sampled elements are ascending or descending. Go: choosePivotCmpFunc. */
function choosePivot({ less }: Sorter, a: number, length: number) {
  let swaps = 0;
  const median = (first: number, second: number, third: number): number => {
    let [x, y, z] = [first, second, third];
    const order = (i: number, j: number): readonly [number, number] => {
      if (!less(j, i)) return [i, j];
      swaps++;
      return [j, i];
    };
    [x, y] = order(x, y);
    [y, z] = order(y, z);
    [x, y] = order(x, y);
    return y;
  };
  const quarter = Math.floor(length / 4);
  let at: readonly [number, number, number] = [a + quarter, a + quarter * 2, a + quarter * 3];
  if (length >= SHORTEST_NINTHER) {
    const [i, j, k] = at;
    at = [median(i - 1, i, i + 1), median(j - 1, j, j + 1), median(k - 1, k, k + 1)];
  }
  const pivot = length >= 8 ? median(...at) : at[1];
  const hint = swaps === 0 ? "increasing" : swaps === MAX_SWAPS ? "decreasing" : "unknown";
  return { pivot, hint };
}
