import type { Shown } from "./shown.ts";

interface Shortened<T> {
  readonly first: readonly T[];
  /** `and 212 more (in use 210, pinned 2)`; empty where all are shown. */
  readonly more: string;
}

/** The first `most` of a list, unless everything is asked for, and what the rest are, counted by a word of each. */
export function shortened<T>(
  all: readonly T[],
  most: number,
  { explain, paint }: Pick<Shown<unknown>, "explain" | "paint">,
  wordOf: (one: T) => string,
): Shortened<T> {
  if (explain === "full" || all.length <= most) return { first: all, more: "" };
  const rest = all.slice(most);
  const counts = [...Map.groupBy(rest, wordOf)].map(([word, { length }]) => [word, length] as const);
  const told = counts.sort((a, b) => b[1] - a[1]).map(([word, count]) => `${word} ${count}`);
  return { first: all.slice(0, most), more: paint("dim", `and ${rest.length} more (${told.join(", ")})\n`) };
}
