import type { ProbeRow } from "../../../actuator/status/probe-row.ts";
import { ok } from "../../base/result.ts";
import { many } from "../../text/sentences/words.ts";
import { type Color, clip, printable } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Cli } from "../cli.ts";
import { headText, type SourceFlags, showWatched, statusSource } from "../inputs/daemon-status.ts";
import { type Form, type Outcome, printData, printText, type Terminal } from "../terminal.ts";

const COLOR: Readonly<Record<NonNullable<ProbeRow["result"]>, Color>> = {
  Success: "green",
  Failure: "red",
  Unknown: "yellow",
};

/** Whether its result and its last attempt are a success. */
const isWell = ({ result, output }: ProbeRow): boolean => result === "Success" && output === "";

/** One line per probe, followed by the output of its last attempt unless that succeeded. `at`: the time of the status. */
export function probesText(rows: readonly ProbeRow[], at: string, { columns: width, paint }: Terminal): string {
  if (rows.length === 0) return paint("dim", "no such probe\n");
  const columns = [
    { title: "POD", shrinkTo: 14 },
    { title: "CONTAINER", shrinkTo: 8 },
    { title: "PROBE" },
    { title: "BY", giveUp: 3 },
    { title: "EVERY", align: "right", giveUp: 2, giveUpTo: "nothing" },
    { title: "RESULT" },
    { title: "FOR", align: "right" },
    { title: "FAILED", align: "right" },
    { title: "ATTEMPTS", align: "right", giveUp: 5 },
    { title: "TOOK", align: "right", giveUp: 1, giveUpTo: "nothing" },
    { title: "LAST", align: "right", giveUp: 4 },
    { title: "NOW", giveUp: 6 },
  ] as const;
  const ago = (time: string | null): string => (time === null ? "" : durationText(Date.parse(at) - Date.parse(time)));
  const drawn = table(
    columns,
    rows.map((row, i) => {
      const before = rows[i - 1];
      const isSamePod = before?.uid === row.uid;
      return {
        cells: [
          isSamePod ? "" : printable(`${row.namespace}/${row.pod}`),
          isSamePod && before.container === row.container ? "" : printable(row.container),
          row.type,
          row.handler,
          durationText(row.periodSeconds * 1000),
          resultCell(row),
          ago(row.since),
          row.failures === 0 ? "" : `${row.failures}`,
          `${row.attempts}`,
          row.tookMs === null ? "" : durationText(row.tookMs),
          ago(row.lastAt),
          NOW[row.activity],
        ],
        notes: notesOf(row, width).map((note) => paint("yellow", note)),
      };
    }),
    width,
    paint,
  );
  const bad = rows.filter((row) => !isWell(row)).length;
  const sum = bad === 0 ? "" : `, ${bad} without success`;
  return `${drawn}\n${paint("dim", `${many(rows.length, "probe")}${sum}`)}\n`;
}

function resultCell(row: ProbeRow): Cell | string {
  if (row.result === null) return "";
  return isInitial(row) ? { text: "not yet", color: "dim" } : { text: row.result, color: COLOR[row.result] };
}

/** Whether the result is the initial one: a result of an attempt comes within its timeout. */
const isInitial = ({ since, lastAt, timeoutSeconds }: ProbeRow): boolean =>
  lastAt === null || (since !== null && Date.parse(since) > Date.parse(lastAt) + timeoutSeconds * 1000);

const NOW: Readonly<Record<ProbeRow["activity"], string>> = {
  spread: "waits for its first attempt",
  waiting: "",
  queued: "waits for other execs",
  probing: "asks",
  held: "the guard holds the kill",
  done: "on hold until a new container",
};

/** The non-empty lines of an output, at most three. */
function notesOf({ output }: ProbeRow, width: number): readonly string[] {
  const lines = output.split(/\r?\n/).filter((line) => line.trim() !== "");
  return lines.slice(0, 3).map((line) => clip(`  ${printable(line)}`, width));
}

export const NOTHING_PROBED =
  "This daemon probes nothing: with `pods: enforce` in its settings it does, for the pods that it runs.\n";

/** Prints the node's probes as its daemon sees them. */
export async function probes(given: ProbesFlags, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  const isShown = (row: ProbeRow): boolean =>
    (given.namespace === undefined || row.namespace === given.namespace) && (given.failing !== true || !isWell(row));
  return showWatched(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName } = seen.status;
    const rows = seen.status.probes?.filter(isShown);
    if (given.output !== "table") printData(terminal, { at, nodeName, probes: rows ?? null }, given.output);
    else {
      const text = rows === undefined ? terminal.paint("dim", NOTHING_PROBED) : probesText(rows, at, terminal);
      printText(terminal, headText(seen, terminal) + text);
    }
    return ok(null);
  });
}

export interface ProbesFlags extends SourceFlags {
  readonly namespace?: string;
  /** Only failing probes. */
  readonly failing?: true;
  /** Seconds; absent for once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface ProbeHistoryFlags {
  readonly stateDir?: string;
  /** NAMESPACE/NAME. */
  readonly pod?: string;
  readonly limit: number;
  readonly output: Form;
}
export interface ProbeOutcomesFlags {
  readonly stateDir?: string;
  /** NAMESPACE/NAME. */
  readonly pod: string;
  readonly container?: string;
}
export interface ProbePlanFlags extends SourceFlags {
  /** Milliseconds. */
  readonly execMs?: number;
  readonly output: Form;
}
