/** Sorts texts by their UTF-16 units, as `sort()` does without a comparison. */
export const byText = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** Sorts the entries of a map or of an object by their keys. */
export const byKey = <K extends string | number | bigint>(
  [a]: readonly [K, unknown],
  [b]: readonly [K, unknown],
): number => (a < b ? -1 : Number(a > b));
