import type { ImageGcDecision } from "../../model/image-gc.ts";
import { bar, type Glyph, legendText } from "../bar.ts";
import type { Shown } from "./shown.ts";

const WIDEST = 64;
const NARROWEST = 16;
const [STAYS, MISSING, FREED, FREE, LOW, HIGH] = ["█", "×", "▒", "·", "╎", "│"] as const;

/** The image file system: what stays, what would be freed, what is wanted beyond that, and where the thresholds are. */
export function fileSystemBar({ decision, columns, paint }: Shown<ImageGcDecision>): string {
  const { fileSystem, policy, freedBytes } = decision;
  if (fileSystem === null || fileSystem.capacityBytes <= 0) return "";
  const { capacityBytes, availableBytes, wantedBytes } = fileSystem;
  const { lowThresholdPercent: low, highThresholdPercent: high } = policy;
  const glyphs = [
    ["cyan", STAYS, "used"],
    ["red", MISSING, "wanted, and nothing there to free"],
    ["yellow", FREED, "would be freed"],
    ["dim", FREE, "available"],
    ["bold", LOW, `low ${low} %`],
    ["bold", HIGH, `high ${high} %`],
  ] as const satisfies readonly Glyph[];
  const used = Math.max(0, capacityBytes - availableBytes);
  const freed = Math.min(used, freedBytes);
  const missing = Math.min(used - freed, Math.max(0, (wantedBytes ?? 0) - freed));
  const sizes = [used - freed - missing, missing, freed, capacityBytes - used];
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns) - 2);
  const cells = bar(
    sizes.map((size, i) => ({ size, draw: (n: number) => (glyphs[i]?.[1] ?? "").repeat(n) })),
    width,
  );
  const marks = [
    [low, LOW],
    [high, HIGH],
  ] as const;
  const marked = withMarks(
    cells,
    marks.map(([percent, mark]) => ({ at: Math.round((percent / 100) * width), mark })),
  );
  const drawn = marked.replace(/(.)\1*/gu, (run) => paint(colorOf(glyphs, run), run));
  return `${drawn}\n${legendText(glyphs, drawn, paint)}`;
}

const colorOf = (glyphs: readonly Glyph[], run: string) =>
  glyphs.find(([, glyph]) => run.startsWith(glyph))?.[0] ?? "dim";

/** A mark stands before the cell at its place, so that it takes none away. */
function withMarks(cells: string, marks: readonly { readonly at: number; readonly mark: string }[]): string {
  const all = Array.from(cells);
  return [...all, ""]
    .map((cell, i) => [...marks.filter(({ at }) => at === i).map((m) => m.mark), cell].join(""))
    .join("");
}
