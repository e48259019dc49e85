import type { InputIssue } from "./input-issue.ts";
import { byText } from "./order.ts";

/** Finds the name that was probably meant: the one with the fewest changed letters, if those are few; null: none. */
export const nearName = (given: string, names: readonly string[]): string | null =>
  nearNames(given, names, 1)[0] ?? null;

/** Names that a proposal has at most. */
const MAX_MEANT = 3;

/**
 * The names that were probably meant by an unknown word: the nearest by letters; else those that begin with it, such
 * as `eviction` for `evict`; else those that end with it, such as `image-gc` for `gc`; else those whose first parts
 * are near, such as `xeon-2s` for `xeom`; else those that it abbreviates, such as `eviction` for `evct`. Empty: none.
 */
export function similarNames(given: string, names: readonly string[]): readonly string[] {
  const near = nearName(given, names);
  if (near !== null) return [near];
  const word = given.toLowerCase();
  if (word.length < 2) return [];
  const begunBy = (by: string): readonly string[] => names.filter((name) => name.toLowerCase().startsWith(by));
  const begun = begunBy(word);
  if (begun.length > 0) return begun.slice(0, MAX_MEANT);
  const ended = names.filter((name) => name.toLowerCase().endsWith(`-${word}`));
  if (ended.length > 0) return ended.slice(0, MAX_MEANT);
  const firstParts = names.flatMap((name) => Array.from(name.matchAll(/-/g), ({ index }) => name.slice(0, index)));
  const first = word.length < SHORTEST_PART ? null : nearName(word, firstParts);
  if (first !== null) return begunBy(`${first.toLowerCase()}-`).slice(0, MAX_MEANT);
  return word.length < SHORTEST_PART
    ? []
    : names.filter((name) => isShortFor(word, name.toLowerCase())).slice(0, MAX_MEANT);
}
/** Shorter parts are similar to too many names. */
const SHORTEST_PART = 4;

/** Whether a word has the first letter of a name, and then others of it in their order. */
function isShortFor(word: string, name: string): boolean {
  const next = (from: number, letter: string): number => (from === 0 ? 0 : name.indexOf(letter, from) + 1);
  return word[0] === name[0] && word.length < name.length && [...word.slice(1)].reduce(next, 1) > 0;
}

/** The only name that was probably meant; null: none, or several. */
export function similarName(given: string, names: readonly string[]): string | null {
  const [one = null, another] = similarNames(given, names);
  return another === undefined ? one : null;
}

/** For example `did you mean image-gc or container-gc?`; null: no name is similar. `quote` surrounds each. */
export function suggestionText(given: string, names: readonly string[], quote = ""): string | null {
  const meant = similarNames(given, names).map((name) => quote + name + quote);
  const last = meant.pop();
  if (last === undefined) return null;
  return `did you mean ${meant.length === 0 ? last : `${meant.join(", ")} or ${last}`}?`;
}

/** A proposal of similar names, else another text. */
export const didYouMean = (given: string, names: readonly string[], otherwise: string): string =>
  suggestionText(given, names) ?? otherwise;

/** The issue for a field at `path` with an unknown word, with the similar word. */
export function notAmongIssue(path: string, given: string, words: readonly string[]): InputIssue {
  const [near, proposal] = [similarName(given, words), suggestionText(given, words)];
  const message = `must be one of ${words.join(", ")}`;
  if (proposal === null) return { path, message };
  return { path, message: `${message}; ${proposal}`, ...(near === null ? {} : { near }) };
}

/** The maximum length of a searched name. */
export const LONGEST = 253;

/** The maximum number of changed letters, however long the name. */
const MAX_CHANGED = 16;

/** The names within few changed letters, at most `limit`, nearest first. */
export function nearNames(given: string, names: readonly string[], limit = 3): readonly string[] {
  if (given.length > LONGEST) return [];
  const most = Math.min(MAX_CHANGED, Math.max(1, Math.floor(given.length / 3)));
  const lower = given.toLowerCase();
  return names
    .filter((name) => Math.abs(name.length - given.length) <= most)
    .map((name) => ({ name, distance: distanceOf(lower, name.toLowerCase(), most) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance || byText(a.name, b.name))
    .slice(0, limit)
    .map(({ name }) => name);
}

/** The number of letters to add, remove, change, or swap with their neighbour; counting stops above `most`. */
export function distanceOf(a: string, b: string, most: number): number {
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from++;
  let [aEnd, bEnd] = [a.length, b.length];
  for (; aEnd > from && bEnd > from && a[aEnd - 1] === b[bEnd - 1]; aEnd--) bEnd--;
  const width = bEnd - from;
  let before = new Uint16Array(width + 1);
  let last = Uint16Array.from({ length: width + 1 }, (_, j) => j);
  let now = new Uint16Array(width + 1);
  const at = (row: Uint16Array, j: number): number => row[j] as number;
  for (let i = 1; i <= aEnd - from; i++) {
    let least = i;
    now[0] = i;
    const [c, previous] = [a[from + i - 1], a[from + i - 2]];
    for (let j = 1; j <= width; j++) {
      const d = b[from + j - 1];
      let best = Math.min(at(last, j) + 1, at(now, j - 1) + 1, at(last, j - 1) + (c === d ? 0 : 1));
      const isSwap = i > 1 && j > 1 && c === b[from + j - 2] && previous === d;
      if (isSwap) best = Math.min(best, at(before, j - 2) + 1);
      now[j] = best;
      least = Math.min(least, best);
    }
    if (least > most) return least;
    [before, last, now] = [last, now, before];
  }
  return at(last, width);
}
