import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_STATUS_LISTEN } from "../../actuator/core/addresses.ts";
import { LOG_LEVELS, type LogLevel } from "../../actuator/status/log.ts";
import { reasonFault } from "../model/end-reasons.ts";
import { isVersion, VERSION_FORM } from "../model/fields.ts";
import { EXIT, type Outcome, type Terminal, warnAll } from "./terminal.ts";

export const DEFAULT_STATUS_URL = `http://${DEFAULT_STATUS_LISTEN}`;

/** Adds the options for where to read a daemon's status. */
export const sourceOptions = (command: Command): Command =>
  command
    .option("--status-url <url>", "the daemon's own address, its statusListen", DEFAULT_STATUS_URL)
    .addOption(
      new Option("--state-dir <dir>", "or the status that the daemon last wrote into its state directory").conflicts(
        "statusUrl",
      ),
    );

/** The most items of a list to show. */
export const limitOption = (): Option =>
  new Option("--limit <n>", "maximum number").argParser(wholeNumber(1, 100_000)).default(50);

export const watchOption = (): Option =>
  new Option("-w, --watch [seconds]", "repeat until Ctrl-C").argParser(watchSeconds).preset("2");

function watchSeconds(text: string): number {
  const number = Number(text);
  if (number >= 0.1 && number <= 3600) return number;
  throw new InvalidArgumentError("Expected seconds from 0.1 to 3600.");
}

/** The kubelet version to answer as. */
export const kubeletOption = (what: string): Option =>
  new Option("--kubelet <version>", what).argParser(kubeletVersion);

export function kubeletVersion(text: string): string {
  if (isVersion(text)) return text;
  throw new InvalidArgumentError(`It ${VERSION_FORM}.`);
}

/** Single fields of a KubeletConfiguration; repeatable. */
export const setOption = (): Option =>
  new Option(
    "--set <path=value>",
    "what if: one field of the configuration, such as kubeReserved.cpu=500m; repeat for more fields; applied after --patch; null removes a field",
  ).argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);

/** A parser for commander: a whole number from `min` to `max`, in digits. */
export const wholeNumber =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Expected a whole number ${range}.`);
  };

/** What every command gets from the process. */
export interface Cli {
  readonly terminal: Terminal;
  /** The program runs as kubectl's plugin, `kubectl nodewise …`. */
  readonly isPlugin: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether input is piped in; not from a terminal or /dev/null. */
  isPiped(): boolean;
  /** Sets the exit code of the process. */
  exitWith(code: number): void;
}

/** Runs a command's work, prints its fault on standard error, and sets the exit code. */
export async function finish({ terminal, exitWith }: Cli, work: () => Promise<Outcome>): Promise<void> {
  // the code if the work never settles: the process ends anyway, and must not look successful
  exitWith(EXIT.failed);
  try {
    const outcome = await work();
    exitWith(outcome.ok ? outcome.value : outcome.error.exit);
    if (!outcome.ok) warnAll(terminal, outcome.error.lines);
  } catch (error) {
    exitWith(reportCrash(terminal, error));
  }
}

/** Reports a crash. User input never leads here, but missing packages do. */
export function reportCrash(terminal: Terminal, thrown: unknown): number {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") {
    const [what] = error.message.split("\n");
    terminal.warn(`nodewise: a package is missing or not built for this machine (${what}): run \`npm install\` again`);
    return EXIT.cannotRun;
  }
  terminal.warn(`nodewise: internal error: ${error.message}; please report it with these lines`);
  for (const line of (error.stack ?? "").split("\n").slice(1)) terminal.warn(line);
  return EXIT.failed;
}

/** `--reason`: any reason that kubelets may give. `mayBeOther`: also texts that are not known here. */
export const reasonOption = (such: string, mayBeOther = false): Option =>
  new Option("--reason <reason>", `only with this reason of the kubelet, such as ${such}`).argParser(
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
  new Option("--log-format <format>", "json: a line for each event, on standard error")
    .choices(["text", "json"])
    .default("text");
export const logLevelOption = (): Option =>
  new Option("--log-level <level>", "the lowest level that is logged").choices(LOG_LEVELS).default("info");
