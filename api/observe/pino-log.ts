import pino from "pino";
import type { Log } from "./log.ts";

type LogLevel = "silent" | "error" | "warn" | "info";
interface ClosableLog extends Log {
  /** Writes pending lines. */
  flush(): void;
}

/** JSON lines to a file descriptor (by default 2, standard error), written in the background with a short delay. */
export function pinoLog(level: LogLevel = "info", fd = 2): ClosableLog {
  const destination = pino.destination({ fd, sync: false, minLength: 4096, periodicFlush: 200 });
  // the other end of the pipe was closed, so nobody reads the lines
  destination.on("error", () => {});
  const logger = pino({ level, base: null }, destination);
  return {
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    flush: () => {
      try {
        destination.flushSync();
      } catch {
        // not open yet, or closed by its reader: there is nothing to write
      }
    },
  };
}
