import { bar, type Glyph } from "../bar.ts";
import type { Color, Paint } from "../style.ts";

/** What is there of one resource, in whole devices. */
interface Counts {
  readonly capacity: number;
  readonly allocatable: number;
  readonly allocated: number;
}
const BAR_WIDTH = 24;

export const DEVICE_GLYPHS: readonly Glyph[] = [
  ["green", "█", "held"],
  ["dim", "·", "free"],
  ["red", "×", "not healthy"],
];

/** A cell a device while there are few. */
export function deviceBar({ capacity, allocatable, allocated }: Counts, paint: Paint): string {
  const all = Math.max(capacity, allocated);
  const free = Math.max(0, allocatable - allocated);
  const sizes = [allocated, free, all - allocated - free];
  const parts = DEVICE_GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, Math.min(BAR_WIDTH, all));
}

export const PLUGIN_COLOR: Readonly<Record<"registered" | "stopped" | "unregistered" | "removed", Color>> = {
  registered: "green",
  stopped: "yellow",
  unregistered: "yellow",
  removed: "red",
};
