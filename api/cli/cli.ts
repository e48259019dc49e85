import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_STATUS_LISTEN } from "../../actuator/core/addresses.ts";
import { LOG_LEVELS, type LogLevel } from "../../actuator/status/log.ts";
import { reasonFault } from "../model/end-reasons.ts";
import { isVersion, VERSION_FORM } from "../model/fields.ts";
import { EXIT, type Outcome, type Terminal, warnAll } from "./terminal.ts";

export const DEFAULT_STATUS_URL = `http://${DEFAULT_STATUS_LISTEN}`;

/** Where the status of a daemon is read from. */
export const sourceOptions = (command: Command): Command =>
  command
    .option("--status-url <url>", "the daemon's own address, its statusListen", DEFAULT_STATUS_URL)
    .addOption(
      new Option("--state-dir <dir>", "or what the daemon last wrote into its state directory").conflicts("statusUrl"),
    );

/** How many of a list are shown. */
export const limitOption = (): Option =>
  new Option("--limit <n>", "at most so many").argParser(wholeNumber(1, 100_000)).default(50);

export const watchOption = (): Option =>
  new Option("-w, --watch [seconds]", "again and again until Ctrl-C").argParser(watchSeconds).preset("2");

function watchSeconds(text: string): number {
  const number = Number(text);
  if (number >= 0.1 && number <= 3600) return number;
  throw new InvalidArgumentError("Expected seconds from 0.1 to 3600.");
}

/** Whose answers are wanted. */
export const kubeletOption = (what: string): Option =>
  new Option("--kubelet <version>", what).argParser(kubeletVersion);

export function kubeletVersion(text: string): string {
  if (isVersion(text)) return text;
  throw new InvalidArgumentError(`It ${VERSION_FORM}.`);
}

/** Single fields of a KubeletConfiguration, given again and again. */
export const setOption = (): Option =>
  new Option(
    "--set <path=value>",
    "what if: one field of the configuration, such as kubeReserved.cpu=500m; again for further ones, after --patch; null takes one away",
  ).argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);

/** For commander: a whole number from `min` to `max`, in digits. */
export const wholeNumber =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Expected a whole number ${range}.`);
  };

/** The things that every command gets from the process. */
export interface Cli {
  readonly terminal: Terminal;
  /** `kubectl nodewise …` runs it, as a plugin. */
  readonly isPlugin: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether something is piped into it; a terminal and /dev/null bring nothing. */
  isPiped(): boolean;
  /** Sets the code with which the process is to end. */
  exitWith(code: number): void;
}

/** Runs a command's work and turns its end into lines on standard error and the exit code. */
export async function finish({ terminal, exitWith }: Cli, work: () => Promise<Outcome>): Promise<void> {
  // Work that never settles ends the process all the same, and must not look done.
  exitWith(EXIT.failed);
  try {
    const outcome = await work();
    exitWith(outcome.ok ? outcome.value : outcome.error.exit);
    if (!outcome.ok) warnAll(terminal, outcome.error.lines);
  } catch (error) {
    exitWith(reportCrash(terminal, error));
  }
}

/** Nothing a person types ends here, except that packages are missing. */
export function reportCrash(terminal: Terminal, thrown: unknown): number {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") {
    const [what] = error.message.split("\n");
    terminal.warn(`nodewise: a package is missing or not made for this machine (${what}): run \`npm install\` again`);
    return EXIT.cannotRun;
  }
  terminal.warn(`nodewise: internal error: ${error.message}; please report it with these lines`);
  for (const line of (error.stack ?? "").split("\n").slice(1)) terminal.warn(line);
  return EXIT.failed;
}

/** `--reason`: any that kubelets may give. `mayBeOther`: or report, in words that are not known here. */
export const reasonOption = (such: string, mayBeOther = false): Option =>
  new Option("--reason <reason>", `with the kubelet's word for why only, such as ${such}`).argParser(
    (given: string) => {
      const wrong = reasonFault(given, mayBeOther);
      if (wrong !== null)
        throw new InvalidArgumentError(wrong.near === undefined ? wrong.message : `\n(Did you mean ${wrong.near}?)`);
      return given;
    },
  );

/** `-o table|json|yaml`. */
export const outputOption = (choices: readonly string[] = ["table", "json", "yaml"]): Option =>
  new Option("-o, --output <form>", "how to print the answer").choices(choices).default(choices[0]);

export const examples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`);

export interface LogFlags {
  readonly logFormat: "text" | "json";
  readonly logLevel: LogLevel;
}

export const logFormatOption = (): Option =>
  new Option("--log-format <format>", "json: a line each of what happens, on standard error")
    .choices(["text", "json"])
    .default("text");
export const logLevelOption = (): Option =>
  new Option("--log-level <level>", "the least that is told").choices(LOG_LEVELS).default("info");
