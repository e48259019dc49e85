import type { ProbeGuardDecision } from "../../model/probe-guard.ts";
import { many } from "../sentences/words.ts";
import { type Color, printable } from "../style.ts";
import { type Row, table } from "../table.ts";
import { durationText } from "../time-text.ts";
import { caption, outcome, type Shown, sections } from "./shown.ts";

const RESTARTS: ReadonlySet<string> = new Set(["calm", "held long enough"]);

/** Shows whose kill waits and whose does not, a line for each container. */
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
  return sections(outcome(paint, ...headOf(decision)), caption(shown, printable(message)), drawn);
}

function headOf({ holding, storm, kill }: ProbeGuardDecision): [Color, string, string] {
  const still = many(holding, "kill");
  if (holding > 0) return ["yellow", storm ? "STORM" : "HOLDS", `${still} held`];
  if (kill.length > 0) return ["red", "RESTARTS", `${many(kill.length, "container")}, no kill is held`];
  return ["green", "CALM", "no kill is held"];
}
