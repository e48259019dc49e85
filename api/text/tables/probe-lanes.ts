import type { ProbeType } from "../../model/probe.ts";
import type { ProbedContainer, ProbeRun, ProbesDecision, Span } from "../../model/probes-decision.ts";
import type { OutcomeWord } from "../../model/probes-outcomes.ts";
import { type Glyph, legendText } from "../bar.ts";
import { type Color, clip, type Paint, printable } from "../style.ts";
import { durationText } from "../time-text.ts";

/** The worst of a cell's attempts shows. */
const OUTCOMES: readonly (readonly [OutcomeWord, Color, string, string])[] = [
  ["fail", "red", "x", "failed"],
  ["timeout", "red", "T", "no answer in time: failed"],
  ["hang", "yellow", "H", "the answer broke off"],
  ["error", "yellow", "?", "could not be asked"],
  ["warn", "yellow", "!", "ok with a warning"],
  ["ok", "green", "o", "ok"],
];
const STATES: readonly Glyph[] = [
  ["green", "█", "ready"],
  ["yellow", "▒", "started, not ready"],
  ["dim", "░", "runs, not started"],
  ["dim", ".", "waits to be restarted"],
  ["red", "R", "restarted"],
  ["red", "E", "ended"],
];
const HOLD: Glyph = ["dim", "-", "on hold until there is another container"];
const GLYPHS: readonly Glyph[] = [...OUTCOMES.map(([, color, glyph, what]) => [color, glyph, what] as const), HOLD];

const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map((seconds) => seconds * 1000);
const WIDEST = 120;
const NAME = 24;
const TYPE = 10;
/** Between the scale's marks. */
const MARK = 10;

interface Axis {
  /** Of one cell. */
  readonly stepMs: number;
  readonly cells: number;
}
function axisOf(endMs: number, columns: number): Axis {
  const room = Math.max(MARK, Math.min(WIDEST, columns - TYPE - 2));
  const wanted = Math.ceil(endMs / room);
  const stepMs = STEPS_MS.find((step) => step >= wanted) ?? Math.ceil(wanted / 3_600_000) * 3_600_000;
  return { stepMs, cells: Math.floor(endMs / stepMs) + 1 };
}

/** The dry run as a picture: a lane for each container, and below it one for each of its probes. */
export function probeLanes({ containers, endMs }: ProbesDecision, columns: number, paint: Paint): string {
  const axis = axisOf(endMs, columns);
  const drawn = containers.map((container) => laneOf(container, axis, paint)).join("");
  if (drawn === "") return "";
  const cell = paint("dim", `a cell is ${durationText(axis.stepMs)}\n`);
  return `${scale(axis, paint)}${drawn}${legend(containers, axis, paint)}${cell}`;
}

function scale({ stepMs, cells }: Axis, paint: Paint): string {
  let line = "";
  for (let i = 0; i < cells; i += MARK) line += `|${durationText(i * stepMs)}`.padEnd(MARK);
  return paint("dim", `${" ".repeat(TYPE + 2)}${line.trimEnd()}\n`);
}

function laneOf(container: ProbedContainer, axis: Axis, paint: Paint): string {
  const { probes, container: name, sidecar } = container;
  const title = clip(printable(name), NAME) + (sidecar ? " (sidecar)" : "");
  const lanes = [
    ["status", stateCells(container, axis)] as const,
    ...probes.map((probe) => [probe.type, probeCells(probe, axis)] as const),
  ];
  const lines = lanes.map(([label, cells]) => `  ${label.padEnd(TYPE)}${painted(cells, label, paint)}`.trimEnd());
  return `${[paint("bold", title), ...lines].join("\n")}\n`;
}

const colorOf = (glyph: string, label: string): Color | undefined =>
  (label === "status" ? STATES : GLYPHS).find(([, known]) => known === glyph)?.[0];
/** Runs of one colour at a time. */
function painted(cells: readonly string[], label: ProbeType | "status", paint: Paint): string {
  let out = "";
  for (let i = 0; i < cells.length; ) {
    const color = colorOf(cells[i] as string, label);
    let end = i + 1;
    while (end < cells.length && colorOf(cells[end] as string, label) === color) end++;
    const text = cells.slice(i, end).join("");
    out += color === undefined ? text : paint(color, text);
    i = end;
  }
  return out;
}

const holds = (spans: readonly Span[], fromMs: number, toMs: number): boolean =>
  spans.some((span) => span.fromMs < toMs && (span.toMs ?? Number.POSITIVE_INFINITY) > fromMs);

function stateCells({ runs, started, ready }: ProbedContainer, { stepMs, cells }: Axis): readonly string[] {
  const spans = runs.map(({ startedAtMs, endedAtMs }) => ({ fromMs: startedAtMs, toMs: endedAtMs }));
  const restarts = new Set(runs.slice(1).map(({ startedAtMs }) => Math.floor(startedAtMs / stepMs)));
  const end = runs.at(-1)?.endedAtMs ?? null;
  return Array.from({ length: cells }, (_, i) => {
    const [from, to] = [i * stepMs, (i + 1) * stepMs];
    if (restarts.has(i)) return "R";
    if (end !== null && Math.floor(end / stepMs) === i) return "E";
    // however short it was not ready in between
    const isLost = ready.some(({ toMs }) => toMs !== null && toMs >= from && toMs < to);
    if (holds(ready, from, to) && !isLost) return "█";
    if (holds(started, from, to)) return "▒";
    if (holds(spans, from, to)) return "░";
    return spans.some((s) => s.toMs !== null && s.toMs < from) && spans.some((s) => s.fromMs > from) ? "." : " ";
  });
}

function probeCells({ attempts, onHold }: ProbeRun, { stepMs, cells }: Axis): readonly string[] {
  const seen = Array.from({ length: cells }, () => OUTCOMES.length);
  for (const { atMs, outcome } of attempts) {
    const i = Math.floor(atMs / stepMs);
    const rank = OUTCOMES.findIndex(([word]) => word === outcome);
    seen[i] = Math.min(seen[i] ?? OUTCOMES.length, rank);
  }
  return seen.map((rank, i) => {
    const glyph = OUTCOMES[rank]?.[2];
    if (glyph !== undefined) return glyph;
    return holds(onHold, i * stepMs, (i + 1) * stepMs) ? HOLD[1] : " ";
  });
}

function legend(containers: readonly ProbedContainer[], axis: Axis, paint: Paint): string {
  const states = containers.flatMap((c) => stateCells(c, axis)).join("");
  const probes = containers.flatMap((c) => c.probes.flatMap((p) => probeCells(p, axis))).join("");
  return legendText(STATES, states, paint) + legendText(GLYPHS, probes, paint);
}
