import { type DeviceHistoryEntry, readDeviceHistory } from "../../../actuator/pods/devices/history.ts";
import { ok } from "../../base/result.ts";
import { type Color, printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import type { Cli } from "../cli.ts";
import { printHistory, stateDirectory } from "../inputs/daemon-status.ts";
import type { Outcome, Terminal } from "../terminal.ts";
import type { DeviceHistoryFlags } from "./container-devices.ts";

const COLOR: Readonly<Record<DeviceHistoryEntry["kind"], Color>> = {
  registered: "green",
  ended: "yellow",
  removed: "red",
  flips: "yellow",
  allocated: "green",
  "given-back": "dim",
  refused: "red",
  leak: "red",
};

/** One line per entry, in the given order. */
export function historyTable(entries: readonly DeviceHistoryEntry[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "AT" },
    { title: "WHAT" },
    { title: "RESOURCE", shrinkTo: 14 },
    { title: "COUNT", align: "right", giveUp: 1 },
    { title: "DEVICES", shrinkTo: 10 },
    { title: "POD", shrinkTo: 16 },
    { title: "CONTAINER", shrinkTo: 10, giveUp: 2 },
  ] as const;
  const rows = entries.map((entry) => ({
    cells: [
      printable(entry.at),
      { text: entry.kind, color: COLOR[entry.kind] },
      printable(entry.resource),
      entry.count === undefined ? "" : `${entry.count}`,
      printable(entry.flips === undefined ? (entry.devices ?? []).join(" ") : flipsText(entry.flips)),
      printable(entry.pod ?? entry.podUid ?? ""),
      printable(entry.container ?? ""),
    ],
    notes: wordsOf(entry).map((words) => paint("dim", `  ${printable(words)}`)),
  }));
  return table(columns, rows, width, paint);
}

/** `gpu-0 Healthy -> Unhealthy, gpu-1 new -> Healthy`. */
const flipsText = (flips: NonNullable<DeviceHistoryEntry["flips"]>): string =>
  flips.map(({ id, from, to }) => `${id} ${from ?? "new"} -> ${to ?? "gone"}`).join(", ");

function wordsOf({ reason, message, endpoint }: DeviceHistoryEntry): readonly string[] {
  const words = [reason, message].filter((text) => text !== undefined && text !== "").join(": ");
  const where = endpoint === undefined || endpoint === "" ? "" : `at ${endpoint}`;
  return [words, where].filter((text) => text !== "");
}

/** Prints the history of a node's devices, newest first. */
export async function deviceHistory(given: DeviceHistoryFlags, { terminal, env }: Cli): Promise<Outcome> {
  const { resource, limit, output } = given;
  const stateDir = stateDirectory(given, env);
  const read = readDeviceHistory(stateDir, { limit: resource === undefined ? limit : Number.POSITIVE_INFINITY });
  const isShown = (entry: DeviceHistoryEntry): boolean => resource === undefined || entry.resource === resource;
  const entries = read.ok ? ok(read.value.filter(isShown).slice(0, limit)) : read;
  return printHistory(entries, { of: "devices", stateDir, output, draw: historyTable }, terminal);
}
