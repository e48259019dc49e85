import type { ProbeGuardDecision } from "../../model/probe-guard.ts";
import type { ProbeType } from "../../model/probe-spec.ts";
import type {
  OutcomeWord,
  ProbedContainer,
  ProbeFinding,
  ProbeResultChange,
  ProbeRun,
  ProbesDecision,
  Span,
} from "../../model/probes-decision.ts";
import { PROBE_FINDING } from "../sentences/probes.ts";
import { many } from "../sentences/words.ts";
import { type Color, clip, type Paint, printable } from "../style.ts";
import { type Glyph, legendText, type Row, table } from "../table.ts";
import { durationText } from "../time-text.ts";
import { caption, dropNotes, outcome, type Shown, sections, shortened } from "./shown.ts";

const RESTARTS: ReadonlySet<string> = new Set(["calm", "held long enough"]);

/** Shows the containers whose kill is held and those whose kill goes ahead, a line each. */
export function probeGuardTable(shown: Shown<ProbeGuardDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  const { kill, hold, released, message } = decision;
  const why = new Map(released.map(({ containerId, why }) => [containerId, why]));
  const row = (container: string, color: Color, what: string): Row => ({
    cells: [printable(container), { text: what, color }],
    notes: notesAt(container).map((note) => `  ${note}`),
  });
  const rows = [
    ...hold.map(({ container, heldForMs }) =>
      row(container, "yellow", heldForMs === 0 ? "held from now on" : `held for ${durationText(heldForMs)}`),
    ),
    ...kill.map(({ containerId, container }) => {
      const before = why.get(containerId);
      return row(container, "red", before === undefined ? "restarted" : `restarted: ${before}`);
    }),
    ...released
      .filter(({ why }) => !RESTARTS.has(why))
      .map(({ container, why }) => row(container, "green", `not restarted: ${why}`)),
  ];
  const drawn =
    rows.length === 0 ? "" : table([{ title: "CONTAINER", shrinkTo: 20 }, { title: "KILL" }], rows, columns, paint);
  return sections(outcome(paint, ...guardHead(decision)), caption(shown, printable(message)), drawn);
}

function guardHead({ holding, storm, kill }: ProbeGuardDecision): [Color, string, string] {
  const still = many(holding, "kill");
  if (holding > 0) return ["yellow", storm ? "STORM" : "HOLDS", `${still} held`];
  if (kill.length > 0) return ["red", "RESTARTS", `${many(kill.length, "container")}, no kill is held`];
  return ["green", "CALM", "no kill is held"];
}

/** If several attempts are in one cell, the worst is shown. */
const OUTCOMES: readonly (readonly [OutcomeWord, Color, string, string])[] = [
  ["fail", "red", "x", "failed"],
  ["timeout", "red", "T", "no answer in time: failed"],
  ["hang", "yellow", "H", "the answer broke off"],
  ["error", "yellow", "?", "could not be run"],
  ["warn", "yellow", "!", "ok with a warning"],
  ["ok", "green", "o", "ok"],
];
const STATES: readonly Glyph[] = [
  ["green", "█", "ready"],
  ["yellow", "▒", "started, not ready"],
  ["dim", "░", "runs, not started"],
  ["dim", ".", "waits for a restart"],
  ["red", "R", "restarted"],
  ["red", "E", "ended"],
];
const HOLD: Glyph = ["dim", "-", "on hold until there is another container"];
const GLYPHS: readonly Glyph[] = [...OUTCOMES.map(([, color, glyph, what]) => [color, glyph, what] as const), HOLD];

const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map((seconds) => seconds * 1000);
const WIDEST = 120;
const NAME = 24;
const TYPE = 10;
/** The number of cells between two marks of the scale. */
const MARK = 10;

interface Axis {
  /** Time of one cell. */
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
function probeLanes({ containers, endMs }: ProbesDecision, columns: number, paint: Paint): string {
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
    // an interruption of readiness is shown, however short
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

interface Change {
  readonly atMs: number;
  readonly container: string;
  readonly of: string;
  readonly what: string;
  readonly color?: Color;
}
const MAX_CHANGES = 30;

/** Everything that changed, by the time: containers that start and end, results, readiness. */
function probeChanges(shown: Shown<ProbesDecision>): string {
  const { decision, columns, paint } = shown;
  const changes = decision.containers.flatMap(changesOf).sort((a, b) => a.atMs - b.atMs);
  if (changes.length === 0) return "";
  const { first, more } = shortened(changes, MAX_CHANGES, shown, ({ of }) => of);
  const drawn = table(
    [{ title: "AT", align: "right" }, { title: "CONTAINER", shrinkTo: 8 }, { title: "OF" }, { title: "WHAT" }],
    first.map(({ atMs, container, of, what, color }) => ({
      cells: [durationText(atMs), printable(container), of, color === undefined ? what : { text: what, color }],
    })),
    columns,
    paint,
  );
  const notes = decision.containers.flatMap(({ container }) => {
    const lines = shown.notesAt(container);
    return lines.length === 0 ? [] : [`${printable(container)}\n`, ...lines.map((line) => `  ${line}\n`)];
  });
  dropNotes(
    shown,
    decision.containers.map(({ container }) => container),
  );
  return `${drawn}${more}${notes.join("")}`;
}

function changesOf({ container, runs, ready, started, probes }: ProbedContainer): readonly Change[] {
  const made = (atMs: number, of: string, what: string, color?: Color): Change => ({
    atMs,
    container,
    of,
    what,
    ...(color !== undefined && { color }),
  });
  const startup = probes.some(({ type }) => type === "startup");
  const results = probes.flatMap((probe) =>
    reportedResults(probe).map(({ atMs, containerId, result, isInitial }) => ({
      ...made(
        atMs,
        probe.type,
        `${isInitial ? "not yet" : result} (${containerId})`,
        isInitial ? "dim" : COLOR[result],
      ),
      isLast: runs.some(({ id, endedAtMs }) => id === containerId && endedAtMs === atMs),
    })),
  );
  return [
    // at equal times, the event that ends a container comes before its end, and all other events after the start of the next container
    ...results.filter(({ isLast }) => isLast),
    ...runs.flatMap(({ id, startedAtMs, endedAtMs, endedBy }) => [
      made(startedAtMs, "container", id === "c0" ? "starts" : `starts again (${id})`),
      ...(endedAtMs === null ? [] : [made(endedAtMs, "container", `is ended (${id}): ${endedBy} failed`, "red")]),
    ]),
    ...results.filter(({ isLast }) => !isLast),
    ...(startup ? started.map(({ fromMs }) => made(fromMs, "status", "started")) : []),
    ...ready.flatMap(({ fromMs, toMs }) => [
      made(fromMs, "status", "ready", "green"),
      ...(toMs === null ? [] : [made(toMs, "status", "not ready", "yellow")]),
    ]),
  ];
}

/** The results before the first attempt of a container. kubelet 1.36: worker.initialValue. */
const INITIAL = { startup: "Unknown", liveness: "Success", readiness: "Failure" } as const;

/**
 * The results of a probe, with initial results marked: a container counts as live before its first attempt. The first
 * success is not a change of the result, but is listed too.
 */
function reportedResults({
  type,
  results,
  attempts,
}: ProbeRun): readonly (ProbeResultChange & { readonly isInitial: boolean })[] {
  const seen = new Set<string>();
  return results.flatMap((one) => {
    const { containerId, result } = one;
    const isFirst = !seen.has(containerId);
    seen.add(containerId);
    if (!isFirst || result !== INITIAL[type]) return [{ ...one, isInitial: false }];
    const first = attempts.find((attempt) => attempt.containerId === containerId);
    const isLive = type === "liveness" && (first?.outcome === "ok" || first?.outcome === "warn");
    if (first === undefined || !isLive) return [{ ...one, isInitial: true }];
    const answered = { ...one, atMs: first.atMs + first.tookMs, isInitial: false };
    return answered.atMs === one.atMs ? [answered] : [{ ...one, isInitial: true }, answered];
  });
}
const COLOR: Readonly<Record<string, Color>> = { Success: "green", Failure: "red", Unknown: "dim" };

/** The dry run drawn on a time line, what changed, the kubelet's events and quirks, and what of the settings goes wrong. */
export function probesTable(shown: Shown<ProbesDecision>): string {
  const { decision, columns, paint } = shown;
  return sections(
    headOf(decision, paint),
    probeLanes(decision, columns, paint),
    probeChanges(shown),
    eventsText(decision, paint),
    quirksText(decision, paint),
    findingsText(decision.findings, paint),
  );
}

function headOf(decision: ProbesDecision, paint: Paint): string {
  const { endMs, truncated, strict, containers } = decision;
  const notes = [
    ...(strict ? ["strict: the documented behaviour in place of the kubelet's quirks"] : []),
    ...(truncated ? [`too many attempts: it stopped at ${durationText(endMs)}`] : []),
    ...(containers.every(({ probes }) => probes.length === 0) ? ["no container has a probe"] : []),
  ];
  return outcome(paint, ...endOf(decision)) + notes.map((note) => `${paint("yellow", note)}\n`).join("");
}

function endOf(decision: ProbesDecision): [Color, string, string] {
  const { restarts, firstRestartAtMs, containers, endMs, pod, ready } = decision;
  const name = printable(`${pod.namespace}/${pod.name}`);
  const span = `${name} in ${durationText(endMs)}`;
  if (firstRestartAtMs !== null) {
    return ["red", "RESTARTS", `${span}: ${many(restarts, "restart")}, the first at ${durationText(firstRestartAtMs)}`];
  }
  const last = ready.at(-1);
  const ended = containers.flatMap(({ runs }) => runs.at(-1)?.endedAtMs ?? []);
  if (ended.length > 0) return ["red", "ENDS", `${span}: ${many(ended.length, "container")} for good`];
  if (last === undefined) return ["yellow", "NOT READY", `${span}: never ready, no restart`];
  if (last.toMs !== null) return ["yellow", "NOT READY", `${span}: no longer since ${durationText(last.toMs)}`];
  return ["green", "READY", `${span}: since ${durationText(last.fromMs)}, no restart`];
}

function eventsText({ events }: ProbesDecision, paint: Paint): string {
  if (events.length === 0) return "";
  const lines = events.map(
    ({ type, reason, message, count, firstAtMs, lastAtMs }) =>
      `${type} ${reason} x${count} (${durationText(firstAtMs)}${count > 1 ? ` to ${durationText(lastAtMs)}` : ""}): ${printable(message.trimEnd())}`,
  );
  return [paint("bold", "events"), ...lines.map((line) => `- ${line}`), ""].join("\n");
}

function quirksText({ quirks, strict }: ProbesDecision, paint: Paint): string {
  if (quirks.length === 0) return "";
  const lines = quirks.map(({ code, what, issues, container, type, times }) => {
    const known = issues.length === 0 ? "" : ` (kubernetes ${issues.map((issue) => `#${issue}`).join(", ")})`;
    return `- ${code}, ${printable(container)} ${type}, ${many(times, "time")}: ${what}${known}`;
  });
  const hint = strict ? [] : [paint("dim", "--strict shows the documented behaviour where there is one")];
  return [paint("bold", "quirks of the kubelet that played a part"), ...lines, ...hint, ""].join("\n");
}

const LEVEL: Readonly<Record<ProbeFinding["level"], Color>> = { error: "red", warning: "yellow", hint: "dim" };
function findingsText(findings: readonly ProbeFinding[], paint: Paint): string {
  if (findings.length === 0) return "";
  const lines = findings.flatMap(({ code, level, path, numbers }) => [
    `- ${paint(LEVEL[level], level)} ${code}: ${printable(PROBE_FINDING[code](numbers))}`,
    paint("dim", `  ${printable(path)}`),
  ]);
  return [paint("bold", "about the settings"), ...lines, ""].join("\n");
}
