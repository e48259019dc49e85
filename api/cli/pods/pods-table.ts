import type { ContainerRow, NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import { many } from "../../text/sentences/words.ts";
import { type Color, printable, wrap } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";

/** A line a pod, and below it why it is not as it should be. */
export function podsText({ pods, at }: NodeStatus, { columns: width, paint }: Terminal): string {
  if (pods.length === 0) return paint("dim", "no pods\n");
  const columns = [
    { title: "NAMESPACE", shrinkTo: 8 },
    { title: "NAME", shrinkTo: 12 },
    { title: "PHASE", shrinkTo: 9 },
    { title: "READY", align: "right" },
    { title: "RESTARTS", align: "right", giveUp: 3 },
    { title: "QOS", giveUp: 1 },
    { title: "CPUS", giveUp: 2, shrinkTo: 8 },
    { title: "AGE", align: "right", giveUp: 4 },
  ] as const;
  const rows = [...pods].sort(byName).map((pod) => ({
    cells: cellsOf(pod, at),
    notes: noteOf(pod, at)
      .slice(0, 1)
      .flatMap((note) => wrap(note, width - 2).map((line) => paint("dim", `  ${line}`))),
  }));
  return table(columns, rows, width, paint);
}

export const byName = (a: PodRow, b: PodRow): number =>
  compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function cellsOf(pod: PodRow, at: string): readonly (string | Cell)[] {
  const { namespace, name, qos, containers } = pod;
  const ready = served(containers).filter((one) => one.ready).length;
  const restarts = served(containers).reduce((sum, one) => sum + one.restarts, 0);
  return [
    printable(namespace),
    printable(name),
    { text: printable(phaseText(pod)), color: phaseColor(pod) },
    `${ready}/${served(containers).length}`,
    restarts === 0 ? "0" : { text: `${restarts}`, color: "yellow" },
    qos,
    printable(cpusText(containers)),
    ageText(pod, at),
  ];
}
/** As kubectl counts them: sidecars too, other init containers not. */
const served = (containers: readonly ContainerRow[]): readonly ContainerRow[] =>
  containers.filter(({ kind }) => kind !== "init");

/** `Running`, `Pending, waits (OutOfcpu)`, `Running, ends (Preempting)`. */
export function phaseText({ phase, state, reason }: PodRow): string {
  const doing = state === "waits" || state === "ends" ? `, ${state}` : "";
  return `${phase}${doing}${reason === "" ? "" : ` (${reason})`}`;
}
export function phaseColor({ phase, state, reason, containers }: PodRow): Color {
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

export function ageText({ startedAt, seenAt }: PodRow, at: string): string {
  return durationText(Math.max(0, Date.parse(at) - Date.parse(startedAt ?? seenAt)));
}

/** Why it waits, ends or is not as it should be; printable. */
export function noteOf({ refusal, end, resize, reason, message, startedAt }: PodRow, at: string): readonly string[] {
  const since = (ms: number): string => durationText(Math.max(0, Date.parse(at) - ms));
  const notes = [
    ...(refusal === null || startedAt !== null
      ? []
      : [
          `refused ${many(refusal.tries, "time")} in ${since(refusal.sinceMs)}, tried again when it could fit: ${refusal.reason}: ${refusal.message}`,
        ]),
    ...(end === null
      ? []
      : [
          `${end.cause} ${since(end.sinceMs)} ago${end.message === "" ? "" : `: ${end.message}`}${byDecision(end.decisionId)}`,
        ]),
    ...(resize === null
      ? []
      : [`resize ${resize.reason} for ${since(resize.sinceMs)}${resize.message === "" ? "" : `: ${resize.message}`}`]),
  ];
  const isTold = notes.some((note) => note.includes(message));
  return [...notes, ...(message === "" || isTold ? [] : [reason === "" ? message : `${reason}: ${message}`])].map(
    printable,
  );
}
const byDecision = (id: string | null): string => (id === null ? "" : ` (decision ${id})`);
