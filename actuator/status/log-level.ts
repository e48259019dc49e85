/** Least first. */
export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Whether a line of this level is wanted. */
export const isWanted = (level: LogLevel, wanted: LogLevel): boolean =>
  LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(wanted);
