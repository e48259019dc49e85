import type { RemovalEnd, RemovalFilter } from "../../../db/rows.ts";
import type { removalOf, summaryOf } from "../../http/removals.ts";
import type { Result } from "../../model/result.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Fault, Form, Terminal } from "../terminal.ts";
import type { Times } from "./history.ts";

/** A removal, and a summary, as the API answers them. */
export type ListedRemoval = ReturnType<typeof removalOf>;
export type Summary = ReturnType<typeof summaryOf>;

const END_COLORS: Readonly<Record<ListedRemoval["end"], Color>> = {
  removed: "green",
  failed: "red",
  stopped: "yellow",
};

/** The first name says most; the others are counted. */
function nameText(id: string, names: readonly string[]): string {
  const [first = id, ...more] = names;
  return printable(more.length === 0 ? first : `${first} +${more.length}`);
}
function whatText({ id, names, target, pod, container }: ListedRemoval): string {
  if (target === "image" || pod === null) return nameText(id, names);
  return printable([`${pod.namespace}/${pod.name}`, ...(container === null ? [] : [container])].join(" "));
}
const awayText = (from: string, to: string): string => durationText(Date.parse(to) - Date.parse(from));

export function removalsTable(removals: readonly ListedRemoval[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "AT" },
    { title: "TARGET" },
    { title: "WHAT", shrinkTo: 20 },
    { title: "SIZE", align: "right" },
    { title: "WHY" },
    { title: "OPERATION", giveUp: 2 },
    { title: "END" },
    { title: "BACK AFTER", align: "right" },
    { title: "ID", giveUp: 1 },
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

export function summaryText({ totals, images, others }: Summary, terminal: Terminal): string {
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
    { title: "HANDLER", giveUp: 2 },
    { title: "REMOVED", align: "right" },
    { title: "AGAIN", align: "right" },
    { title: "PULLED AGAIN", align: "right" },
    { title: "SIZE", align: "right", giveUp: 3 },
    { title: "LAST REMOVED" },
    { title: "LAST BACK", giveUp: 4 },
    { title: "ID", giveUp: 1 },
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

/** Where removals are read from: a data directory, or a running API. */
export interface RemovalSource {
  /** The newest, at most `limit`. */
  list(filter: RemovalFilter, limit: number): Promise<Result<readonly ListedRemoval[], Fault>>;
  summarize(node: string, times: Times): Promise<Result<Summary, Fault>>;
}

export interface RemovalsGiven {
  readonly dataDir?: string;
  readonly api?: string;
  readonly tokenFile?: string;
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
