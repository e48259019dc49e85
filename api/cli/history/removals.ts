import type { RemovalEnd } from "../../../db/rows.ts";
import { ok } from "../../base/result.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import {
  type ListedRemoval,
  type RemovalSource,
  type Summary,
  type Times,
  timesOf,
  tokenOf,
} from "../inputs/history-source.ts";
import { EXIT, type Form, type Outcome, printData, printText, type Terminal } from "../terminal.ts";

export interface RemovalsFlags extends HistorySourceFlags {
  readonly node: string;
  readonly summary?: boolean;
  readonly image?: string;
  readonly search?: string;
  readonly end?: RemovalEnd;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly output: Form;
}

export async function removals(given: RemovalsFlags, cli: Cli): Promise<Outcome> {
  const times = timesOf(given, Date.now());
  if (!times.ok) return times;
  const { api } = given;
  const print = (source: RemovalSource): Promise<Outcome> =>
    given.summary === true
      ? printSummary(source, given, times.value, cli)
      : printRemovals(source, given, times.value, cli);
  if (api === undefined) {
    const { removalsOfStore, withHistory } = await import("../inputs/open-history.ts");
    return withHistory(storeSetting(given, cli), false, (store) => print(removalsOfStore(store)));
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const { removalsOfApi } = await import("../inputs/history-api.ts");
  const source = removalsOfApi(api, token.value);
  return source.ok ? print(source.value) : source;
}

async function printRemovals(
  source: RemovalSource,
  { node, image, search = image, end, limit, output }: RemovalsFlags,
  times: Times,
  { terminal }: Cli,
): Promise<Outcome> {
  const found = await source.list(
    {
      node,
      ...(image === undefined ? {} : { target: "image" }),
      ...(search === undefined ? {} : { search }),
      ...(end === undefined ? {} : { end }),
      ...times,
    },
    limit,
  );
  if (!found.ok) return found;
  if (output !== "table") printData(terminal, found.value, output);
  else if (found.value.length === 0) terminal.warn("no such removals");
  else printText(terminal, removalsTable(found.value, terminal));
  return ok(EXIT.ok);
}

async function printSummary(
  source: RemovalSource,
  { node, output }: RemovalsFlags,
  times: Times,
  { terminal }: Cli,
): Promise<Outcome> {
  const found = await source.summarize(node, times);
  if (!found.ok) return found;
  if (output === "table") printText(terminal, summaryText(found.value, terminal));
  else printData(terminal, found.value, output);
  return ok(EXIT.ok);
}

const END_COLORS: Readonly<Record<ListedRemoval["end"], Color>> = {
  removed: "green",
  failed: "red",
  stopped: "yellow",
};

/** The first name, and the number of others. */
function nameText(id: string, names: readonly string[]): string {
  const [first = id, ...more] = names;
  return printable(more.length === 0 ? first : `${first} +${more.length}`);
}
function whatText({ id, names, target, pod, container }: ListedRemoval): string {
  if (target === "image" || pod === null) return nameText(id, names);
  return printable([`${pod.namespace}/${pod.name}`, ...(container === null ? [] : [container])].join(" "));
}
const awayText = (from: string, to: string): string => durationText(Date.parse(to) - Date.parse(from));

function removalsTable(removals: readonly ListedRemoval[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "AT" },
    { title: "TARGET" },
    { title: "WHAT", shrinkTo: 20 },
    { title: "SIZE", align: "right" },
    { title: "WHY" },
    { title: "OPERATION", giveUp: 2, giveUpTo: "nothing" },
    { title: "END" },
    { title: "BACK AFTER", align: "right" },
    { title: "ID", giveUp: 1, giveUpTo: "nothing" },
  ] as const;
  const rows = removals.map((one) => ({
    cells: [
      one.at,
      one.target,
      whatText(one),
      one.bytes === null ? "" : humanBytes(one.bytes),
      one.why,
      one.operation,
      { text: one.end, color: END_COLORS[one.end] },
      one.againAt === null ? "" : { text: awayText(one.at, one.againAt), color: "yellow" as const },
      printable(one.id),
    ],
    notes: one.message === null ? [] : [`  ${printable(one.message)}`],
  }));
  return table(columns, rows, width, paint);
}

function summaryText({ totals, images, others }: Summary, terminal: Terminal): string {
  const { removed, failed, stopped, bytes, pulledAgain, pulledAgainBytes, medianAwayMs } = totals;
  const lines = [`images: ${removed} removed (${humanBytes(bytes)}), ${failed} failed, ${stopped} stopped`];
  if (removed > 0) {
    const share = `${Math.round((pulledAgain / removed) * 100)} %`;
    const away = medianAwayMs === null ? "" : `, half of them within ${durationText(medianAwayMs)}`;
    lines.push(`pulled again: ${pulledAgain} (${share}, ${humanBytes(pulledAgainBytes)})${away}`);
  }
  if (others.length > 0)
    lines.push(`others: ${others.map(({ target, end, count }) => `${count} ${target} ${end}`).join(", ")}`);
  const list = images.length === 0 ? "" : `\n${costsTable(images, terminal)}`;
  return `${lines.join("\n")}\n${list}`;
}

function costsTable(images: Summary["images"], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "IMAGE", shrinkTo: 20 },
    { title: "HANDLER", giveUp: 2, giveUpTo: "nothing" },
    { title: "REMOVED", align: "right" },
    { title: "AGAIN", align: "right" },
    { title: "PULLED AGAIN", align: "right" },
    { title: "SIZE", align: "right", giveUp: 3 },
    { title: "LAST REMOVED" },
    { title: "LAST BACK", giveUp: 4 },
    { title: "ID", giveUp: 1, giveUpTo: "nothing" },
  ] as const;
  const rows = images.map((image) => ({
    cells: [
      nameText(image.id, image.names),
      printable(image.runtimeHandler),
      String(image.times),
      image.again === 0 ? "0" : { text: String(image.again), color: "yellow" as const },
      image.againBytes === 0 ? "" : humanBytes(image.againBytes),
      humanBytes(image.bytes),
      image.lastRemovedAt,
      image.lastAgainAt ?? "",
      printable(image.id),
    ],
  }));
  return table(columns, rows, width, paint);
}
