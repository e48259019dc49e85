import { colorPaint, plainPaint, printable, type Screen } from "../text/style.ts";
import { EXIT } from "./exit.ts";

/** Where a command writes, and how wide and colourful it may. */
export interface Terminal extends Screen {
  /** Answers: standard output. */
  write(text: string): void;
  /** Everything else: standard error, one printable line. */
  warn(line: string): void;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The terminal of this process. A reader that goes away (`| head`, a closed window) ends the process quietly; an answer that
 * cannot be written (a full disk) ends it with a line and as a failure.
 */
export function processTerminal(env: Environment): Terminal {
  const { stdout, stderr } = process;
  const endOf = (error: NodeJS.ErrnoException) =>
    error.code === "EPIPE" || error.code === "EIO" ? EXIT.ok : EXIT.failed;
  stderr.on("error", (error: NodeJS.ErrnoException) => process.exit(endOf(error)));
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    const exit = endOf(error);
    if (exit !== EXIT.ok) stderr.write(`${printable(`nodewise: standard output: ${error.message}`)}\n`);
    process.exit(exit);
  });
  return {
    write: (text) => void stdout.write(text),
    warn: (line) => void stderr.write(`${printable(line)}\n`),
    columns: columnsOf(env, stdout.isTTY ? stdout.columns : undefined),
    paint: isColorful(env, stdout.isTTY === true) ? colorPaint : plainPaint,
  };
}

/** COLUMNS wins where it is exported, as it does for other programs. */
export function columnsOf(env: Environment, terminal: number | undefined): number {
  const asked = Number(env["COLUMNS"]);
  if (Number.isInteger(asked) && asked > 0) return asked;
  return terminal === undefined || terminal === 0 ? Number.POSITIVE_INFINITY : terminal;
}

/** no-color.org: any NO_COLOR that is not empty. */
export const isColorful = (env: Environment, isTerminal: boolean): boolean =>
  isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
