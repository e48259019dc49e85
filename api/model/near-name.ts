/** What somebody may have meant: the name that the fewest changed letters away is, if those are few; null: none is near. */
export const nearName = (given: string, names: readonly string[]): string | null =>
  nearNames(given, names, 1)[0] ?? null;

/** No name that one looks for is longer. */
const LONGEST = 253;

/** The nearest of those that few changed letters lead to, at most `limit`, the nearest first. */
export function nearNames(given: string, names: readonly string[], limit = 3): readonly string[] {
  if (given.length > LONGEST) return [];
  const most = Math.max(1, Math.floor(given.length / 3));
  return names
    .filter((name) => Math.abs(name.length - given.length) <= most)
    .map((name) => ({ name, distance: distanceOf(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map(({ name }) => name);
}

/** Letters to add, to take away, to change, or to swap with their neighbour. */
function distanceOf(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const best = Math.min((last[j] ?? 0) + 1, (now[j - 1] ?? 0) + 1, changed);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      now.push(isSwap ? Math.min(best, (before[j - 2] ?? 0) + 1) : best);
    }
    before = last;
    last = now;
  }
  return last[b.length] ?? 0;
}
