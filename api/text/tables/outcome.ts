import type { Color, Paint } from "../style.ts";

/** How it ended, to be seen from afar: a coloured word in capitals, and of what it speaks. */
export const outcome = (paint: Paint, color: Color, word: string, text: string): string =>
  `${paint("bold", paint(color, word))}  ${text}\n`;

/** Sentences below a title; empty without any. The texts must be printable. */
export const sentenceList = (paint: Paint, title: string, sentences: readonly string[]): string =>
  sentences.length === 0 ? "" : [paint("bold", title), ...sentences.map((text) => `- ${text}`), ""].join("\n");
