import type { HarmlessCause } from "../../../actuator/plan/drift.ts";
import type {
  CgroupRow,
  ContainerRow,
  FileRow,
  NodeStatus,
  PodRow,
  SeenEvent,
} from "../../../actuator/status/node-status.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable, wrap } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";
import { eventsTable } from "./events-table.ts";
import { endText } from "./last-end.ts";
import { noteOf } from "./note-text.ts";
import { ageText, phaseColor, phaseText } from "./pods-table.ts";
import { milliText, pressureText, throttledText } from "./usage-text.ts";

/** Everything of one pod. */
export function podText(pod: PodRow, { at, events }: NodeStatus, terminal: Terminal): string {
  const { paint } = terminal;
  const own = events.filter((event) => event.pod.uid === pod.uid && !isOfRefusal(event, pod));
  const parts = [
    aboutText(pod, at, terminal),
    containersTable(pod.containers, at, terminal),
    cgroupsTable(pod, terminal),
    own.length === 0 ? paint("dim", "no events\n") : eventsTable(own, at, terminal),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** It is told above, with how often and since when. */
const isOfRefusal = ({ reason, message }: SeenEvent, { refusal, startedAt }: PodRow): boolean =>
  startedAt === null && refusal !== null && reason === refusal.reason && message === refusal.message;

function aboutText(pod: PodRow, at: string, { paint }: Terminal): string {
  const { namespace, name, uid, qos, priority, isStatic, ip } = pod;
  const age = ageText(pod, at);
  const facts = [
    qos,
    ...(priority === null ? [] : [`priority ${priority}`]),
    ...(isStatic ? ["static"] : []),
    ...(ip === "" ? [] : [ip]),
    `uid ${uid}`,
    ...(age === null ? [] : [`${pod.startedAt === null ? "seen" : "started"} ${age} ago`]),
  ];
  const head = `${paint("bold", printable(`${namespace}/${name}`))}  ${paint(phaseColor(pod), printable(phaseText(pod)))}`;
  const notes = noteOf(pod, at).map((note) => paint("yellow", note));
  return `${[head, printable(facts.join(" · ")), ...notes, ...usageLines(pod)].join("\n")}\n`;
}

function usageLines({ usage, resources }: PodRow): readonly string[] {
  const { cpuRequestMilli, cpuLimitMilli, memoryRequestBytes, memoryLimitBytes } = resources;
  const bounds = (request: string | null, limit: string | null): string =>
    `request ${request ?? "none"}, limit ${limit ?? "none"}`;
  const text = <T>(value: T | null, of: (value: T) => string): string | null => (value === null ? null : of(value));
  const cpu = [
    ...(usage?.cpuMilli == null ? [] : [`uses ${milliText(usage.cpuMilli)}`]),
    bounds(text(cpuRequestMilli, milliText), text(cpuLimitMilli, milliText)),
    ...(usage?.throttledPermille == null ? [] : [`throttled ${throttledText(usage.throttledPermille)}`]),
  ];
  const memory = [
    ...(usage?.memoryWorkingSetBytes == null ? [] : [`uses ${humanBytes(usage.memoryWorkingSetBytes)}`]),
    bounds(text(memoryRequestBytes, humanBytes), text(memoryLimitBytes, humanBytes)),
  ];
  const pressure = usage?.pressure == null ? [] : [`pressure (cpu/memory/io): ${pressureText(usage.pressure)}`];
  return [`cpu: ${cpu.join(", ")}`, `memory: ${memory.join(", ")}`, ...pressure];
}

const STATE_COLOR: Readonly<Record<ContainerRow["state"], Color>> = {
  waiting: "yellow",
  running: "green",
  terminated: "dim",
  unknown: "dim",
};

function containersTable(containers: readonly ContainerRow[], at: string, { columns: width, paint }: Terminal): string {
  if (containers.length === 0) return "";
  const columns = [
    { title: "CONTAINER", shrinkTo: 10 },
    { title: "KIND", giveUp: 3 },
    { title: "STATE" },
    { title: "READY" },
    { title: "RESTARTS", align: "right" },
    { title: "CPUS" },
    { title: "IMAGE", shrinkTo: 16, cut: "start", giveUp: 2 },
    { title: "ID", giveUp: 1 },
  ] as const;
  const rows = containers.map(
    ({ name, kind, id, state, reason, message, exitCode, lastState, restarts, ready, image, cpuset }) => {
      const isSeen = state !== "unknown";
      const texts = [message, ...lastTexts(lastState, at)];
      const words = [reason, ...(exitCode === null || state !== "terminated" ? [] : [`exit ${exitCode}`])];
      const why = words.filter((word) => word !== "").join(", ");
      const color = state === "terminated" && exitCode !== 0 ? ("red" as const) : STATE_COLOR[state];
      return {
        cells: [
          printable(name),
          kind === "container" ? "" : kind,
          { text: isSeen ? printable(why === "" ? state : `${state} (${why})`) : "–", color },
          isSeen ? (ready ? "yes" : "no") : "–",
          isSeen ? `${restarts}` : "–",
          printable(cpuset ?? ""),
          printable(image),
          printable((id ?? "").slice(0, 13)),
        ],
        notes: texts.flatMap((text) => wrap(printable(text), width - 2).map((line) => paint("dim", `  ${line}`))),
      };
    },
  );
  return table(columns, rows, width, paint);
}

/** `last state: OOMKilled, exit 137, 5s ago`, and what it said. */
function lastTexts(last: ContainerRow["lastState"], at: string): readonly string[] {
  if (last == null) return [];
  const { finishedAt, message } = last;
  const ago = finishedAt === null ? "" : `, ${durationText(Math.max(0, Date.parse(at) - Date.parse(finishedAt)))} ago`;
  return [`last state: ${endText(last)}${ago}${message === "" ? "" : `: ${message}`}`];
}

/** Every file with what is wanted, what it holds, and where the two differ a mark: why they may, or that they drift. */
function cgroupsTable({ cgroups, containers }: PodRow, { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "OF", shrinkTo: 12 },
    { title: "CGROUP", shrinkTo: 12, cut: "start" },
    { title: "FILE" },
    { title: "WANTED", align: "right" },
    { title: "ACTUAL", align: "right" },
    { title: "" },
  ] as const;
  const rows = cgroups.flatMap(({ path, files }) =>
    files.map((row, i) => ({
      cells: [
        i === 0 ? printable(ownerOf(path, containers)) : "",
        i === 0 ? printable(path) : "",
        printable(row.file),
        printable(row.wanted),
        printable(row.actual ?? "–"),
        driftCell(row),
      ],
      notes: row.fault === undefined ? [] : [paint("red", `  ${printable(row.fault)}`)],
    })),
  );
  return rows.length === 0 ? "" : table(columns, rows, width, paint);
}
/** The paths of a pod and of its containers are long and differ in their middle: who it is is told by name. */
const ownerOf = (path: CgroupRow["path"], containers: readonly ContainerRow[]): string =>
  containers.find(({ id }) => id !== null && path.slice(path.lastIndexOf("/")).includes(id))?.name ?? "(pod)";

const HARMLESS: Readonly<Record<HarmlessCause, string>> = {
  page_rounding: "whole pages",
  systemd_rounding: "systemd's rounding",
  weight_formula: "the runtime's formula",
};
const driftCell = ({ wanted, actual, harmless }: FileRow): Cell | string => {
  if (actual === wanted) return "";
  if (harmless !== undefined) return { text: HARMLESS[harmless], color: "dim" };
  return actual === null ? { text: "not there", color: "yellow" } : { text: "drift", color: "red" };
};
