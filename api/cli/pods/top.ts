import type { PodUsage } from "../../../actuator/stats/usage.ts";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { ok } from "../../base/result.ts";
import { many } from "../../text/sentences/words.ts";
import { amountText, humanBytes } from "../../text/size.ts";
import { type Color, type Paint, printable } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import type { Cli } from "../cli.ts";
import { headText, showWatched, statusSource } from "../inputs/daemon-status.ts";
import { type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { Sort, TopFlags } from "./options.ts";
import { byName, phaseColor, phaseText } from "./pods-table.ts";

const WIDTH = 16;
const [USED, FREE, REQUEST] = ["█", "·", "╎"] as const;
/** The shares of the limit from which usage is coloured. */
const HIGH = 0.9;
const RAISED = 0.7;

/**
 * A bar of the usage: of the limit, with a mark at the request, or of the request without a limit. Empty if it has neither, or the
 * usage is unknown.
 */
export function usageBar(used: number | null, request: number | null, limit: number | null, paint: Paint): string {
  const whole = limit ?? request;
  if (used === null || whole === null || !(whole > 0)) return "";
  const share = Math.min(1, Math.max(0, used / whole));
  const cells = share === 0 ? 0 : Math.max(1, Math.round(share * WIDTH));
  const markAt =
    limit === null || request === null || request >= limit
      ? null
      : Math.min(WIDTH - 1, Math.round((request / limit) * WIDTH));
  const all = USED.repeat(cells) + FREE.repeat(WIDTH - cells);
  const marked = markAt === null ? all : `${all.slice(0, markAt)}${REQUEST}${all.slice(markAt + 1)}`;
  return paint(limit === null ? "cyan" : colorOf(share), marked.slice(0, cells)) + paint("dim", marked.slice(cells));
}
const colorOf = (share: number): Color => (share >= HIGH ? "red" : share >= RAISED ? "yellow" : "green");

/** The meaning of the characters. */
const BAR_LEGEND = `${USED} used of the limit, or of the request without one   ${REQUEST} request`;

/** The shares of periods, in thousandths, from which throttling is coloured. */
const THROTTLED = 50;
const THROTTLED_MUCH = 250;

/** One line per pod: its usage, and its limit or request. */
export function topText(pods: readonly PodRow[], { columns: width, paint }: Terminal): string {
  if (pods.length === 0) return paint("dim", "no pod runs\n");
  const columns = [
    { title: "POD", shrinkTo: 14, cut: "end" },
    { title: "PHASE", giveUp: 3, giveUpTo: "nothing", shrinkTo: 9, cut: "end" },
    { title: "QOS", giveUp: 2, giveUpTo: "nothing" },
    { title: "CPU", align: "right" },
    { title: "OF", giveUp: 5 },
    { title: "", giveUp: 6 },
    { title: "MEMORY", align: "right" },
    { title: "OF", giveUp: 5 },
    { title: "", giveUp: 6 },
    { title: "THROTTLED", align: "right", giveUp: 4 },
    { title: "PRESSURE cpu/memory/io", align: "right", giveUp: 1, giveUpTo: "nothing" },
  ] as const;
  const rows = pods.map((pod) => {
    const { namespace, name, qos, usage, resources } = pod;
    const { cpuRequestMilli, cpuLimitMilli, memoryRequestBytes, memoryLimitBytes } = resources;
    const cpu = usage?.cpuMilli ?? null;
    const memory = usage?.memoryWorkingSetBytes ?? null;
    return {
      cells: [
        printable(`${namespace}/${name}`),
        { text: printable(phaseText(pod)), color: phaseColor(pod) },
        qos,
        cpu === null ? "–" : milliText(cpu),
        ofText(cpuRequestMilli, cpuLimitMilli, milliText),
        usageBar(cpu, cpuRequestMilli, cpuLimitMilli, paint),
        memory === null ? "–" : humanBytes(memory),
        ofText(memoryRequestBytes, memoryLimitBytes, humanBytes),
        usageBar(memory, memoryRequestBytes, memoryLimitBytes, paint),
        throttledCell(usage?.throttledPermille ?? null),
        usage?.pressure == null ? "" : pressureText(usage.pressure),
      ],
    };
  });
  const drawn = table(columns, rows, width, paint);
  const legend = drawn.includes("█") || drawn.includes("·") ? `${paint("dim", BAR_LEGEND)}\n` : "";
  return `${drawn}${totalText(pods)}\n${legend}`;
}

/** `limit 500m`, `request 100m`; empty if neither exists. */
function ofText(request: number | null, limit: number | null, text: (value: number) => string): string {
  if (limit !== null) return `limit ${text(limit)}`;
  return request === null ? "" : `request ${text(request)}`;
}

function throttledCell(permille: number | null): string | Cell {
  if (permille === null) return "";
  const text = throttledText(permille);
  if (permille >= THROTTLED_MUCH) return { text, color: "red" };
  return permille >= THROTTLED ? { text, color: "yellow" } : text;
}

/** The row of totals. If some pods' usage is unknown, it says that the total is of the others; `–` if all are. */
function totalText(pods: readonly PodRow[]): string {
  const sum = (of: (usage: PodUsage) => number | null, text: (value: number) => string): string => {
    const known = pods.flatMap(({ usage }) => (usage === null ? [] : (of(usage) ?? [])));
    if (known.length === 0) return "–";
    const some = known.length < pods.length ? ` (of ${known.length})` : "";
    return `${text(known.reduce((total, value) => total + value, 0))}${some}`;
  };
  const cpu = sum(({ cpuMilli }) => cpuMilli, milliText);
  const memory = sum(({ memoryWorkingSetBytes }) => memoryWorkingSetBytes, humanBytes);
  return `${many(pods.length, "pod")}: cpu ${cpu}, memory ${memory}`;
}

/** Prints the pods' usage; those that ended or never started are left out. */
export async function top(given: TopFlags, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showWatched(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName, pods } = seen.status;
    const shown = pods
      .filter(({ namespace }) => given.namespace === undefined || namespace === given.namespace)
      .filter(({ state, usage }) => usage !== null || state === "active" || state === "terminating")
      .sort(ORDERS[given.sort]);
    if (given.output === "table") printText(terminal, headText(seen, terminal) + topText(shown, terminal));
    else printData(terminal, { at, nodeName, pods: shown.map(usageOf) }, given.output);
    return ok(null);
  });
}

const most =
  (of: (pod: PodRow) => number | null | undefined) =>
  (a: PodRow, b: PodRow): number =>
    (of(b) ?? -1) - (of(a) ?? -1) || byName(a, b);
const ORDERS: Readonly<Record<Sort, (a: PodRow, b: PodRow) => number>> = {
  cpu: most(({ usage }) => usage?.cpuMilli),
  memory: most(({ usage }) => usage?.memoryWorkingSetBytes),
  name: byName,
};

const usageOf = ({ namespace, name, uid, phase, qos, resources, usage }: PodRow) => ({
  namespace,
  name,
  uid,
  phase,
  qos,
  resources,
  usage,
});

/** `250m`, `1.5` CPUs as `1500m`. */
export const milliText = (milli: number): string => amountText("cpu", Math.round(milli));
/** `12.5 %` of the periods. */
export const throttledText = (permille: number): string => `${Math.round(permille) / 10} %`;
/** `3.1/0/12 %` */
export const pressureText = ({ cpu, memory, io }: NonNullable<PodUsage["pressure"]>): string =>
  `${[cpu, memory, io].map((percent) => Math.round(percent * 10) / 10).join("/")} %`;
