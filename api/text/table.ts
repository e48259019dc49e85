import { type Color, clip, clipStart, type Paint, widthOf } from "./style.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** In a narrow terminal the column with the lowest number goes first; without a number it stays. */
  readonly giveUp?: number;
  /** May be cut down to this many cells once no column is left to give up. */
  readonly shrinkTo?: number;
  /** Side that is cut off. The end of a path says more than its start. */
  readonly cut?: "start";
}
export interface Cell {
  readonly text: string;
  readonly color?: Color;
}
export interface Row {
  /** One for each column. The text must be printable; colours within it only where the column does not shrink. */
  readonly cells: readonly (string | Cell)[];
  /** Lines below the row, over the whole width. */
  readonly notes?: readonly string[];
}

const GAP = "  ";

/** Columns side by side under bold titles, as wide as their widest cell; empty columns are left out. */
export function table(
  columns: readonly Column[],
  rows: readonly Row[],
  columnsOfTerminal: number,
  paint: Paint,
): string {
  const kept = fitting(columns, rows, columnsOfTerminal);
  const line = (cells: readonly string[]): string => cells.join(GAP).trimEnd();
  const header = line(kept.map(({ column, width }) => paint("bold", pad(column.title, width, column.align))));
  const lines = rows.flatMap((row) => [
    line(kept.map(({ column, index, width }) => drawn(row.cells[index], column, width, paint))),
    ...(row.notes ?? []),
  ]);
  return `${[header, ...lines].join("\n")}\n`;
}

interface Fitted {
  readonly column: Column;
  readonly index: number;
  readonly width: number;
}

function fitting(columns: readonly Column[], rows: readonly Row[], available: number): readonly Fitted[] {
  let kept = columns
    .map((column, index) => ({
      column,
      index,
      width: widest(
        column,
        rows.map((row) => textOf(row.cells[index])),
      ),
    }))
    .filter(({ width }) => width > 0);
  while (totalWidth(kept) > available) {
    const next = kept.reduce<Fitted | undefined>((a, b) => (order(b) < order(a) ? b : a), undefined);
    if (next?.column.giveUp === undefined) break;
    kept = kept.filter((one) => one !== next);
  }
  let excess = totalWidth(kept) - available;
  return kept.map((one) => {
    if (excess <= 0 || one.column.shrinkTo === undefined) return one;
    const width = Math.max(Math.min(one.column.shrinkTo, one.width), one.width - excess);
    excess -= one.width - width;
    return { ...one, width };
  });
}
const order = (one: Fitted | undefined): number => one?.column.giveUp ?? Number.POSITIVE_INFINITY;
const totalWidth = (kept: readonly Fitted[]): number =>
  kept.reduce((sum, { width }) => sum + width, GAP.length * (kept.length - 1));

/** 0: no row has anything to say there. */
function widest(column: Column, texts: readonly string[]): number {
  const widths = texts.map(widthOf);
  return widths.every((width) => width === 0) ? 0 : Math.max(widthOf(column.title), ...widths);
}

function drawn(cell: string | Cell | undefined, column: Column, width: number, paint: Paint): string {
  const cut = column.cut === "start" ? clipStart : clip;
  const text = pad(cut(textOf(cell), width), width, column.align);
  return typeof cell === "object" && cell.color !== undefined ? paint(cell.color, text) : text;
}
const textOf = (cell: string | Cell | undefined): string => (typeof cell === "object" ? cell.text : (cell ?? ""));

function pad(text: string, width: number, align: "right" | undefined): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? space + text : text + space;
}

export interface BarPart {
  readonly size: number;
  readonly draw: (cells: number) => string;
}

/**
 * A bar of `width` cells, divided among the parts by size: the largest remainders win the last cells, and a part that is
 * there at all gets a cell of the largest one. Empty when nothing has a size.
 */
export function bar(parts: readonly BarPart[], width: number): string {
  const total = parts.reduce((sum, part) => sum + Math.max(0, part.size), 0);
  if (!(total > 0) || !Number.isFinite(total)) return "";
  const exact = parts.map((part) => (Math.max(0, part.size) / total) * width);
  const cells = exact.map((n) => (n > 0 ? Math.max(1, Math.floor(n)) : 0));
  const remainders = exact
    .map((n, i) => ({ i, rest: n - (cells[i] ?? 0) }))
    .sort((a, b) => b.rest - a.rest || a.i - b.i);
  let free = width - cells.reduce((a, b) => a + b, 0);
  for (const { i } of remainders) {
    if (free <= 0) break;
    if ((exact[i] ?? 0) === 0) continue;
    cells[i] = (cells[i] ?? 0) + 1;
    free--;
  }
  while (free < 0) {
    const largest = cells.indexOf(Math.max(...cells));
    cells[largest] = (cells[largest] ?? 0) - 1;
    free++;
  }
  return parts.map((part, i) => part.draw(cells[i] ?? 0)).join("");
}

/** How much of a work is done, of 0 to 1. */
export const shareBar = (share: number, width: number): string =>
  bar(
    [
      { size: share, draw: (cells) => "█".repeat(cells) },
      { size: 1 - share, draw: (cells) => "░".repeat(cells) },
    ],
    width,
  );

/** The look of a bar's part: its colour, its character and its meaning. */
export type Glyph = readonly [color: Color, glyph: string, meaning: string];

/** A line that tells what the characters mean that stand in what was drawn; in a narrow terminal there are no bars. */
export function legendText(glyphs: readonly Glyph[], drawn: string, paint: Paint): string {
  const seen = glyphs.filter(([, glyph]) => drawn.includes(glyph));
  if (seen.length === 0) return "";
  return `${seen.map(([color, glyph, meaning]) => `${paint(color, glyph)} ${meaning}`).join("   ")}\n`;
}

interface TreeLine<T> {
  readonly item: T;
  /** The text before the item's label: `│  └─ `. */
  readonly branch: string;
  /** The text before further lines of the item, so that the drawing goes on: `│     │  `. */
  readonly below: string;
}

/** Draws items as a forest, depth first, each parent's children in the order given. An item whose parent is not there is a root. */
export function treeLines<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  parentOf: (item: T) => string,
): TreeLine<T>[] {
  const keys = new Set(items.map(keyOf));
  const children = new Map<string | undefined, T[]>();
  for (const item of items) {
    const key = parentOf(item);
    const parent = keys.has(key) && key !== keyOf(item) ? key : undefined;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [item]);
    else siblings.push(item);
  }
  const lines: TreeLine<T>[] = [];
  const draw = (item: T, branch: string, indent: string): void => {
    const own = children.get(keyOf(item)) ?? [];
    lines.push({ item, branch, below: own.length > 0 ? `${indent}│  ` : `${indent}   ` });
    for (const [i, child] of own.entries()) {
      const isLast = i === own.length - 1;
      draw(child, `${indent}${isLast ? "└─ " : "├─ "}`, `${indent}${isLast ? "   " : "│  "}`);
    }
  };
  for (const root of children.get(undefined) ?? []) draw(root, "", "");
  return lines;
}
