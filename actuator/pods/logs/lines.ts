/** Options of a log request, as in v1.PodLogOptions. */
export interface LogFilter {
  /** Only this many of the last lines. */
  readonly tail?: number;
  /** Only lines since this time, in nanoseconds since 1970. */
  readonly sinceNanos?: bigint;
}
type LogStream = "stdout" | "stderr";
export interface LinesOptions extends Pick<LogFilter, "sinceNanos"> {
  readonly write: (stream: LogStream, bytes: Buffer) => Promise<void>;
  /** Adds to each line the time at which it was written. */
  readonly timestamps?: boolean;
  /** A prefix for each line. */
  readonly prefix?: string;
  /** At most this many bytes. */
  readonly limitBytes?: number;
  /** Called for each complete line that is not skipped. */
  readonly onLine?: () => void;
}

const FEED = 0x0a;
/** `2026-01-01T00:00:00.000000000Z stdout F text`; the tag P marks a partial line, which the next line continues. */
const HEAD = /^(\S{10,64}) (stdout|stderr) (\S{1,64}) /;
const LONGEST_HEAD = 160;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** Parses RFC 3339 to nanoseconds since 1970; undefined: the text is not RFC 3339. */
export function nanosOf(time: string): bigint | undefined {
  const [, seconds, fraction = "", zone] = TIME.exec(time) ?? [];
  const ms = seconds === undefined ? Number.NaN : Date.parse(seconds + zone);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/**
 * Splits a CRI log, in chunks as they are read, into lines and writes each to its stream. Lines of another form are
 * dropped. kubelet 1.36: parseCRILog, logWriter.
 */
export class LogLines {
  readonly #options: LinesOptions;
  /** The beginning of an incomplete line. */
  #rest: Buffer[] = [];
  #skip = 0;
  #left: number;
  /** Pending output; consecutive parts for one stream are written together. */
  readonly #out: { readonly stream: LogStream; readonly parts: Buffer[] }[] = [];
  /** Streams in the middle of a line. */
  readonly #within = new Set<LogStream>();

  constructor(options: LinesOptions) {
    this.#options = options;
    this.#left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  get wantsMore(): boolean {
    return this.#left > 0;
  }
  /** Leaves out the next `lines` lines. */
  skip(lines: number): void {
    this.#skip = lines;
  }
  async push(bytes: Buffer): Promise<void> {
    let from = 0;
    for (let feed = bytes.indexOf(FEED); feed >= 0 && this.wantsMore; feed = bytes.indexOf(FEED, from)) {
      const end = bytes.subarray(from, feed + 1);
      from = feed + 1;
      this.#line(this.#rest.length === 0 ? end : Buffer.concat([...this.#rest.splice(0), end]));
    }
    if (from < bytes.length) this.#rest.push(bytes.subarray(from));
    await this.#flush();
  }
  /** Handles the last line if it has no line feed. */
  async end(): Promise<void> {
    const rest = Buffer.concat(this.#rest.splice(0));
    if (rest.length > 0 && this.wantsMore) this.#line(rest);
    await this.#flush();
  }

  #line(line: Buffer): void {
    const head = HEAD.exec(line.subarray(0, LONGEST_HEAD).toString("latin1"));
    if (head === null) return;
    const [whole, time, stream, tags] = head as unknown as [string, string, LogStream, string];
    const isPart = tags.split(":")[0] === "P";
    if (this.#skip > 0) {
      if (!isPart) this.#skip--;
      return;
    }
    if (!isPart) this.#options.onLine?.();
    const { sinceNanos } = this.#options;
    if (sinceNanos !== undefined && (nanosOf(time) ?? 0n) < sinceNanos) return;
    const hasFeed = isPart && line.at(-1) === FEED;
    this.#put(stream, this.#begins(stream, time), line.subarray(whole.length, hasFeed ? -1 : undefined));
    if (isPart) this.#within.add(stream);
    else this.#within.delete(stream);
  }

  #begins(stream: LogStream, time: string): string {
    if (this.#within.has(stream)) return "";
    const { timestamps, prefix = "" } = this.#options;
    return timestamps === true ? `${prefix}${fixedTime(time)} ` : prefix;
  }

  #put(stream: LogStream, begin: string, text: Buffer): void {
    let run = this.#out.at(-1);
    if (run?.stream !== stream) {
      run = { stream, parts: [] };
      this.#out.push(run);
    }
    for (const part of begin === "" ? [text] : [Buffer.from(begin), text]) {
      const wanted = part.length > this.#left ? part.subarray(0, this.#left) : part;
      this.#left -= wanted.length;
      run.parts.push(wanted);
    }
  }
  async #flush(): Promise<void> {
    for (const { stream, parts } of this.#out.splice(0)) await this.#options.write(stream, Buffer.concat(parts));
  }
}

/** Pads the fraction to nine digits, since containerd cuts off trailing zeros. */
const fixedTime = (time: string): string =>
  time.replace(
    TIME,
    (_, seconds: string, fraction = "", zone: string) => `${seconds}.${fraction.padEnd(9, "0")}${zone}`,
  );
