import type { ProbedContainer, ProbesDecision } from "../../model/probes-decision.ts";
import { type Color, printable } from "../style.ts";
import { table } from "../table.ts";
import { durationText } from "../time-text.ts";
import { shortened } from "./shortened.ts";
import { type Shown, swallowNotes } from "./shown.ts";

interface Change {
  readonly atMs: number;
  readonly container: string;
  readonly of: string;
  readonly what: string;
  readonly color?: Color;
}
const MOST = 30;

/** Everything that changed, by the time: containers that start and end, results, readiness. */
export function probeChanges(shown: Shown<ProbesDecision>): string {
  const { decision, columns, paint } = shown;
  const changes = decision.containers.flatMap(changesOf).sort((a, b) => a.atMs - b.atMs);
  if (changes.length === 0) return "";
  const { first, more } = shortened(changes, MOST, shown, ({ of }) => of);
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
  swallowNotes(
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
  const told = probes.flatMap(({ type, results }) =>
    results.map(({ atMs, containerId, result }) => ({
      ...made(atMs, type, `${result} (${containerId})`, COLOR[result]),
      isLast: runs.some(({ id, endedAtMs }) => id === containerId && endedAtMs === atMs),
    })),
  );
  return [
    // what ends a container comes before its end, all else of that moment after the next one's start
    ...told.filter(({ isLast }) => isLast),
    ...runs.flatMap(({ id, startedAtMs, endedAtMs, endedBy }) => [
      made(startedAtMs, "container", id === "c0" ? "starts" : `starts again (${id})`),
      ...(endedAtMs === null ? [] : [made(endedAtMs, "container", `is ended (${id}): ${endedBy} failed`, "red")]),
    ]),
    ...told.filter(({ isLast }) => !isLast),
    ...(startup ? started.map(({ fromMs }) => made(fromMs, "status", "started")) : []),
    ...ready.flatMap(({ fromMs, toMs }) => [
      made(fromMs, "status", "ready", "green"),
      ...(toMs === null ? [] : [made(toMs, "status", "not ready", "yellow")]),
    ]),
  ];
}
const COLOR: Readonly<Record<string, Color>> = { Success: "green", Failure: "red", Unknown: "dim" };
