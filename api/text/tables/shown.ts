import type { Explain, Verdict } from "../../model/decision.ts";
import type { PodRef } from "../../model/forms.ts";
import type { Machine } from "../../model/machine.ts";
import type { Color, Paint } from "../style.ts";

/** A decision with what its table needs of the terminal, and of the question. */
export interface Shown<D> {
  readonly decision: D;
  readonly verdict?: Verdict | undefined;
  readonly columns: number;
  readonly paint: Paint;
  /** The reasons of a place (a resource's name, a cgroup's path) as dim lines; empty where none are asked for. */
  readonly notesAt: (at: string) => readonly string[];
  /** The machine that was decided on, for pictures of it. */
  readonly machine?: Machine | undefined;
  /** The pod that asked to come in. */
  readonly asked?: PodRef | undefined;
  /** When it was so, in epoch ms: ages are told from then. */
  readonly observedAtMs?: number | undefined;
  /** `full`: no list is shortened. */
  readonly explain?: Explain | undefined;
}

/** Reasons of what a shortened list leaves out are not told elsewhere either. */
export function swallowNotes({ notesAt }: Pick<Shown<unknown>, "notesAt">, places: readonly string[]): void {
  for (const place of places) notesAt(place);
}

/** Parts of an answer below each other, an empty line between those that have something to say. */
export const sections = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n");

/** A caption with the reasons of the node as a whole. */
export const caption = ({ paint, notesAt }: Shown<unknown>, text: string): string =>
  `${[paint("dim", text), ...notesAt("node").map((note) => `  ${note}`)].join("\n")}\n`;

/** How it ended, to be seen from afar: a coloured word in capitals, and of what it speaks. */
export const outcome = (paint: Paint, color: Color, word: string, text: string): string =>
  `${paint("bold", paint(color, word))}  ${text}\n`;

/** Sentences below a title; empty without any. The texts must be printable. */
export const sentenceList = (paint: Paint, title: string, sentences: readonly string[]): string =>
  sentences.length === 0 ? "" : [paint("bold", title), ...sentences.map((text) => `- ${text}`), ""].join("\n");

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
