/** Whole numbers from `least` to `most`. */
export interface Range {
  readonly least: number;
  readonly most: number;
}

/**
 * The amounts up to `free`, in units of `step`, by how many of the sizes they need at least: those that one can hold, those
 * that take two, and so on. Ascending; ranges without a number are left out.
 */
export function rangesOf(sizes: readonly number[], free: number, step: number): readonly Range[] {
  const ranges: Range[] = [];
  let below = 0;
  let sum = 0;
  for (const size of [...sizes].sort((a, b) => b - a)) {
    sum += size;
    const most = Math.floor(Math.min(sum, free) / step);
    if (most > below) ranges.push({ least: below + 1, most });
    below = Math.max(below, most);
  }
  return ranges;
}

/** The largest number that holds, given that the least does, and that none holds above one that does not. */
export function largestThat({ least, most }: Range, holds: (n: number) => boolean): number {
  let yes = least;
  let no = most + 1;
  while (no - yes > 1) {
    const middle = yes + Math.floor((no - yes) / 2);
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}

export interface Both {
  readonly first: number;
  readonly second: number;
}
/** The largest `first` that holds with any `second`, and with it the largest `second`; ranges ascending. */
export function largestBoth(
  firsts: readonly Range[],
  seconds: readonly Range[],
  holds: (first: number, second: number) => boolean,
): Both | undefined {
  for (const range of [...firsts].reverse()) {
    const tops = seconds.map(({ least }) =>
      holds(range.least, least) ? largestThat(range, (n) => holds(n, least)) : 0,
    );
    const first = tops.reduce((a, b) => Math.max(a, b), 0);
    const second = seconds[tops.lastIndexOf(first)];
    if (first === 0 || second === undefined) continue;
    return { first, second: largestThat(second, (n) => holds(first, n)) };
  }
  return undefined;
}
