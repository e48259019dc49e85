import type { DeviceHolder, DeviceRow } from "../../../actuator/status/node-status.ts";
import { byText } from "../../base/order.ts";
import { ok } from "../../base/result.ts";
import { many } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import { legendText, table } from "../../text/table.ts";
import { DEVICE_GLYPHS, deviceBar, PLUGIN_COLOR } from "../../text/tables/devices.ts";
import { listText } from "../../text/tables/shown.ts";
import type { Cli } from "../cli.ts";
import { headText, showWatched, statusSource } from "../inputs/daemon-status.ts";
import { type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { DevicesFlags } from "./container-devices.ts";

const NONE_TAKEN =
  "This daemon serves no device plugins: with `devicePlugins: serve` in its settings it does, for the pods that it runs.\n";

/** Prints the node's devices, and the pods that have them. */
export async function devices(given: DevicesFlags, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showWatched(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName, devices: rows } = seen.status;
    if (given.output !== "table") printData(terminal, { at, nodeName, devices: rows ?? null }, given.output);
    else {
      const text = rows === undefined ? terminal.paint("dim", NONE_TAKEN) : devicesText(rows, terminal);
      printText(terminal, headText(seen, terminal) + text);
    }
    return ok(null);
  });
}

/** One line per resource, followed by one per container that has devices. */
export function devicesText(rows: readonly DeviceRow[], terminal: Terminal): string {
  if (rows.length === 0) return terminal.paint("dim", "no device plugin has registered\n");
  const holders = holdersTable(rows, terminal);
  return `${resourcesTable(rows, terminal)}${holders === "" ? "" : `\n${holders}`}`;
}

function resourcesTable(rows: readonly DeviceRow[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "RESOURCE", shrinkTo: 12 },
    { title: "PLUGIN" },
    { title: "CAPACITY", align: "right" },
    { title: "ALLOCATABLE", align: "right" },
    { title: "ALLOCATED", align: "right" },
    { title: "", giveUp: 3 },
    { title: "HELD BY NUMA NODE", shrinkTo: 8, giveUp: 4 },
    { title: "FLIPS", align: "right", giveUp: 2 },
    { title: "ENDPOINT", shrinkTo: 12, cut: "start", giveUp: 1 },
  ] as const;
  const drawn = table(
    columns,
    rows.map((row) => ({
      cells: [
        printable(row.resource),
        { text: row.plugin, color: PLUGIN_COLOR[row.plugin] },
        `${row.capacity}`,
        `${row.allocatable}`,
        `${row.allocated}`,
        deviceBar(row, paint),
        numaText(row.numa),
        row.flips === 0 ? "" : `${row.flips}`,
        printable(row.endpoint ?? ""),
      ],
      notes: notesOf(row).map((note) => paint("yellow", `  ${note}`)),
    })),
    width,
    paint,
  );
  return `${drawn}${legendText(DEVICE_GLYPHS, drawn, paint)}`;
}

/** `0: 2/4  1: 0/4`; empty if no device reports its NUMA node. */
const numaText = (numa: DeviceRow["numa"]): string =>
  numa.every(({ node }) => node < 0)
    ? ""
    : numa.map(({ node, devices, allocated }) => `${node < 0 ? "none" : node}: ${allocated}/${devices}`).join("  ");

function notesOf({ pending, allocated, capacity, plugin }: DeviceRow): readonly string[] {
  const unlisted = plugin === "registered" ? allocated - capacity : 0;
  return [
    ...(pending === 0 ? [] : [`${many(pending, "container")} without the plugin's answer yet`]),
    ...(unlisted > 0 ? [`more devices are allocated than the plugin lists: at least ${unlisted} are gone`] : []),
  ];
}

function holdersTable(rows: readonly DeviceRow[], { columns: width, paint }: Terminal): string {
  const held = rows
    .flatMap(({ resource, holders }) => holders.map((holder) => ({ resource, holder })))
    .sort((a, b) => byText(keyOf(a.holder), keyOf(b.holder)));
  if (held.length === 0) return "";
  const columns = [
    { title: "POD", shrinkTo: 16 },
    { title: "CONTAINER", shrinkTo: 10 },
    { title: "RESOURCE", shrinkTo: 14 },
    { title: "DEVICES", shrinkTo: 8 },
    { title: "NUMA" },
    { title: "", giveUp: 1 },
  ] as const;
  const lines = held.map(({ resource, holder }, i) => {
    const before = held[i - 1]?.holder;
    const isSamePod = before?.uid === holder.uid;
    return {
      cells: [
        isSamePod ? "" : printable(holder.pod),
        isSamePod && before?.container === holder.container ? "" : printable(holder.container),
        printable(resource),
        listText(holder.ids, " "),
        holder.numa.join("+"),
        holder.isPending ? { text: "its plugin has not answered", color: "yellow" as const } : "",
      ],
    };
  });
  return table(columns, lines, width, paint);
}
const keyOf = ({ pod, uid, container }: DeviceHolder): string => [pod, uid, container].join("\0");
