import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** One cell: its name above, its owner's mark below, both in the owner's tone (a class of the style sheet). */
export interface Cell {
  readonly name: string;
  readonly mark: string;
  readonly tone: string;
  readonly words: string;
}

const WIDTH = 34;
const HEIGHT = 28;
const GAP = 4;
/** The space between rows of stacks. */
const ROOM = 8;

/** Cells stacked vertically (threads of a core), stacks side by side, at most `columns` in a row. */
export function cellGrid(stacks: readonly (readonly Cell[])[], words: string, columns = 8): Html | "" {
  if (stacks.length === 0) return "";
  const tallest = stacks.reduce((most, stack) => Math.max(most, stack.length), 1);
  const across = Math.min(columns, stacks.length);
  const rowHeight = tallest * HEIGHT + ROOM;
  const width = across * (WIDTH + GAP) + GAP;
  const height = Math.ceil(stacks.length / columns) * rowHeight;
  const drawn = stacks.flatMap((stack, i) => {
    const x = GAP + (i % columns) * (WIDTH + GAP);
    const y = Math.floor(i / columns) * rowHeight + ROOM / 2;
    return stack.map((cell, thread) => cellAt(cell, x, y + thread * HEIGHT));
  });
  return html`<svg class="cells" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${words}">${drawn}</svg>`;
}

const cellAt = ({ name, mark, tone, words }: Cell, x: number, y: number): Html | Promise<Html> =>
  html`<g transform="translate(${x} ${y})"><title>${words}</title><rect class="cell ${tone}" x=".5" y=".5" width="${WIDTH - 1}" height="${HEIGHT - 2}" rx="2"/><text x="3" y="10">${name}</text><text class="owner" x="${WIDTH - 4}" y="23">${mark}</text></g>`;

/** Without R, which marks the system. */
const LETTERS = "ABCDEFGHIJKLMNOPQSTUVWXYZ";
const TONES = 8;
/** The mark of owner number `i`: a letter, or two or three if there are more owners, and a colour. */
export const ownerMark = (i: number): { readonly mark: string; readonly tone: string } => {
  let mark = "";
  for (let rest = i; rest >= 0; rest = Math.floor(rest / LETTERS.length) - 1)
    mark = `${LETTERS[rest % LETTERS.length]}${mark}`;
  return { mark, tone: `c${i % TONES}` };
};
