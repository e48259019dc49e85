import { createRequire } from "node:module";
import type { pino as Pino } from "pino";
import { redacted } from "../core/error-text.ts";

/** Least first. */
export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Checks that a line of this level is wanted. */
export const isWanted = (level: LogLevel, wanted: LogLevel): boolean =>
  LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(wanted);

const LONGEST_FLUSH_MS = 1_000;
const require = createRequire(import.meta.url);

/** One line. Its fields are chosen one by one: never a whole pod, snapshot or environment. */
export interface LogEntry {
  readonly level: Exclude<LogLevel, "silent">;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}
export interface DaemonLog {
  write(entry: LogEntry): void;
  /** Resolves when everything written so far is out, or after at most a second. */
  flush(): Promise<void>;
}

/** JSON lines in pino's form, as the API's log, to a file descriptor (2, standard error), written in the background and soon. */
export function jsonLog(level: LogLevel, fd = 2): DaemonLog {
  // loaded only if needed: it takes some MB in a small daemon
  const pino = require("pino") as typeof Pino;
  const destination = pino.destination({ fd, sync: false, minLength: 4096, periodicFlush: 200 });
  // whoever closed the other end of the pipe does not want the lines
  destination.on("error", () => {});
  const logger = pino({ level, base: null }, destination);
  return {
    write: ({ level, message, fields }) => {
      if (logger.isLevelEnabled(level)) logger[level](clean(fields) as object, clean(message) as string);
    },
    flush: () =>
      new Promise((resolve) => {
        // a reader that does not read must not delay the shutdown
        setTimeout(resolve, LONGEST_FLUSH_MS).unref();
        destination.flush(() => resolve());
      }),
  };
}

const LONGEST_TEXT = 4096;

/** Every text, however deep, without secrets and of a bounded length. */
function clean(value: unknown): unknown {
  if (typeof value === "string") return redacted(value.slice(0, LONGEST_TEXT));
  if (Array.isArray(value)) return value.map(clean);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, clean(one)]));
}
