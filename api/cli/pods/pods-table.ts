import type { ContainerRow, NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import { type Color, clip, printable, wrap } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";
import { endText, lastEndOf, shortEndText } from "./last-end.ts";
import { noteOf } from "./note-text.ts";

/** A line a pod, and below it why it is not as it should be. */
export function podsText({ pods, at }: NodeStatus, { columns: width, paint }: Terminal): string {
  if (pods.length === 0) return paint("dim", "no pods\n");
  const columns = [
    { title: "NAMESPACE", shrinkTo: 9 },
    { title: "NAME", shrinkTo: 12 },
    { title: "PHASE", shrinkTo: 9 },
    { title: "READY", align: "right" },
    { title: "RESTARTS", align: "right", giveUp: 3 },
    { title: "QOS", giveUp: 1 },
    { title: "CPUS", giveUp: 2, shrinkTo: 8 },
    { title: "AGE", align: "right", giveUp: 4 },
    { title: "LAST", shrinkTo: 9 },
  ] as const;
  const rows = [...pods].sort(byName).map((pod) => ({
    cells: cellsOf(pod, at),
    notes: [
      ...noteOf(pod, at)
        .slice(0, 1)
        .flatMap((note) => wrap(note, width - 2)),
      ...lastWords(pod).map((words) => clip(words, width - 2)),
    ].map((line) => paint("dim", `  ${line}`)),
  }));
  return table(columns, rows, width, paint);
}

export const byName = (a: PodRow, b: PodRow): number =>
  compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function cellsOf(pod: PodRow, at: string): readonly (string | Cell)[] {
  const { namespace, name, qos, containers } = pod;
  const isSeen = containers.every(({ state }) => state !== "unknown");
  const ready = served(containers).filter((one) => one.ready).length;
  const restarts = served(containers).reduce((sum, one) => sum + one.restarts, 0);
  return [
    printable(namespace),
    printable(name),
    { text: printable(phaseText(pod)), color: phaseColor(pod) },
    isSeen ? `${ready}/${served(containers).length}` : UNKNOWN,
    isSeen ? (restarts === 0 ? "0" : { text: `${restarts}`, color: "yellow" }) : UNKNOWN,
    qos,
    printable(cpusText(containers)),
    ageText(pod, at) ?? UNKNOWN,
    lastCell(pod),
  ];
}
/** As kubectl counts them: sidecars too, other init containers not. */
const served = (containers: readonly ContainerRow[]): readonly ContainerRow[] =>
  containers.filter(({ kind }) => kind !== "init");

/** What nobody has looked at. */
const UNKNOWN = "–";

/** `Running`, `Pending, waits (OutOfcpu)`, `Running, ends (Preempting)`; `–`: nobody has looked. */
export function phaseText({ phase, state, reason }: PodRow): string {
  if (phase === "Unknown" && reason === "") return UNKNOWN;
  const doing = state === "waits" || state === "ends" ? `, ${state}` : "";
  return `${phase}${doing}${reason === "" ? "" : ` (${reason})`}`;
}
export function phaseColor({ phase, state, reason, containers }: PodRow): Color {
  if (phase === "Unknown" && reason === "") return "dim";
  if (phase === "Failed" || phase === "Unknown") return "red";
  if (phase === "Succeeded") return "dim";
  const isFine = phase === "Running" && state === "lives" && reason === "" && served(containers).every((c) => c.ready);
  return isFine ? "green" : "yellow";
}

/** The CPUs that its containers may use: `0-3`; where they differ, each set once. */
function cpusText(containers: readonly ContainerRow[]): string {
  const sets = containers.flatMap(({ cpuset, state }) => (cpuset === null || state !== "running" ? [] : [cpuset]));
  return [...new Set(sets)].join(" ");
}

/** Null: nobody has told. */
export function ageText({ startedAt, seenAt }: PodRow, at: string): string | null {
  const since = startedAt ?? seenAt;
  return since === null ? null : durationText(Math.max(0, Date.parse(at) - Date.parse(since)));
}

/** How the container ended that ended last; of one that did its work nothing. */
function lastCell({ containers }: PodRow): string | Cell {
  const last = lastEndOf(containers);
  return last === null
    ? ""
    : { text: printable(shortEndText(last.end)), color: last.end.exitCode === 0 ? "dim" : "red" };
}
/** `app: exit 7: cannot open /etc/app.conf`, where it left any. */
function lastWords({ containers }: PodRow): readonly string[] {
  const last = lastEndOf(containers);
  if (last === null || last.end.message === "") return [];
  return [printable(`${last.name}: ${endText(last.end)}: ${last.end.message}`)];
}
