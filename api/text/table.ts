import { type Color, clip, clipStart, type Paint, widthOf } from "./style.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** In a narrow terminal the column with the lowest number goes first; without a number it stays. */
  readonly giveUp?: number;
  /** May be cut down to this many cells once no column is left to give up. */
  readonly shrinkTo?: number;
  /** Of a path the end says more. */
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
