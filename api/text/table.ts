import { type Color, clip, clipStart, type Paint, widthOf, wrap } from "./style.ts";

/**
 * A column. In a narrow terminal no decisive data is lost: a column becomes shorter, moves to a line below its row, or
 * stays. Only data shown elsewhere, or a drawing without a title, is left out.
 */
export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** The column with the lowest number gives way first; without a number it keeps its place. */
  readonly giveUp?: number;
  /**
   * How the column gives way: its title and texts become shorter, it moves below the row, or it is left out. Default:
   * a column with a title moves below.
   */
  readonly giveUpTo?: ((text: string) => string) | "below" | "nothing";
  /** The minimum width once no column is left to give way; its texts then continue below, in their column. */
  readonly shrinkTo?: number;
  /** The side that is cut off instead, for data shown elsewhere. The end of a path is more telling than its start. */
  readonly cut?: "start" | "end";
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
  /** The row's place in a tree, drawn before the text of its first cell and before what goes on below. */
  readonly tree?: Pick<TreeLine<unknown>, "branch" | "below">;
}

const GAP = "  ";

/** The rows of tables that are drawn alike, by their titles; null: each table is drawn for itself. */
let alike: Map<string, Row[]> | null = null;

/**
 * Texts with tables, drawn so that a row which they share looks the same in all of them: a table has the columns that any of them
 * needs, each as wide as all of them need it.
 */
export function drawnAlike(draws: readonly (() => string)[]): readonly string[] {
  alike = new Map();
  try {
    // the first time to see all rows
    for (const draw of draws) draw();
    return draws.map((draw) => draw());
  } finally {
    alike = null;
  }
}

/** The rows by which a table is measured. */
function measuredRows(columns: readonly Column[], rows: readonly Row[]): readonly Row[] {
  if (alike === null) return rows;
  const key = columns.map(({ title }) => title).join("\n");
  const all = [...(alike.get(key) ?? []), ...rows];
  alike.set(key, all);
  return all;
}

/** Columns side by side under bold titles, as wide as their widest cell; empty columns are left out. `Column`: how it becomes narrower. */
export function table(
  columns: readonly Column[],
  rows: readonly Row[],
  columnsOfTerminal: number,
  paint: Paint,
): string {
  const { kept, below } = fitting(columns, measuredRows(columns, rows), columnsOfTerminal);
  const line = (cells: readonly string[]): string => cells.join(GAP).trimEnd();
  const titles = kept.map(({ title, width }) => wrap(title, width));
  const header = Array.from({ length: Math.max(1, ...titles.map(({ length }) => length)) }, (_, i) =>
    line(kept.map(({ column, width }, at) => paint("bold", pad(titles[at]?.[i] ?? "", width, column.align)))),
  );
  const lines = rows.flatMap((row) => [
    ...linesOf(row, kept, paint).map(line),
    ...belowLines(row, below, columnsOfTerminal),
    ...(row.notes ?? []),
  ]);
  return `${[...header, ...lines].join("\n")}\n`;
}

interface FittedColumn {
  readonly column: Column;
  readonly index: number;
  readonly title: string;
  readonly textOf: (row: Row) => string;
  readonly width: number;
  /** True: it was shortened, and stays. */
  readonly isShort?: true;
}

function fitting(
  columns: readonly Column[],
  rows: readonly Row[],
  available: number,
): { readonly kept: readonly FittedColumn[]; readonly below: readonly FittedColumn[] } {
  const measured = (one: Omit<FittedColumn, "width">): FittedColumn => ({
    ...one,
    width: widest(one.title, rows.map(one.textOf)),
  });
  let kept = columns
    .map((column, index) => {
      const ownText = (row: Row): string => `${index === 0 ? (row.tree?.branch ?? "") : ""}${textOf(row.cells[index])}`;
      return measured({ column, index, title: column.title, textOf: ownText });
    })
    .filter(({ width }) => width > 0);
  const below: FittedColumn[] = [];
  while (totalWidth(kept) > available) {
    const next = kept.reduce<FittedColumn | undefined>((a, b) => (order(b) < order(a) ? b : a), undefined);
    const { giveUp, giveUpTo } = next?.column ?? {};
    if (next === undefined || giveUp === undefined || next.isShort === true) break;
    const goesBelow = (giveUpTo ?? (next.title === "" ? "nothing" : "below")) === "below";
    // one more line per row takes more space than a cell that continues below
    if (goesBelow && totalWidth(kept) - available <= slack(kept)) break;
    if (goesBelow) below.push(next);
    if (typeof giveUpTo === "function") {
      const { title, textOf: whole } = next;
      const short = measured({ ...next, title: giveUpTo(title), textOf: (row) => giveUpTo(whole(row)), isShort: true });
      kept = kept.map((one) => (one === next ? short : one));
    } else kept = kept.filter((one) => one !== next);
  }
  // if the fixed columns do not fit either, the last of them move below too
  const [first] = kept.filter(({ title }) => title !== "");
  for (const one of kept.toReversed())
    if (leastWidth(kept) > available && one !== first && one.title !== "") {
      below.push(one);
      kept = kept.filter((other) => other !== one);
    }
  return { kept: shrunk(kept, totalWidth(kept) - available), below: below.toSorted((a, b) => a.index - b.index) };
}

/** Cells that columns lose without becoming hard to read. */
const slack = (kept: readonly FittedColumn[]): number =>
  kept.reduce((sum, { column: { shrinkTo = Number.POSITIVE_INFINITY, cut }, width }) => {
    const most = cut === undefined ? Math.floor(width / 5) : 0;
    return sum + Math.max(0, Math.min(most, width - shrinkTo));
  }, 0);

/** The columns below a row, as many per line as fit. */
function belowLines(row: Row, below: readonly FittedColumn[], available: number): readonly string[] {
  const before = row.tree === undefined ? GAP : `${row.tree.below}${GAP}`;
  const most = Math.max(10, available - widthOf(before));
  const filled = below.filter(({ index }) => textOf(row.cells[index]) !== "");
  const texts = filled.map(({ title, index }) => `${title} ${textOf(row.cells[index])}`.trimStart());
  const lines: string[] = [];
  for (const text of texts) {
    const longer = [...lines.slice(-1), text].join(GAP);
    if (lines.length > 0 && widthOf(longer) <= most) lines[lines.length - 1] = longer;
    else lines.push(text);
  }
  return lines.flatMap((line) => wrap(line, most)).map((line) => `${before}${line}`);
}

/** Narrows the columns by `excess` cells: first the columns with `cut`, in their order, then always the widest one. */
function shrunk(all: readonly FittedColumn[], excess: number): readonly FittedColumn[] {
  const widths = all.map(({ width }) => width);
  const room = all.map(({ column: { shrinkTo }, width }) => (shrinkTo === undefined ? 0 : width - shrinkTo));
  const take = (i: number, cells: number): void => {
    widths[i] = (widths[i] as number) - cells;
    room[i] = (room[i] as number) - cells;
    left -= cells;
  };
  let left = excess;
  for (const [i, { column }] of all.entries())
    if (column.cut !== undefined && left > 0) take(i, Math.max(0, Math.min(left, room[i] as number)));
  while (left > 0) {
    const shrinkable = [...widths.keys()].filter((i) => (room[i] as number) > 0);
    const [first] = shrinkable.sort((a, b) => (widths[b] as number) - (widths[a] as number) || a - b);
    if (first === undefined) break;
    take(first, 1);
  }
  return all.map((one, i) => ({ ...one, width: widths[i] as number }));
}
const order = (one: FittedColumn | undefined): number =>
  one === undefined || one.isShort === true
    ? Number.POSITIVE_INFINITY
    : (one.column.giveUp ?? Number.POSITIVE_INFINITY);
const leastWidth = (kept: readonly FittedColumn[]): number =>
  totalWidth(kept.map((one) => ({ ...one, width: Math.min(one.width, one.column.shrinkTo ?? one.width) })));
const totalWidth = (kept: readonly FittedColumn[]): number =>
  kept.reduce((sum, { width }) => sum + width, GAP.length * (kept.length - 1));

/** The width of the widest text; 0: all are empty. */
function widest(title: string, texts: readonly string[]): number {
  const widths = texts.map(widthOf);
  return widths.every((width) => width === 0) ? 0 : Math.max(widthOf(title), ...widths);
}

/** The lines of a row: the first, and those on which a text goes on that is longer than its column is wide. */
function linesOf(row: Row, kept: readonly FittedColumn[], paint: Paint): readonly (readonly string[])[] {
  const texts = kept.map(({ column: { cut }, index, textOf: of, width }) => {
    const text = of(row);
    if (widthOf(text) <= width) return [text];
    if (index === 0 && row.tree !== undefined) return branchLines(textOf(row.cells[0]), row.tree, width);
    return cut === undefined ? wrap(text, width) : [cut === "start" ? clipStart(text, width) : clip(text, width)];
  });
  return Array.from({ length: Math.max(1, ...texts.map(({ length }) => length)) }, (_, i) =>
    kept.map(({ column, index, width }, place) => {
      const cell = row.cells[index];
      const text = pad(texts[place]?.[i] ?? "", width, column.align);
      return typeof cell === "object" && cell.color !== undefined ? paint(cell.color, text) : text;
    }),
  );
}
/** A text of a tree that goes on below, beside the drawing. */
const branchLines = (text: string, { branch, below }: NonNullable<Row["tree"]>, width: number): readonly string[] =>
  wrap(text, width - Math.max(widthOf(branch), widthOf(below))).map((line, i) => `${i === 0 ? branch : below}${line}`);

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

/** A progress bar for a share of 0 to 1. */
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
