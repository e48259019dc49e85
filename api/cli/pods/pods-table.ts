import type { ContainerEnd, ContainerRow, NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import { byText } from "../../base/order.ts";
import { many } from "../../text/sentences/words.ts";
import { type Color, clip, printable, wrap } from "../../text/style.ts";
import { type Cell, type Column, table } from "../../text/table.ts";
import { healthTexts } from "../../text/tables/devices.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";

/** Why a pod waits, ends or has a problem, each cause once; printable. */
export function noteOf(
  { state, refusal, end, resize, reason, message, startedAt }: PodRow,
  at: string,
): readonly string[] {
  const since = (ms: number): string => durationText(Math.max(0, Date.parse(at) - ms));
  const isRefused = refusal !== null && startedAt === null;
  const notes = [
    ...(isRefused ? [refusalNote(refusal, since(refusal.sinceMs))] : []),
    ...(state === "pending" && refusal === null ? [NOT_ASKED] : []),
    ...(end === null
      ? []
      : [`${end.cause} ${since(end.sinceMs)} ago${after(end.message)}${byDecision(end.decisionId)}`]),
    ...(resize === null ? [] : [`resize ${resize.reason} for ${since(resize.sinceMs)}${after(resize.message)}`]),
  ];
  // the status adds words of its own to a refusal
  const isReported = notes.some((note) => note.includes(message)) || (isRefused && message.includes(refusal.message));
  return [...notes, ...(message === "" || isReported ? [] : [reason === "" ? message : `${reason}: ${message}`])].map(
    printable,
  );
}

const NOT_ASKED = "waits for admission: after the pods before it, or when the node's problems (`!` above) allow it";

/** A pod that waits for something was not refused. */
function refusalNote({ reason, message, tries }: NonNullable<PodRow["refusal"]>, since: string): string {
  const what =
    tries === 0 ? `waits for ${since}` : `refused ${many(tries, "time")} in ${since}, tried again when it could fit`;
  return `${what}: ${reason}: ${message}`;
}
const after = (message: string): string => (message === "" ? "" : `: ${message}`);
const byDecision = (id: string | null): string => (id === null ? "" : ` (decision ${id})`);

/** How a container ended, and when: 0 without a time, and the latest for its present state. */
interface LastEnd {
  readonly name: string;
  readonly end: ContainerEnd;
  readonly atMs: number;
}

/** The latest end of a pod's containers, of the current or the previous instance; null if all succeeded, or run for the first time. */
const lastEndOf = (containers: readonly ContainerRow[]): LastEnd | null =>
  containers
    .flatMap(endOf)
    .reduce<LastEnd | null>((last, one) => (last === null || one.atMs > last.atMs ? one : last), null);

function endOf({ name, state, exitCode, reason, message, lastState }: ContainerRow): readonly LastEnd[] {
  if (state === "terminated")
    return exitCode === null || exitCode === 0
      ? []
      : [{ name, end: { exitCode, reason, message, finishedAt: null }, atMs: Number.POSITIVE_INFINITY }];
  if (lastState == null) return [];
  return [{ name, end: lastState, atMs: lastState.finishedAt === null ? 0 : Date.parse(lastState.finishedAt) }];
}

/** Reasons from the runtime that say no more than the exit code. */
const PLAIN: readonly string[] = ["", "Error", "Completed"];

/** `exit 7`; with a more specific reason `OOMKilled, exit 137`. */
export const endText = ({ exitCode, reason }: ContainerEnd): string =>
  PLAIN.includes(reason) ? `exit ${exitCode}` : `${reason}, exit ${exitCode}`;
/** `exit 7`, `OOMKilled`. */
const shortEndText = ({ exitCode, reason }: ContainerEnd): string =>
  PLAIN.includes(reason) ? `exit ${exitCode}` : reason;

/** One line per pod, followed by its problems. */
export function podsText({ pods, at }: NodeStatus, { columns: width, paint }: Terminal): string {
  if (pods.length === 0) return paint("dim", "no pods\n");
  // a column that is empty on a healthy node is shown only if it is not empty
  const isStopped = pods.some(({ stoppedByOthers = 0 }) => stoppedByOthers > 0);
  const columns: readonly Column[] = [
    { title: "NAMESPACE", shrinkTo: 9, cut: "end" },
    { title: "NAME", shrinkTo: 12, cut: "end" },
    { title: "PHASE", shrinkTo: 9, cut: "end" },
    { title: "READY", align: "right" },
    { title: "RESTARTS", align: "right", giveUp: 3 },
    ...(isStopped ? [{ title: "BY OTHERS", align: "right" } as const] : []),
    { title: "QOS", giveUp: 1, giveUpTo: "nothing" },
    { title: "CPUS", giveUp: 2, giveUpTo: "nothing", shrinkTo: 8, cut: "end" },
    { title: "AGE", align: "right", giveUp: 4 },
    { title: "LAST", shrinkTo: 9, cut: "end" },
  ];
  const rows = [...pods].sort(byName).map((pod) => ({
    cells: cellsOf(pod, at, isStopped),
    notes: [
      ...noteOf(pod, at)
        .slice(0, 1)
        .flatMap((note) => wrap(note, width - 2)),
      ...lastWords(pod).map((words) => clip(words, width - 2)),
      ...pod.containers.flatMap(({ name, ...one }) =>
        healthTexts(one, "ill").map((text) => clip(printable(`${name}: ${text}`), width - 2)),
      ),
    ].map((line) => paint("dim", `  ${line}`)),
  }));
  return table(columns, rows, width, paint);
}

export const byName = (a: PodRow, b: PodRow): number =>
  byText(a.namespace, b.namespace) || byText(a.name, b.name) || byText(a.uid, b.uid);

function cellsOf(pod: PodRow, at: string, isStopped: boolean): readonly (string | Cell)[] {
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
    ...(isStopped ? [stoppedCell(pod)] : []),
    qos,
    printable(cpusText(containers)),
    ageText(pod, at) ?? UNKNOWN,
    lastCell(pod),
  ];
}
/** The number of containers that something else stopped. */
const stoppedCell = ({ stoppedByOthers = 0 }: PodRow): string | Cell =>
  stoppedByOthers === 0 ? "0" : { text: `${stoppedByOthers}`, color: "red" };

/** As kubectl counts containers: with sidecars, without other init containers. */
const served = (containers: readonly ContainerRow[]): readonly ContainerRow[] =>
  containers.filter(({ kind }) => kind !== "init");

/** Shown for what is unknown. */
const UNKNOWN = "–";

/** `Running`, `Pending, waits (OutOfcpu)`, `Running, ends (Preempting)`; `–` if unknown. */
export function phaseText({ phase, state, reason }: PodRow): string {
  if (phase === "Unknown" && reason === "") return UNKNOWN;
  const doing = state === "pending" ? ", waits" : state === "terminating" ? ", ends" : "";
  return `${phase}${doing}${reason === "" ? "" : ` (${reason})`}`;
}
export function phaseColor({ phase, state, reason, containers }: PodRow): Color {
  if (phase === "Unknown" && reason === "") return "dim";
  if (phase === "Failed" || phase === "Unknown") return "red";
  if (phase === "Succeeded") return "dim";
  const isFine = phase === "Running" && state === "active" && reason === "" && served(containers).every((c) => c.ready);
  return isFine ? "green" : "yellow";
}

/** The CPUs that its containers may use: `0-3`; each set once if they differ. */
function cpusText(containers: readonly ContainerRow[]): string {
  const sets = containers.flatMap(({ cpuset, state }) => (cpuset === null || state !== "running" ? [] : [cpuset]));
  return [...new Set(sets)].join(" ");
}

/** Null if unknown. */
export function ageText({ startedAt, seenAt }: PodRow, at: string): string | null {
  const since = startedAt ?? seenAt;
  return since === null ? null : durationText(Math.max(0, Date.parse(at) - Date.parse(since)));
}

/** How the container that ended last ended; empty if it succeeded. */
function lastCell({ containers }: PodRow): string | Cell {
  const last = lastEndOf(containers);
  return last === null
    ? ""
    : { text: printable(shortEndText(last.end)), color: last.end.exitCode === 0 ? "dim" : "red" };
}
/** `app: exit 7: cannot open /etc/app.conf`, if it left a message. */
function lastWords({ containers }: PodRow): readonly string[] {
  const last = lastEndOf(containers);
  if (last === null || last.end.message === "") return [];
  return [printable(`${last.name}: ${endText(last.end)}: ${last.end.message}`)];
}
