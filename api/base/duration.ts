import { err, ok, type Result } from "./result.ts";

/** A Go duration (`100ms`, `5m0s`, `1h15m30.918s`); `text` is what was posted. */
export class Duration {
  readonly nanos: number;
  readonly text: string;
  constructor(nanos: number, text: string) {
    this.nanos = nanos;
    this.text = text;
  }
  get millis(): number {
    return this.nanos / 1e6;
  }
  /** Whole microseconds, truncated as Go's `d / time.Microsecond`. */
  get micros(): number {
    return Math.trunc(this.nanos / 1e3);
  }
  toJSON(): string {
    return this.text;
  }
}

const UNIT_NANOS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

const MAX_NANOS = 2 ** 63;

export const LONGEST_DURATION = 64;

export const DURATION = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/;

const PART = /(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g;

const malformed = (text: string): Result<never, string> =>
  err(`\`${text.slice(0, LONGEST_DURATION)}\` is not a duration (such as 100ms, 10s, 5m0s)`);

/** Parses what Go's `time.ParseDuration` takes. Error: not a duration, or one that leaves int64 nanoseconds. */
export function parseDuration(text: string): Result<Duration, string> {
  if (text.length > LONGEST_DURATION) return malformed(text);
  const match = DURATION.exec(text);
  if (match === null) return malformed(text);
  let nanos = 0;
  PART.lastIndex = 0;
  for (let part = PART.exec(text); part !== null; part = PART.exec(text)) {
    const unit = UNIT_NANOS[part[3] as string] as number;
    // as Go: whole units exactly, then the fraction of one
    const fraction = part[2] as string;
    nanos += Number(part[1]) * unit + Math.trunc(Number(fraction) * (unit / 10 ** fraction.length));
  }
  if (nanos >= MAX_NANOS) return err(`duration \`${text}\` is out of range`);
  return ok(new Duration(match[1] === "-" ? -Math.trunc(nanos) : Math.trunc(nanos), text));
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** A duration before now; not empty. Days, then what Go writes (`7d`, `12h`, `1d12h30m`, `0`). */
export const BACK_FROM_NOW = /^(?:(\d{1,6})d)?((?:\d{1,5}(?:\.\d{1,3})?(?:ms|[smh])){0,4}|0)$/;

/** The time that lies a `BACK_FROM_NOW` before `nowMs`, in epoch ms. Null: the text is no `BACK_FROM_NOW`. */
export function durationBefore(text: string, nowMs: number): number | null {
  const [matched = "", days = "0", rest = ""] = BACK_FROM_NOW.exec(text) ?? [];
  const duration = parseDuration(rest === "" ? "0" : rest);
  return matched !== "" && duration.ok ? Math.floor(nowMs - Number(days) * DAY_MS - duration.value.millis) : null;
}
