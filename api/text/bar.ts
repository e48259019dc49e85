import type { Color, Paint } from "./style.ts";

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

/** What a bar is drawn with: a part's colour, its character and its meaning. */
export type Glyph = readonly [color: Color, glyph: string, meaning: string];

/** A line that tells what the characters mean that stand in what was drawn; in a narrow terminal there are no bars. */
export function legendText(glyphs: readonly Glyph[], drawn: string, paint: Paint): string {
  const seen = glyphs.filter(([, glyph]) => drawn.includes(glyph));
  if (seen.length === 0) return "";
  return `${seen.map(([color, glyph, meaning]) => `${paint(color, glyph)} ${meaning}`).join("   ")}\n`;
}
