import { readProbeHistory } from "../../../actuator/probes/engine/history.ts";
import type { AttemptKind, ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import { many } from "../../text/sentences/words.ts";
import { type Color, clip, printable } from "../../text/style.ts";
import { type Row, table } from "../../text/table.ts";
import type { Cli } from "../cli.ts";
import { printHistory, stateDirectory } from "../inputs/daemon-status.ts";
import type { Outcome, Terminal } from "../terminal.ts";
import type { ProbeHistoryFlags } from "./probes.ts";

type Words = readonly [what: string, color: Color, notes: readonly string[]];

/** One line per entry, in the given order. */
export function historyTable(entries: readonly ProbeHistoryEntry[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "AT" },
    { title: "POD", shrinkTo: 16 },
    { title: "CONTAINER", shrinkTo: 8 },
    { title: "PROBE" },
    { title: "WHAT", shrinkTo: 20 },
  ] as const;
  const rows = entries.map((entry): Row => {
    const [what, color, notes] = wordsOf(entry);
    const named = "pod" in entry ? [printable(entry.pod), printable(entry.container), entry.type] : ["", "", ""];
    return {
      cells: [printable(entry.at), ...named, { text: printable(what), color }],
      notes: notes.map((note) => paint("dim", clip(`  ${printable(note)}`, width))),
    };
  });
  return table(columns, rows, width, paint);
}

function wordsOf(entry: ProbeHistoryEntry): Words {
  switch (entry.kind) {
    case "result": {
      const { from, to, output, quirk } = entry;
      const notes = [...notesOf(output), ...(quirk === undefined ? [] : [`the kubelet's quirk: ${quirk}`])];
      return [`${from ?? "nothing"} -> ${to}`, to === "Success" ? "green" : "red", notes];
    }
    case "first":
      return [`nothing -> ${OUTCOME[entry.outcome]}, the first attempt`, "red", notesOf(entry.output)];
    case "run": {
      const { next, outcome, times } = entry;
      const other = next === undefined ? "another" : OUTCOME[next];
      return [`${many(times, "attempt")} in a row: ${OUTCOME[outcome]}, then ${other}`, "dim", []];
    }
    case "overdue":
      return [`waited ${entry.seconds} s for other execs`, "yellow", []];
    case "probe-guard": {
      const held = entry.held.length === 0 ? [] : [`held: ${entry.held.join(" ")}`];
      const released = entry.released.map(({ container, why }) => `${container}: ${why}`);
      const { killedBefore = [] } = entry;
      const killed = killedBefore.length === 0 ? [] : [`restarted before: ${killedBefore.join(" ")}`];
      const notes = [
        entry.why,
        ...killed,
        ...held,
        ...(released.length === 0 ? [] : [`released: ${released.join(", ")}`]),
      ];
      return [`the guard holds ${many(entry.holding, "kill")}`, "yellow", notes];
    }
    case "omitted":
      return [`${entry.count} more in this second`, "dim", []];
  }
}
const OUTCOME: Readonly<Record<AttemptKind, string>> = {
  success: "success",
  failure: "failure",
  error: "error",
  hang: "a body that never ends",
  broken: "a body that breaks off",
};
/** The first non-empty line. */
function notesOf(output = ""): readonly string[] {
  const line = output.split(/\r?\n/).find((one) => one.trim() !== "");
  return line === undefined ? [] : [line];
}

/** Prints the history of a node's probes, newest first. */
export async function probeHistory(given: ProbeHistoryFlags, { terminal, env }: Cli): Promise<Outcome> {
  const { pod, limit, output } = given;
  const stateDir = stateDirectory(given, env);
  const read = readProbeHistory(stateDir, { limit, pod });
  return printHistory(read, { of: "probes", stateDir, output, draw: historyTable }, terminal);
}
