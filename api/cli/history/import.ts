import { createReadStream, statSync } from "node:fs";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { ImportCounts, ImportedRows, Store } from "../../../db/store.ts";
import { DAY_MS } from "../../base/duration.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { lines } from "../../http/batch.ts";
import { type ExportHeader, type ExportRow, MAX_EXPORT_LINE } from "../../model/export-row.ts";
import { DEFAULT_RETENTION } from "../../retention.ts";
import { checkExportHeader, type ExportLine, readExportLine } from "../../service/export-line.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { withoutEnv } from "../cluster-options.ts";
import { linesPoster } from "../inputs/history-api.ts";
import { tokenOf } from "../inputs/history-source.ts";
import { storeFault, withHistory } from "../inputs/open-history.ts";
import { barLine, EXIT, type Fault, fault, type Outcome, redrawnLine, stopFlag } from "../terminal.ts";

/** Where rows are written: at most this many rows and bytes at a time. */
interface Target {
  readonly rows: number;
  readonly bytes: number;
  readonly takesTokens: boolean;
  take(header: ExportHeader, rows: readonly ExportRow[]): Promise<Result<ImportedRows, Fault>>;
}

const storeTarget = (store: Store): Target => ({
  rows: 500,
  bytes: 8 * 1024 * 1024,
  takesTokens: true,
  take: async (_, rows) => {
    const imported = await store.importRows(rows, Date.now());
    return imported.ok ? imported : storeFault(imported);
  },
});

function apiTarget(url: string, token: string | undefined): Result<Target, Fault> {
  const post = linesPoster(url, token);
  if (!post.ok) return post;
  return ok({
    rows: 100,
    bytes: 2 * 1024 * 1024,
    takesTokens: false,
    take: (header, rows) => post.value<ImportedRows>("v1/history", [header, ...rows]),
  });
}

/** `nodewise history import [FILE]`: writes an export into another store or a running API. */
export async function importHistory(file: string | undefined, given: HistorySourceFlags, cli: Cli): Promise<Outcome> {
  const source = sourceOf(file, cli);
  if (!source.ok) return source;
  const { api, database, dataDir } = withoutEnv(given, cli);
  if (api !== undefined && (database ?? dataDir) !== undefined)
    return fault(
      EXIT.badInput,
      `--api and ${dataDir === undefined ? "--database" : "--data-dir"} name two places to import into: give only one`,
    );
  // before a history is created: an invalid file leaves nothing behind
  const begun = await beginningOf(source.value);
  if (!begun.ok) return begun;
  if (given.api === undefined)
    return withHistory(storeSetting(given, cli), true, (store) =>
      new Import(begun.value, storeTarget(store), cli).run(),
    );
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const target = apiTarget(given.api, token.value);
  return target.ok ? new Import(begun.value, target.value, cli).run() : target;
}

interface Source {
  readonly name: string;
  readonly stream: Readable;
  /** Null if the length is unknown. */
  readonly bytes: number | null;
}

function sourceOf(file: string | undefined, cli: Cli): Result<Source, Fault> {
  if (file === undefined || file === "-") {
    if (file === undefined && !cli.isPiped())
      return fault(EXIT.badInput, "name the file that `nodewise history export` wrote, or pipe it in");
    return ok({ name: "standard input", stream: process.stdin, bytes: null });
  }
  try {
    const stat = statSync(file);
    if (stat.isDirectory()) return fault(EXIT.badInput, `${file}: is a folder: name the file that the export wrote`);
    return ok({
      name: file,
      bytes: stat.size,
      stream: createReadStream(file, { highWaterMark: 1024 * 1024 }),
    });
  } catch (error) {
    return fault(EXIT.badInput, `${file}: cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** The bytes, decompressed if they are gzip. `passed` is called with the size of each chunk read. */
function plainOf(stream: Readable, passed: (bytes: number) => void): ReadableStream<Uint8Array> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    const counted = async function* (first: Uint8Array | null, rest: AsyncIterator<Buffer>) {
      for (let chunk = first; chunk !== null; ) {
        passed(chunk.length);
        yield chunk;
        const next = await rest.next();
        chunk = next.done === true ? null : next.value;
      }
    };
    const source = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const begin = await source.next();
    if (begin.done === true) return;
    const isGzip = begin.value[0] === 0x1f && begin.value[1] === 0x8b;
    const all = counted(begin.value, source);
    if (!isGzip) return yield* all;
    const gunzip = createGunzip();
    // errors are reported by the stream that is read
    pipeline(Readable.from(all), gunzip, () => {});
    yield* gunzip;
  }
  return ReadableStream.from(chunks()) as ReadableStream<Uint8Array>;
}

/** An export whose first line has been read. */
interface OpenedExport {
  readonly header: ExportHeader;
  readonly name: string;
  readonly size: number | null;
  /** The other lines. */
  readonly rest: ReturnType<typeof lines>;
  /** Bytes of the file read so far. */
  passed(): number;
}

/** Errors: it does not start like an export. */
async function beginningOf({ name, stream, bytes: size }: Source): Promise<Result<OpenedExport, Fault>> {
  let passed = 0;
  const plain = plainOf(stream, (bytes) => {
    passed += bytes;
  });
  const rest = lines(plain, MAX_EXPORT_LINE);
  const first = await rest.next();
  if (first.done === true || !first.value.bytes.ok)
    return fault(EXIT.failed, `${name} ends within line 1; ${EXPORT_AGAIN}`);
  const at = `line ${first.value.number}`;
  const line = readExportLine(first.value.bytes.value);
  if (!line.ok) return fault(EXIT.badInput, `${at}: it is not the first line of an exported history: ${line.error}`);
  const header = checkExportHeader(line.value);
  return header.ok
    ? ok({ header: header.value, name, size, rest, passed: () => passed })
    : fault(EXIT.badInput, `${at}: ${header.error}`);
}

class Import {
  readonly #begun: OpenedExport;
  readonly #target: Target;
  readonly #cli: Cli;
  readonly #counts = { added: {} as Record<string, number>, known: {} as Record<string, number> };
  #rows: ExportRow[] = [];
  #bytes = 0;
  #first = 0;
  #tokens = 0;

  constructor(begun: OpenedExport, target: Target, cli: Cli) {
    this.#begun = begun;
    this.#target = target;
    this.#cli = cli;
  }

  async run(): Promise<Outcome> {
    const { header, name, size, rest, passed } = this.#begun;
    this.#warn(header);
    const line = redrawnLine(process.stderr);
    const isStopped = stopFlag();
    /** The last unreadable line: if nothing follows, the file is truncated. */
    let broken: { readonly number: number; readonly message: string } | null = null;
    let isWhole = false;
    let last = 1;
    for await (const { number, bytes } of rest) {
      if (broken !== null) return this.#ended(line, `line ${broken.number}: ${broken.message}`, CORRECT);
      last = number;
      const read = bytes.ok ? readExportLine(bytes.value) : err(bytes.error === "too_large" ? "it is too long" : CUT);
      if (!read.ok) {
        broken = { number, message: read.error };
        continue;
      }
      const taken = await this.#line(read.value, number, bytes.ok ? bytes.value.length : 0);
      if (!taken.ok) {
        line.clear();
        return taken;
      }
      isWhole = read.value.type === "end";
      if (read.value.type === "end" && read.value.rows !== number - 2)
        return this.#ended(
          line,
          `line ${number}: the export wrote ${read.value.rows} rows, and ${number - 2} arrived`,
          EXPORT_ANEW,
        );
      line.show((columns) =>
        barLine(size === null ? 0 : passed() / Math.max(1, size), [this.#progressText()], columns),
      );
      if (!isStopped()) continue;
      line.clear();
      return fault(EXIT.interrupted, "the import was interrupted: run it again, and it skips what is there");
    }
    if (broken !== null || !isWhole)
      return this.#ended(line, `${name} ends within line ${broken?.number ?? last + 1}`, EXPORT_AGAIN);
    const flushed = await this.#flush();
    line.clear();
    if (!flushed.ok) return flushed;
    this.#printCounts(size);
    return ok(EXIT.ok);
  }

  async #line(line: ExportLine, number: number, bytes: number): Promise<Result<null, Fault>> {
    if (line.type === "end" || line.type === "nodewise-history") return ok(null);
    if (line.type === "token" && !this.#target.takesTokens) {
      this.#tokens++;
      return ok(null);
    }
    // a snapshot stays with the row that was made on it: alone, a sweep of the target would remove it
    const isFull = this.#rows.length >= this.#target.rows || this.#bytes + bytes > this.#target.bytes;
    if (isFull && this.#rows.at(-1)?.type !== "snapshot") {
      const flushed = await this.#flush();
      if (!flushed.ok) return flushed;
    }
    if (this.#rows.length === 0) this.#first = number;
    this.#rows.push(line);
    this.#bytes += bytes;
    return ok(null);
  }

  async #flush(): Promise<Result<null, Fault>> {
    if (this.#rows.length === 0) return ok(null);
    const imported = await this.#target.take(this.#begun.header, this.#rows);
    if (!imported.ok) {
      const [message = "", ...more] = imported.error.lines;
      const at = `lines ${this.#first} to ${this.#first + this.#rows.length - 1}: ${message}`;
      return err({ ...imported.error, lines: [`${at}; what is before them is imported`, ...more] });
    }
    for (const which of ["added", "known"] as const)
      for (const [type, count] of Object.entries(imported.value[which]))
        this.#counts[which][type] = (this.#counts[which][type] ?? 0) + count;
    this.#rows = [];
    this.#bytes = 0;
    return ok(null);
  }

  /** Imports the rows before a fault of the file, and prints what to do. */
  async #ended(line: { clear(): void }, what: string, advice: string): Promise<Outcome> {
    // the rows of an incomplete line
    while (/^(?:text|snapshot)$/.test(this.#rows.at(-1)?.type ?? "")) this.#rows.pop();
    const flushed = await this.#flush();
    line.clear();
    if (!flushed.ok) return flushed;
    return fault(EXIT.failed, `${what}; what is before it is imported; ${advice}`);
  }

  #warn({ oldestAt }: ExportHeader): void {
    const days = oldestAt === null ? 0 : Math.ceil((Date.now() - Date.parse(oldestAt)) / DAY_MS);
    const { maxAgeMs, maxRowsPerNode } = DEFAULT_RETENTION;
    if (days * DAY_MS <= maxAgeMs) return;
    this.#cli.terminal.warn(
      `nodewise: the oldest decision is of ${oldestAt}: an API on this history removes at its next sweep what is older than its --keep-days (on Workers NODEWISE_KEEP_DAYS; default ${maxAgeMs / DAY_MS}) and beyond ${maxRowsPerNode} of a node; to keep all of it, start it with ${days + 1} days before you import`,
    );
  }

  #progressText(): string {
    const decisions = (this.#counts.added["decision"] ?? 0) + (this.#counts.known["decision"] ?? 0);
    return `${decisions.toLocaleString("en")} decisions`;
  }

  #printCounts(size: number | null): void {
    const counts = (["decision", "snapshot", "outcome", "removal", "token"] as const).flatMap((type) => {
      const [added, known] = [countOf(this.#counts.added, type), countOf(this.#counts.known, type)];
      const there = known === 0 ? "" : ` (${known.toLocaleString("en")} were there)`;
      return added + known === 0 ? [] : [`${type}s ${added.toLocaleString("en")}${there}`];
    });
    const nodes = countOf(this.#counts.added, "node") + countOf(this.#counts.known, "node");
    const read = size === null ? "" : `; read ${humanBytes(size)}`;
    this.#cli.terminal.write(`${printable(`imported: ${[...counts, `nodes ${nodes}`].join(", ")}${read}`)}\n`);
    if (this.#tokens > 0)
      this.#cli.terminal.warn(
        `nodewise: tokens are not sent over HTTP: create them again where the API runs (${this.#tokens} were left out)`,
      );
  }
}

const countOf = (counts: ImportCounts | Record<string, number>, type: keyof ImportCounts): number => counts[type] ?? 0;
const CUT = "the file ends within it, or is damaged";
const CORRECT = "correct or remove that line, or export again, and import again: what is there is skipped";
const EXPORT_ANEW = "lines are missing, or there twice: export again, and import again: what is there is skipped";
const EXPORT_AGAIN =
  "run the export to its end (the same command continues it), then import again: existing rows are skipped";
