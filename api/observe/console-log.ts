import type { Log } from "./log.ts";

/** JSON lines on the console, in pino's form: what Workers keep as their log. */
export function consoleLog(now: () => number): Log {
  const line = (level: number, fields: Readonly<Record<string, unknown>>, message: string): string =>
    JSON.stringify({ level, time: now(), ...fields, msg: message });
  return {
    info: (fields, message) => console.log(line(30, fields, message)),
    warn: (fields, message) => console.warn(line(40, fields, message)),
    error: (fields, message) => console.error(line(50, fields, message)),
  };
}
