import type { PodRow, PodUsage } from "../../../actuator/status/node-status.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import type { Terminal } from "../terminal.ts";
import { phaseColor, phaseText } from "./pods-table.ts";
import { BAR_LEGEND, usageBar } from "./usage-bar.ts";
import { milliText, pressureText, throttledText } from "./usage-text.ts";

/** Thousandths of its periods in which a pod may be held back before that is coloured. */
const THROTTLED = 50;
const THROTTLED_MUCH = 250;

/** A line a pod: what it uses, of what. */
export function topText(pods: readonly PodRow[], { columns: width, paint }: Terminal): string {
  if (pods.length === 0) return paint("dim", "no pod runs\n");
  const columns = [
    { title: "POD", shrinkTo: 14 },
    { title: "PHASE", giveUp: 3, shrinkTo: 9 },
    { title: "QOS", giveUp: 2 },
    { title: "CPU", align: "right" },
    { title: "OF", giveUp: 5 },
    { title: "", giveUp: 6 },
    { title: "MEMORY", align: "right" },
    { title: "OF", giveUp: 5 },
    { title: "", giveUp: 6 },
    { title: "THROTTLED", align: "right", giveUp: 4 },
    { title: "PRESSURE cpu/memory/io", align: "right", giveUp: 1 },
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

/** `limit 500m`, `request 100m`; empty: neither. */
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

/** What is not known of some of them is said to be of the others; `–`: it is known of none. */
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
