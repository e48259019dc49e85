import type { HarmlessCause } from "../../../actuator/plan/drift.ts";
import type {
  CgroupRow,
  ContainerRow,
  FileRow,
  NodeStatus,
  PodRow,
  SeenEvent,
} from "../../../actuator/status/node-status.ts";
import { nearNames } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable, wrap } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import { healthTexts } from "../../text/tables/devices.ts";
import { durationText } from "../../text/time-text.ts";
import { driftTable } from "../actuator/pass-text.ts";
import type { Cli } from "../cli.ts";
import { headText, type StatusRead, showWatched, statusSource } from "../inputs/daemon-status.ts";
import { EXIT, type Fault, type Form, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { PodsFlags } from "./options.ts";
import { ageText, endText, noteOf, phaseColor, phaseText, podsText } from "./pods-table.ts";
import { milliText, pressureText, throttledText } from "./top.ts";

/** All details of one pod. */
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

/** Whether an event repeats the refusal shown above, which has its count and time. */
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
    ...(pod.stoppedByOthers ? [`containers stopped by others: ${pod.stoppedByOthers}`] : []),
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
    { title: "ID", giveUp: 1, giveUpTo: "nothing" },
  ] as const;
  const rows = containers.map(
    ({ name, kind, id, state, reason, message, exitCode, lastState, restarts, ready, image, cpuset, ...rest }) => {
      const isSeen = state !== "unknown";
      const texts = [message, ...lastTexts(lastState, at), ...healthTexts(rest, "all")];
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

/** `last state: OOMKilled, exit 137, 5s ago`, and its message. */
function lastTexts(last: ContainerRow["lastState"], at: string): readonly string[] {
  if (last == null) return [];
  const { finishedAt, message } = last;
  const ago = finishedAt === null ? "" : `, ${durationText(Math.max(0, Date.parse(at) - Date.parse(finishedAt)))} ago`;
  return [`last state: ${endText(last)}${ago}${message === "" ? "" : `: ${message}`}`];
}

/** Every file with its wanted and actual value, and a mark if they differ: why they may, or that they drift. */
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
/** The container's name for a path, since the paths of a pod's cgroups are long and differ in the middle. */
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
  return actual === null ? { text: "missing", color: "yellow" } : { text: "drift", color: "red" };
};

const MAX_SUGGESTED = 3;

/** ` is it `web-n1` or `web-n2`?`; empty if no pod has a similar name. */
export function suggestionText(wanted: string, status: NodeStatus): string {
  const names = similarPods(wanted, status);
  return names.length === 0 ? "" : ` is it ${names.map((name) => `\`${printable(name)}\``).join(" or ")}?`;
}

/**
 * At most three similar pods: the one with this name in its manifest, without the node's name at the end; else those whose names
 * start with it; else those that differ in few letters.
 */
function similarPods(wanted: string, { pods, refusedManifests, nodeName }: NodeStatus): readonly string[] {
  const all = [...pods.map(({ namespace, name }) => `${namespace}/${name}`), ...refusedManifests.map(({ pod }) => pod)];
  const isWhole = wanted.includes("/");
  const names = [...new Set(all.map((name) => (isWhole ? name : name.slice(name.indexOf("/") + 1))))].sort();
  const suffix = `-${nodeName.toLowerCase()}`;
  if (names.includes(`${wanted}${suffix}`)) return [`${wanted}${suffix}`];
  const begin = wanted === "" ? [] : names.filter((name) => name.startsWith(`${wanted}-`));
  if (begin.length > 0) return begin.slice(0, MAX_SUGGESTED);
  // the suffix is long, and would count as missing letters
  const byOwn = new Map(names.map((name) => [name.endsWith(suffix) ? name.slice(0, -suffix.length) : name, name]));
  const near = [
    ...nearNames(wanted, names),
    ...nearNames(wanted, [...byOwn.keys()]).map((own) => byOwn.get(own) ?? own),
  ];
  return [...new Set(near)].slice(0, MAX_SUGGESTED);
}

/** Prints the pods of a node, or all details of one. */
export async function pods(wanted: string | undefined, given: PodsFlags, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showWatched(source.value, given, cli, (seen, terminal) => {
    const narrowed = { ...seen, status: ofNamespace(seen.status, given.namespace) };
    return wanted === undefined
      ? printAll(narrowed, given, terminal)
      : printOne(narrowed, wanted, given.output, terminal);
  });
}

const NOT_RUN =
  "Others run these pods; this daemon compares their cgroups with what is decided (`nodewise pods NAME`: of one pod). With `mode: enforce` and `pods: enforce` in its settings it runs pods itself.\n";

const ofNamespace = (status: NodeStatus, namespace: string | undefined): NodeStatus =>
  namespace === undefined
    ? status
    : {
        ...status,
        pods: status.pods.filter((pod) => pod.namespace === namespace),
        refusedManifests: status.refusedManifests.filter(({ pod }) => pod.startsWith(`${namespace}/`)),
        events: status.events.filter(({ pod }) => pod.namespace === namespace),
      };

function printAll(seen: StatusRead, { output, events }: PodsFlags, terminal: Cli["terminal"]): Result<null, Fault> {
  const { status } = seen;
  if (output !== "table") printData(terminal, status, output);
  else {
    const parts = [
      podsText(status, terminal),
      refusedText(status.refusedManifests, terminal),
      driftText(status, terminal),
      status.runsPods === false ? terminal.paint("dim", NOT_RUN) : "",
      events === true ? eventsTable(status.events, status.at, terminal) : "",
    ];
    printText(terminal, headText(seen, terminal) + parts.filter((part) => part !== "").join("\n"));
  }
  return ok(null);
}

function ofName(wanted: string, { pods, refusedManifests }: NodeStatus) {
  const found = pods.filter(({ namespace, name }) => wanted === `${namespace}/${name}` || wanted === name);
  const refused = refusedManifests.filter(({ pod }) => pod === wanted || pod.endsWith(`/${wanted}`));
  return { found, refused, isNone: found.length === 0 && refused.length === 0 };
}

/** The node's problems with a manifest that could not be read as a pod: those with its name, or from a file of its name. */
function problemsOf(wanted: string, { problems }: NodeStatus): readonly string[] {
  const name = wanted.slice(wanted.indexOf("/") + 1);
  if (name === "") return [];
  const isNamed = (word: string): boolean => word === name || word.startsWith(`${name}.`);
  return problems
    .filter((problem) => problem.split(/[^A-Za-z0-9.-]+/).some(isNamed))
    .map((problem) => `! ${printable(problem)}`);
}

/** Which files drifted; if the status has only the first of them, how many others there are. */
function driftText({ pass }: NodeStatus, terminal: Cli["terminal"]): string {
  const { drift = 0, drifted = [] } = pass ?? {};
  const left = drift - drifted.length;
  const more = drifted.length > 0 && left > 0 ? terminal.paint("dim", `and ${many(left, "file")} more\n`) : "";
  return driftTable(drifted, terminal) + more;
}

function printOne(seen: StatusRead, wanted: string, output: Form, terminal: Cli["terminal"]): Result<null, Fault> {
  const { status } = seen;
  const exact = ofName(wanted, status);
  // a static pod's name ends with the node's name
  const ofManifest = exact.isNone ? ofName(`${wanted}-${status.nodeName.toLowerCase()}`, status) : exact;
  const { found, refused } = ofManifest.isNone ? exact : ofManifest;
  const names = new Set(found.map(({ namespace, name }) => `${namespace}/${name}`));
  if (names.size > 1)
    return fault(EXIT.badInput, `\`${wanted}\` is the name of ${[...names].join(" and of ")}: name one of them`);
  if (names.size === 0 && refused.length === 0)
    return fault(
      EXIT.badInput,
      `node ${status.nodeName} has no pod \`${wanted}\`:${suggestionText(wanted, status)} \`nodewise pods\` lists those that it has`,
      ...problemsOf(wanted, status),
    );
  if (output !== "table") {
    const events = status.events.filter(({ pod }) => names.has(`${pod.namespace}/${pod.name}`));
    printData(
      terminal,
      { at: status.at, nodeName: status.nodeName, pods: found, refusedManifests: refused, events },
      output,
    );
  } else {
    const texts = found.map((pod: PodRow) => podText(pod, status, terminal));
    const parts = [...texts, refusedText(refused, terminal)].filter((part) => part !== "");
    printText(terminal, headText(seen, terminal) + parts.join("\n"));
  }
  return ok(null);
}

/** Manifests that are not run: each with the fields that prevent it, and what to do. */
function refusedText(refused: NodeStatus["refusedManifests"], { paint }: Terminal): string {
  if (refused.length === 0) return "";
  const lines = refused.flatMap(({ pod, file, faults }) => [
    `${paint("red", "refused")} ${printable(pod)}`,
    ...faults.map(({ path, message, line, column }) => {
      const where = file === undefined ? "" : `${file}:${line}:${column}: `;
      return `  ${printable(where)}${printable(path)}: ${printable(message)}`;
    }),
  ]);
  return `${lines.join("\n")}\n`;
}

/** The events, newest last, as in kubectl. */
function eventsTable(events: readonly SeenEvent[], at: string, { columns: width, paint }: Terminal): string {
  if (events.length === 0) return paint("dim", "no events\n");
  const columns = [
    { title: "LAST SEEN", align: "right" },
    { title: "TYPE", giveUp: 1, giveUpTo: "nothing" },
    { title: "REASON" },
    { title: "POD", shrinkTo: 12 },
    { title: "CONTAINER", giveUp: 2 },
    { title: "MESSAGE", shrinkTo: 24 },
  ] as const;
  const rows = events.map(({ type, reason, message, pod, container, ...event }) => ({
    cells: [
      seenText(event, at),
      type === "Warning" ? { text: type, color: "yellow" as const } : type,
      printable(reason),
      printable(`${pod.namespace}/${pod.name}`),
      printable(container ?? ""),
      printable(message),
    ],
  }));
  return table(columns, rows, width, paint);
}

/** `5s`; for several, `5s (x3 over 2m)`. */
function seenText({ at, firstAt, count }: Pick<SeenEvent, "at" | "firstAt" | "count">, now: string): string {
  const since = (then: string): string => durationText(Math.max(0, Date.parse(now) - Date.parse(then)));
  return count > 1 ? `${since(at)} (x${count} over ${since(firstAt)})` : since(at);
}
