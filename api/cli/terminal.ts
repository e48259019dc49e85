import { stringify } from "yaml";
import { err, type Result } from "../base/result.ts";
import type { Verdict } from "../model/decision.ts";
import { colorPaint, fitLines, plainPaint, printable, type Screen } from "../text/style.ts";
import { shareBar } from "../text/table.ts";

/** Ctrl-C in a terminal reaches both the launcher and its child, so one keystroke may arrive twice. */
const SAME_KEYSTROKE_MS = 500;
/** The exit code that shells use for SIGINT. */
const INTERRUPTED = 130;

const ENDING: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Settles at the first of these signals; a later one ends the process at once. */
export function stopSignal(signals = ENDING): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      first ??= now;
      if (now - first > SAME_KEYSTROKE_MS) process.exit(INTERRUPTED);
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

/** A check for a stop signal: true once one has come. */
export function stopFlag(): () => boolean {
  let isStopped = false;
  void stopSignal().then(() => {
    isStopped = true;
  });
  return () => isStopped;
}

/** The exit codes that scripts can distinguish; `nodewise --help` lists them. */
export const EXIT = {
  ok: 0,
  negative: 1,
  badInput: 2,
  cannotRun: 3,
  failed: 4,
  /** The kubelet does not start with the configuration. */
  refusesStart: 5,
  /** The exit code that shells use for SIGINT: the user interrupted work that can continue. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Why a command ends without an answer: readable lines, each with its position and what to do next. */
export interface Fault {
  readonly exit: number;
  readonly lines: readonly string[];
  /** The problem that an API returned. */
  readonly problem?: { readonly code: string; readonly detail: string };
}
/** How a command ends: with a fault, or with an exit code, which may be that of a program it ran. */
export type Outcome = Result<number, Fault>;

export const fault = (exit: number, ...lines: readonly string[]): Result<never, Fault> => err({ exit, lines });

/** Verdicts that need no action. */
const GOOD: ReadonlySet<Verdict> = new Set<Verdict>(["decided", "calm", "keeps"]);
export const isGood = (verdict: Verdict): boolean => GOOD.has(verdict);

/** Where a command writes, and its width and colours. */
export interface Terminal extends Screen {
  /** Writes an answer to standard output. */
  write(text: string): void;
  /** Everything else: one printable line on standard error. `isCommand`: it is never wrapped, so that it can be copied. */
  warn(line: string, isCommand?: boolean): void;
}

/** Prints an answer as text: no line is wider than the screen. */
export const printText = (terminal: Terminal, text: string): void => terminal.write(fitLines(text, terminal.columns));

const MAX_LINES = 20;

/** Each line on standard error; of very many the first ones, and the number of the rest. */
export function warnAll(terminal: Terminal, lines: readonly string[]): void {
  for (const line of lines.slice(0, MAX_LINES)) terminal.warn(`nodewise: ${line}`);
  if (lines.length > MAX_LINES) terminal.warn(`nodewise: and ${lines.length - MAX_LINES} more like these`);
}

/** The part of standard error that a line is redrawn on. */
export interface LineScreen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}
const BAR_WIDTH = 24;
const NARROW = 60;

/** `████░░░░  42 %  41,234 decisions  at 2026-01-31`: a bar and as many texts as fit. */
export function barLine(share: number, texts: readonly string[], columns: number): string {
  const drawn = shareBar(share, columns < NARROW ? 0 : BAR_WIDTH);
  const parts = [drawn, `${Math.floor(share * 100)} %`.padStart(5), ...texts].filter((part) => part !== "");
  // the last column stays free: a terminal would wrap after it
  while (parts.length > 1 && parts.join("  ").length >= columns) parts.pop();
  return parts.join("  ");
}

/** Moves to the first column, and clears the line. */
const CLEAR = "\r\u001b[K";

/** A line that each `show` redraws, on a terminal; nothing elsewhere. `clear` removes it before other output. */
export function redrawnLine(screen: LineScreen): { show(line: (columns: number) => string): void; clear(): void } {
  if (screen.isTTY !== true) return { show: () => {}, clear: () => {} };
  let isDrawn = false;
  return {
    show: (line) => {
      screen.write(CLEAR + line(screen.columns || 80));
      isDrawn = true;
    },
    clear: () => {
      if (isDrawn) screen.write(CLEAR);
      isDrawn = false;
    },
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The terminal of this process. If the reader goes away (`| head`, a closed window), the process ends quietly; if an answer cannot
 * be written (a full disk), it ends with a line and as a failure.
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
  return terminalOn(stdout, stderr, env);
}

type Sink = Pick<NodeJS.WriteStream, "write"> & Partial<Pick<NodeJS.WriteStream, "isTTY" | "columns">>;

export const terminalOn = (
  stdout: Sink,
  stderr: Sink,
  env: Environment,
  // a program that reads standard error through a pipe gets each line unwrapped
  stderrColumns = stderr.isTTY === true ? columnsOf(env, stderr.columns) : Number.POSITIVE_INFINITY,
): Terminal => ({
  write: (text) => void stdout.write(text),
  warn: (line, isCommand = false) =>
    void stderr.write(`${isCommand ? printable(line) : fitLines(printable(line), stderrColumns)}\n`),
  columns: columnsOf(env, stdout.isTTY ? stdout.columns : undefined),
  paint: isColorful(env, stdout.isTTY === true) ? colorPaint : plainPaint,
});

/** An exported COLUMNS takes precedence, as for other programs. */
export function columnsOf(env: Environment, terminal: number | undefined): number {
  const asked = Number(env["COLUMNS"]);
  if (Number.isInteger(asked) && asked > 0) return asked;
  return terminal === undefined || terminal === 0 ? Number.POSITIVE_INFINITY : terminal;
}

/** no-color.org: any non-empty NO_COLOR. */
export const isColorful = (env: Environment, isTerminal: boolean): boolean =>
  isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";

export type Form = "table" | "json" | "yaml";

/** Prints a whole value in a form that nodewise (and Kubernetes' tools) read back as the same value. */
export function printData(terminal: Terminal, value: unknown, form: "json" | "yaml"): void {
  const json = JSON.stringify(value, null, 2);
  terminal.write(form === "json" ? `${json}\n` : yamlOf(JSON.parse(json)));
}

/** Kubernetes reads YAML 1.1, where `yes`, `0644` and `12:30` need quotes. */
const yamlOf = (value: unknown): string =>
  stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
