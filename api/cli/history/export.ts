import { once } from "node:events";
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { gzipSync } from "node:zlib";
import type { StoreFailure } from "../../../db/failure.ts";
import { storeAt } from "../../../db/open/node.ts";
import type { ExportFilter, Store } from "../../../db/store.ts";
import { MOVED_FORMAT, type MovedHeader } from "../../model/moved-row.ts";
import { ok, type Result } from "../../model/result.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { type HistoryPlace, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { barLine, EXIT, type Fault, fault, type Outcome, redrawnLine, stopFlag } from "../terminal.ts";
import { VERSION } from "../version-line.ts";
import { checkNode, withHistory } from "./open-history.ts";
import { timesOf } from "./source.ts";

export interface ExportFlags extends HistoryPlace {
  readonly node?: string;
  readonly since?: string;
  readonly until?: string;
  readonly tokens?: boolean;
}
/** Characters that are written, and compressed, at a time. */
const CHUNK = 4 * 1024 * 1024;

/** How far an export has come. */
interface Reached {
  readonly header: MovedHeader;
  readonly filter: ExportFilter;
  /** Of the rows that are written; empty: none is. */
  readonly place: string;
  readonly rows: number;
}
/** What a file has of it, and of which export it is. */
interface Kept {
  readonly reached: Reached;
  readonly bytes: number;
  readonly asked: readonly unknown[];
}

/** Where the lines go. */
interface Sink {
  /** A whole number of lines, and what is reached with them. */
  write(text: string, reached: Reached): Promise<void>;
  /** Nothing more comes. Answers the words for it. */
  end(): string;
}

/** Standard output, no faster than its reader. */
const outSink = (cli: Cli): Sink => ({
  write: async (text) => {
    cli.terminal.write(text);
    if (process.stdout.writableNeedDrain) await once(process.stdout, "drain");
  },
  end: () => "standard output",
});

/**
 * A file that grows beside its name, as `NAME.part`, and gets the name when it is whole. `NAME.place` tells what of it is on the disk.
 * Compressed, it is one member of gzip for each write, so that it can be cut behind any.
 */
function fileSink(file: string, asked: readonly unknown[], kept: Kept | null): Sink {
  const [part, place] = [`${file}.part`, `${file}.place`];
  const fd = openSync(part, kept === null ? "w" : "r+", 0o600);
  let bytes = kept?.bytes ?? 0;
  ftruncateSync(fd, bytes);
  return {
    write: async (text, reached) => {
      const plain = Buffer.from(text);
      const chunk = file.endsWith(".gz") ? gzipSync(plain) : plain;
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at, chunk.length - at, bytes + at);
      bytes += chunk.length;
      fsyncSync(fd);
      writeFileSync(`${place}.new`, JSON.stringify({ reached, bytes, asked } satisfies Kept), { mode: 0o600 });
      renameSync(`${place}.new`, place);
    },
    end: () => {
      closeSync(fd);
      renameSync(part, file);
      rmSync(place, { force: true });
      return `${printable(file)}: ${humanBytes(bytes)}`;
    },
  };
}

/** What an export of this name that was cut off has left. Null: nothing. Errors: it was another export. */
function keptOf(file: string, asked: readonly unknown[]): Result<Kept | null, Fault> {
  const [part, place] = [`${file}.part`, `${file}.place`];
  if (!existsSync(part) || !existsSync(place)) return ok(null);
  const kept = JSON.parse(readFileSync(place, "utf8")) as Kept;
  if (JSON.stringify(kept.asked) === JSON.stringify(asked)) return ok(kept);
  return fault(
    EXIT.badInput,
    `${part} is of an export with other options: give the same ones and it goes on, or remove ${part} and ${place}`,
  );
}

/** `nodewise history export [FILE]`: a history, or a part of it, as lines of JSON that any other store imports. */
export async function exportHistory(file: string | undefined, given: ExportFlags, cli: Cli): Promise<Outcome> {
  const nowMs = Date.now();
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  if (file !== undefined && existsSync(file))
    return fault(EXIT.badInput, `${file} is there already: name another file, or remove it`);
  const setting = storeSetting(given, cli);
  return withHistory(setting, false, async (store) => {
    const node = await checkNode(store, given.node);
    if (!node.ok) return node;
    const place = setting.ok ? storeAt(setting.value).label : "";
    // as they were given: a duration back from now is another time each time
    const asked = [place, given.node ?? null, given.since ?? null, given.until ?? null, given.tokens === true];
    const kept = file === undefined ? ok(null) : keptOf(file, asked);
    if (!kept.ok) return kept;
    const named = given.node === undefined ? {} : { node: given.node };
    const filter = { ...named, ...times.value, ...(given.tokens === true ? { tokens: true as const } : {}) };
    const sink = file === undefined ? outSink(cli) : fileSink(file, asked, kept.value);
    return write(store, sink, kept.value?.reached ?? (await beginning(store, filter, nowMs)), cli);
  });
}

async function beginning(store: Store, filter: ExportFilter, nowMs: number): Promise<Reached> {
  const { node, sinceMs, untilMs } = filter;
  let oldestAt: string | null = null;
  for await (const first of store.exportRows(filter)) {
    if (first.ok && first.value.atMs !== null) oldestAt = rfc3339(first.value.atMs);
    break;
  }
  const header: MovedHeader = {
    type: "nodewise-history",
    formatVersion: MOVED_FORMAT,
    version: VERSION,
    exportedAt: rfc3339(nowMs),
    ...(node === undefined ? {} : { node }),
    ...(sinceMs === undefined ? {} : { since: rfc3339(sinceMs) }),
    ...(untilMs === undefined ? {} : { until: rfc3339(untilMs) }),
    oldestAt,
  };
  return { header, filter, place: "", rows: 0 };
}

/** The share of the decisions that are exported, by their times. */
async function shares(store: Store, { header, filter }: Reached): Promise<(atMs: number | null) => number> {
  const newest = await store.newestDecision(filter.node);
  const fromMs = Date.parse(header.oldestAt ?? header.exportedAt);
  const endMs = Math.min(
    filter.untilMs ?? Number.POSITIVE_INFINITY,
    (newest.ok ? newest.value?.lastAtMs : undefined) ?? Date.now(),
  );
  return (atMs) => (atMs === null ? 1 : Math.min(1, Math.max(0, (atMs - fromMs) / Math.max(1, endMs - fromMs))));
}

async function write(store: Store, sink: Sink, from: Reached, cli: Cli): Promise<Outcome> {
  const { header, filter } = from;
  const shareAt = await shares(store, from);
  const line = redrawnLine(process.stderr);
  const isStopped = stopFlag();
  const damaged: StoreFailure[] = [];
  let { place, rows } = from;
  let text = place === "" ? `${JSON.stringify(header)}\n` : "";
  const flush = async (): Promise<void> => {
    await sink.write(text, { header, filter, place, rows });
    text = "";
  };
  for await (const step of store.exportRows(filter, place === "" ? undefined : place)) {
    if (!step.ok && step.error.isRow === true) damaged.push(step.error);
    if (!step.ok && step.error.isRow !== true) {
      line.clear();
      await flush();
      return fault(EXIT.failed, `${step.error.message}; the same command goes on with the export`);
    }
    if (!step.ok) continue;
    for (const row of step.value.rows) text += `${JSON.stringify(row)}\n`;
    rows += step.value.rows.length;
    place = step.value.place;
    if (text.length < CHUNK && !isStopped()) continue;
    await flush();
    const { atMs } = step.value;
    const told = [`${rows.toLocaleString("en")} rows`, ...(atMs === null ? [] : [`at ${rfc3339(atMs)}`])];
    line.show((columns) => barLine(shareAt(atMs), told, columns));
    if (!isStopped()) continue;
    line.clear();
    return fault(EXIT.interrupted, "the export was ended: the same command goes on with it");
  }
  line.clear();
  for (const one of damaged) cli.terminal.warn(`nodewise: left out: ${one.message}`);
  text += `${JSON.stringify({ type: "end", rows })}\n`;
  await flush();
  cli.terminal.warn(`nodewise: ${sink.end()}, ${rows.toLocaleString("en")} rows`);
  return ok(damaged.length === 0 ? EXIT.ok : EXIT.negative);
}
