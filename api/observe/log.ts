/** One event per line. The fields never contain a body, a query, a header or a secret. */
export interface Log {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** The fields of a log line for something thrown. */
export function errorFields(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: String(error) };
  return { error: error.message, stack: error.stack };
}

/** JSON lines on the console, in pino's form: Workers store these as their log. */
export function consoleLog(now: () => number): Log {
  const line = (level: number, fields: Readonly<Record<string, unknown>>, message: string): string =>
    JSON.stringify({ level, time: now(), ...fields, msg: message });
  return {
    info: (fields, message) => console.log(line(30, fields, message)),
    warn: (fields, message) => console.warn(line(40, fields, message)),
    error: (fields, message) => console.error(line(50, fields, message)),
  };
}
