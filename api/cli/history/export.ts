import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { gzipSync } from "node:zlib";
import { storeAt } from "../../../db/open/node.ts";
import type { Store } from "../../../db/store.ts";
import { Lru } from "../../base/cache.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { ExportHeader, ExportRow } from "../../model/export-row.ts";
import { type ExportPage, type ExportPart, exportHeader, exportProgress, partOf } from "../../service/export-page.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { apiOf, timeText } from "../inputs/history-api.ts";
import { timesOf, tokenOf } from "../inputs/history-source.ts";
import { checkNode, storeFault, withHistory } from "../inputs/open-history.ts";
import { barLine, EXIT, type Fault, fault, type Outcome, redrawnLine, stopFlag } from "../terminal.ts";

export interface ExportFlags extends HistorySourceFlags {
  readonly node?: string;
  readonly since?: string;
  readonly until?: string;
  readonly tokens?: boolean;
}
/** The number of characters written, and compressed, at a time. */
const CHUNK = 4 * 1024 * 1024;

/** The progress of an export. */
interface ExportProgress {
  readonly header: ExportHeader;
  /** The position after the written rows; empty if there are none. */
  readonly place: string;
  readonly rows: number;
}
/** The part of an export that is in a file, and which export it is. */
interface ExportedPart {
  readonly reached: ExportProgress;
  readonly bytes: number;
  readonly asked: readonly unknown[];
}

/** Where the lines are written. */
interface Sink {
  /** Writes whole lines; `reached`: the progress with them. */
  write(text: string, reached: ExportProgress): Promise<void>;
  /** Ends the output. Returns a closing message. */
  end(): string;
}

/** Standard output, no faster than it is read. */
const outSink = (cli: Cli): Sink => ({
  write: async (text) => {
    cli.terminal.write(text);
    if (process.stdout.writableNeedDrain) await once(process.stdout, "drain");
  },
  end: () => "standard output",
});

/**
 * Locks a file's name for this process. Null if another running process has it. The lock of a killed process is ignored. The lock
 * file appears with its content, so that no process reads it half written.
 */
function lockFile(file: string): (() => void) | null {
  const [lock, own] = [`${file}.lock`, `${file}.lock.${process.pid}.${randomUUID()}`];
  writeFileSync(own, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
  try {
    while (!linked(own, lock)) {
      const holder = holderOf(lock);
      if (holder !== null && isRunning(holder)) return null;
      if (holder !== null) rmSync(lock, { force: true });
    }
    return () => rmSync(lock, { force: true });
  } finally {
    rmSync(own, { force: true });
  }
}
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
/** The process with a lock; null if it was released meanwhile. */
function holderOf(lock: string): number | null {
  try {
    return Number(readFileSync(lock, "utf8"));
  } catch {
    return null;
  }
}
function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * A file that is written as `NAME.part` and renamed when complete. `NAME.place` says how much of it is on disk. Compressed, each
 * write is a separate gzip member, so that the file can be cut after any of them.
 */
function fileSink(file: string, asked: readonly unknown[], kept: ExportedPart | null): Sink {
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
      writeFileSync(`${place}.new`, JSON.stringify({ reached, bytes, asked } satisfies ExportedPart), { mode: 0o600 });
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

/** A damaged file counts as no export. */
function readExportedPart(place: string): ExportedPart | { readonly asked: null } {
  try {
    return JSON.parse(readFileSync(place, "utf8")) as ExportedPart;
  } catch {
    return { asked: null };
  }
}

/** The part that an interrupted export to this file left. Null if there is none. Errors: it was another export. */
function exportedPartOf(file: string, asked: readonly unknown[]): Result<ExportedPart | null, Fault> {
  const [part, place] = [`${file}.part`, `${file}.place`];
  if (!existsSync(part) || !existsSync(place)) return ok(null);
  const kept = readExportedPart(place);
  if (kept.asked !== null && JSON.stringify(kept.asked) === JSON.stringify(asked)) return ok(kept);
  return fault(
    EXIT.badInput,
    `${part} is of an export with other options: give the same options and it continues, or remove ${part} and ${place}`,
  );
}

const isThere = (file: string): Result<never, Fault> =>
  fault(EXIT.badInput, `${file} is there already: name another file, or remove it`);

/** `nodewise history export [FILE]`: writes a history, or part of it, as lines of JSON that any other store can import. */
export async function exportHistory(file: string | undefined, given: ExportFlags, cli: Cli): Promise<Outcome> {
  const times = timesOf(given, Date.now());
  if (!times.ok) return times;
  if (file !== undefined && existsSync(file)) return isThere(file);
  const part = { ...(given.node === undefined ? {} : { node: given.node }), ...times.value };
  const written = async (from: ExportSource): Promise<Outcome> => {
    // as given: a duration before now is a different time in each run
    const asked = [from.label, given.node ?? null, given.since ?? null, given.until ?? null, given.tokens === true];
    let release: (() => void) | null = null;
    try {
      if (file !== undefined) {
        release = lockFile(file);
        if (release === null)
          return fault(
            EXIT.failed,
            `${file}: another export writes to it: wait until it has ended, or name another file (${file}.lock names its process)`,
          );
        // the previous process may have finished it meanwhile
        if (existsSync(file)) return isThere(file);
      }
      const kept = file === undefined ? ok(null) : exportedPartOf(file, asked);
      return kept.ok ? await begin(from, kept.value, asked) : kept;
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException;
      if (code === undefined || syscall === undefined || file === undefined) throw error;
      const advice = "make room or name another file; the same command continues the export";
      return fault(EXIT.failed, `${file} cannot be written (${code}): ${advice}`);
    } finally {
      release?.();
    }
  };
  const begin = async (from: ExportSource, kept: ExportedPart | null, asked: readonly unknown[]): Promise<Outcome> => {
    const begun = kept === null ? await from.begin(part) : ok(kept.reached.header);
    if (!begun.ok) return begun;
    const sink = file === undefined ? outSink(cli) : fileSink(file, asked, kept);
    return write(from, sink, kept?.reached ?? { header: begun.value, place: "", rows: 0 }, cli);
  };
  if (given.api !== undefined) {
    const token = await tokenOf(given, cli);
    if (!token.ok) return token;
    const source = apiSource(given.api, token.value);
    return source.ok ? written(source.value) : source;
  }
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  return withHistory(setting, false, async (store) => {
    const node = await checkNode(store, given.node);
    return node.ok ? written(storeSource(store, storeAt(setting.value).name, given.tokens === true)) : node;
  });
}

async function write(source: ExportSource, sink: Sink, from: ExportProgress, cli: Cli): Promise<Outcome> {
  const { header } = from;
  const line = redrawnLine(process.stderr);
  const isStopped = stopFlag();
  const leftOut: string[] = [];
  let { place, rows } = from;
  let text = place === "" ? `${JSON.stringify(header)}\n` : "";
  const flush = async (): Promise<void> => {
    await sink.write(text, { header, place, rows });
    text = "";
  };
  for await (const step of source.steps(header, place)) {
    if (!step.ok) {
      line.clear();
      await flush();
      return err({ ...step.error, lines: [...step.error.lines, "the same command continues the export"] });
    }
    leftOut.push(...step.value.leftOut);
    for (const row of step.value.rows) text += `${JSON.stringify(row)}\n`;
    rows += step.value.rows.length;
    // only the end follows, and is written with it
    if (step.value.place === null) break;
    place = step.value.place;
    if (text.length < CHUNK && !isStopped()) continue;
    await flush();
    const { reachedAt, progress } = step.value;
    const figures = [`${rows.toLocaleString("en")} rows`, ...(reachedAt === null ? [] : [`at ${reachedAt}`])];
    line.show((columns) => barLine(progress, figures, columns));
    if (!isStopped()) continue;
    line.clear();
    return fault(EXIT.interrupted, "the export was interrupted: the same command continues it");
  }
  line.clear();
  for (const one of leftOut) cli.terminal.warn(`nodewise: left out: ${one}`);
  text += `${JSON.stringify({ type: "end", rows })}\n`;
  await flush();
  cli.terminal.warn(`nodewise: ${sink.end()}, ${rows.toLocaleString("en")} rows`);
  return ok(leftOut.length === 0 ? EXIT.ok : EXIT.negative);
}

/** The next rows of an export. */
type ExportStep = Pick<ExportPage, "rows" | "leftOut" | "reachedAt" | "progress"> & {
  /** The position after which an export continues; null at the end. */
  readonly place: string | null;
};

/** The source of an export: a store, or a running API. */
interface ExportSource {
  /** Distinguishes it from other sources. */
  readonly label: string;
  /** The first line. Errors: there is no such history, or the caller may not read it. */
  begin(part: ExportPart): Promise<Result<ExportHeader, Fault>>;
  /** The rows after a position; empty for all rows after the first line. */
  steps(header: ExportHeader, place: string): AsyncGenerator<Result<ExportStep, Fault>>;
}

const storeSource = (store: Store, label: string, hasTokens: boolean): ExportSource => ({
  label,
  begin: async (part) => ok(await exportHeader(store, part, Date.now())),
  async *steps(header, after) {
    const part = partOf(header);
    const shareAt = await exportProgress(store, header, part);
    let place = after;
    const filter = hasTokens ? { ...part, tokens: true as const } : part;
    for await (const step of store.exportRows(filter, place === "" ? undefined : place)) {
      if (!step.ok && step.error.isRow !== true) return yield storeFault(step);
      const { rows, atMs } = step.ok ? step.value : { rows: [], atMs: null };
      if (step.ok) place = step.value.place;
      const reachedAt = atMs === null ? null : rfc3339(atMs);
      yield ok({ rows, place, reachedAt, progress: shareAt(atMs), leftOut: step.ok ? [] : [step.error.message] });
    }
  },
});

/** How many texts and snapshots are remembered as exported, since pages of an API may repeat them. */
const SENT = 128 * 1024;

/** Errors: an invalid address. */
function apiSource(url: string, token: string | undefined): Result<ExportSource, Fault> {
  const api = apiOf(url, token);
  if (!api.ok) return api;
  const page = ({ node, sinceMs, untilMs }: ExportPart, more: { limit?: string; pageToken?: string }) =>
    api.value<ExportPage>("v1/history", { node, since: timeText(sinceMs), until: timeText(untilMs), ...more });
  return ok({
    label: url,
    begin: async (part) => {
      const first = await page(part, { limit: "1" });
      return first.ok ? ok(first.value.header) : first;
    },
    async *steps(header, after) {
      const sent = new Lru<string, true>(SENT);
      const isNew = (row: ExportRow): boolean => {
        if (row.type !== "text" && row.type !== "snapshot") return true;
        const key = `${row.type}/${row.id}`;
        const isSent = sent.get(key) === true;
        sent.set(key, true);
        return !isSent;
      };
      for (let place: string | null = after; place !== null; ) {
        const next: Result<ExportPage, Fault> = await page(partOf(header), place === "" ? {} : { pageToken: place });
        if (!next.ok) return yield next;
        const { rows, nextPageToken, leftOut, reachedAt, progress } = next.value;
        place = nextPageToken;
        yield ok({ rows: rows.filter(isNew), place, leftOut, reachedAt, progress });
      }
    },
  });
}
