import type { EvictionDecision, EvictionSignal, ThresholdRef, ThresholdState } from "../../model/eviction.ts";
import { humanBytes } from "../size.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { bar, type Cell, type Column, type Glyph, legendText, table } from "../table.ts";
import { durationText } from "../time-text.ts";
import type { Shown } from "./shown.ts";

const BAR_WIDTH = 24;
const STATE_COLOR: Readonly<Record<ThresholdState["state"], Color>> = {
  above: "green",
  below: "red",
  unreclaimed: "yellow",
  unobserved: "yellow",
  unwatched: "dim",
};
const GLYPHS = [
  ["yellow", "▒", "available, below the threshold"],
  ["green", "█", "available above it"],
  ["red", "×", "missing up to it"],
  ["dim", "·", "in use"],
] as const satisfies readonly Glyph[];

/** An amount of a signal for the eye: bytes, or a number of inodes or process ids. */
export const signalText = (signal: EvictionSignal, units: number): string =>
  signal.endsWith(".available") && signal !== "pid.available" ? humanBytes(units) : `${units}`;

/** As the kubelet's own log has it: `memory.available<500Mi`. */
export const thresholdText = ({ signal, value }: ThresholdRef): string => `${signal}<${value}`;

/** Every threshold in force: what is available, below what it is met, and how far off that is. */
export function thresholdsTable({ decision, columns, paint, notesAt }: Shown<EvictionDecision>): string {
  // hard and soft ones of a signal below each other
  const thresholds = [...Map.groupBy(decision.thresholds, ({ signal }) => signal).values()].flat();
  if (thresholds.length === 0) return paint("dim", "no threshold is configured\n");
  const right = (title: string, giveUp?: number): Column =>
    giveUp === undefined ? { title, align: "right" } : { title, align: "right", giveUp };
  const last = new Map(thresholds.map(({ signal }, i) => [signal, i]));
  const drawn = table(
    [
      { title: "SIGNAL", shrinkTo: 18 },
      right("AVAILABLE", 5),
      right("THRESHOLD", 4),
      { title: "" },
      right("DISTANCE"),
      { title: "STATE" },
      right("GRACE LEFT", 3),
      right("CAPACITY", 2),
      { title: "", giveUp: 1 },
    ],
    thresholds.map((t, i) => ({
      cells: cellsOf(t, paint),
      notes: last.get(t.signal) === i ? notesAt(t.signal).map((note) => `  ${note}`) : [],
    })),
    columns,
    paint,
  );
  const unwatched = "unwatched: not looked at in a kubelet's first pass, which this is without --facts\n";
  const first = thresholds.some(({ state }) => state === "unwatched") ? paint("dim", unwatched) : "";
  return `${drawn}${legendText(GLYPHS, drawn, paint)}${first}`;
}

function cellsOf(t: ThresholdState, paint: Paint): readonly (string | Cell)[] {
  const { signal, value, graceMs, quantity, available, capacity, state, graceLeftMs } = t;
  const amount = (units: number | null): string => (units === null ? "" : signalText(signal, units));
  const distance = available === null || quantity === null ? null : available - quantity;
  const isOpen = state === "below" || state === "unreclaimed";
  const stale = isOpen && !t.newerStats ? ", old stats" : "";
  return [
    signal,
    amount(available),
    printable(value),
    graceMs === 0 ? "hard" : `soft ${durationText(graceMs)}`,
    amount(distance),
    { text: `${state}${stale}`, color: STATE_COLOR[state] },
    isOpen && graceLeftMs !== null ? durationText(graceLeftMs) : "",
    amount(capacity),
    barOf(t, paint),
  ];
}

function barOf({ quantity, available, capacity }: ThresholdState, paint: Paint): string {
  if (quantity === null || available === null || capacity === null) return "";
  const below = Math.max(0, Math.min(available, quantity));
  const missing = Math.max(0, quantity - Math.max(0, available));
  const above = Math.max(0, available - quantity);
  const sizes = [below, above, missing, capacity - below - above - missing];
  const parts = GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, BAR_WIDTH);
}
