import { fstatSync } from "node:fs";
import { basename } from "node:path";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { nearName, similarNames, suggestionText } from "../base/near-name.ts";
import { isKind } from "../model/decision.ts";
import { PROFILES } from "../profiles/index.ts";
import { fitLines } from "../text/style.ts";
import { type Cli, reportCrash } from "./cli.ts";
import { EXIT, processTerminal } from "./terminal.ts";

const EXIT_CODES = `
Exit codes:
  0  done
  1  a negative decision, or a refusal to decide (the API's 422)
  2  bad usage or bad input, such as a file, a node or a pod that does not exist
  3  cannot run here (Node too old, packages missing)
  4  the API, a cluster or the history failed, or a file could not be written
  5  lint, upgrade: the kubelet does not start with the configuration

Run \`nodewise help COMMAND\` for the options and examples of a command.`;

/** kubectl finds the program under this name on PATH as `kubectl nodewise`. */
const PLUGIN = "kubectl-nodewise";

type AddCommand = (program: Command, cli: Cli) => void;

/** The arguments, the environment and the exit of this process. */
const processCli = (): Cli => ({
  terminal: processTerminal(process.env),
  isPlugin: basename(process.argv[1] ?? "") === PLUGIN,
  env: process.env,
  isPiped: () => {
    const stat = fstatSync(process.stdin.fd, { throwIfNoEntry: false });
    return stat !== undefined && (stat.isFIFO() || stat.isFile() || stat.isSocket());
  },
  exitWith: (code) => {
    process.exitCode = code;
  },
});

/** Runs one command line, without the program's own name, with the given commands. Sets the exit code; never rejects. */
export async function runCommandLine(
  argv: readonly string[],
  commands: readonly AddCommand[],
  cli = processCli(),
): Promise<void> {
  try {
    await programOf(cli, commands).parseAsync(commandFirst(argv), { from: "user" });
  } catch (error) {
    cli.exitWith(error instanceof CommanderError ? usageExit(error) : reportCrash(cli.terminal, error));
  }
}

/** Options with a value that kubectl also accepts before the command's name. */
const EARLY = /^(?:-n|--namespace|--context|--kubeconfig|--cluster|--user|--as|--request-timeout)(=|$)/;

/** Rewrites `-n shop why web` as `why web -n shop`. */
function commandFirst(argv: readonly string[]): readonly string[] {
  let at = 0;
  for (let early = EARLY.exec(argv[at] ?? ""); early !== null; early = EARLY.exec(argv[at] ?? ""))
    at += early[1] === "=" ? 1 : 2;
  const ordered = at === 0 || at >= argv.length ? argv : [...argv.slice(at), ...argv.slice(0, at)];
  return ordered[0] === "decide" ? kindFirst(ordered) : ordered;
}

/** Rewrites `decide --snapshot s.json eviction` as `decide eviction --snapshot s.json`: the options belong to the kind. */
function kindFirst([decide, ...args]: readonly string[]): readonly string[] {
  const isKindAt = (i: number): boolean => isKind(args[i] ?? "") && args[i - 1]?.startsWith("--") !== true;
  const at = args[0]?.startsWith("-") === true ? args.findIndex((_, i) => isKindAt(i)) : -1;
  return [decide ?? "", ...(at === -1 ? args : [args[at] ?? "", ...args.toSpliced(at, 1)])];
}

/** `help decide eviction` is `decide eviction --help`; commander's own help accepts one word. */
const addHelp = (program: Command): Command =>
  program
    .command("help")
    .argument("[command...]", "such as decide eviction")
    .description("Show the help of a command")
    .action((words: readonly string[]) => helpOf(program, words));

function helpOf(command: Command, words: readonly string[]): never {
  let found: Command = command;
  for (const word of words) found = found.commands.find((one) => one.name() === word) ?? unknown(found, word);
  found.help();
}

/** Ends with a suggestion: a command that starts with the word, or differs in few letters; also a subcommand. */
function unknown(command: Command, word: string): never {
  const names = command.commands.map((one) => one.name());
  const below = command.commands.flatMap((one) => one.commands.map((sub) => [one.name(), sub.name()] as const));
  const [other] = similarNames(word, [...new Set(below.map(([, one]) => one))]);
  const [of] = below.find(([, one]) => one === other) ?? [];
  const proposal = suggestionText(word, names) ?? (of === undefined ? null : `did you mean ${of} ${other}?`);
  command.error(`error: unknown command '${word}'${proposal === null ? "" : `\n(${capital(proposal)})`}`, {
    code: "commander.unknownCommand",
  });
}
/** Capitalised, as commander's own suggestions are. */
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Wider lines of prose are hard to read. */
const WIDEST_HELP = 120;
/** The least width of an option's description next to a long option. */
const NARROWEST_WORDS = 24;
/** Wraps help to the screen, except for examples, which are commands. */
function fittedHelp(text: string, columns: number): string {
  const [before = "", ...parts] = text.split(/^(?=Examples:$)/m);
  const shown = parts.map((part) => {
    const end = part.indexOf("\n\n") + 1;
    return end === 0 ? part : part.slice(0, end) + fitLines(part.slice(end), columns);
  });
  return fitLines(before, columns) + shown.join("");
}

/** Requested help and version are no fault. */
const usageExit = (error: CommanderError): number => (error.exitCode === 0 ? EXIT.ok : EXIT.badInput);

/** For a word that is no choice of an option or an argument, suggests a similar one. */
function proposeChoices(command: Command): void {
  for (const one of [...command.options, ...command.registeredArguments]) {
    const { argChoices, parseArg } = one;
    if (argChoices === undefined || parseArg === undefined) continue;
    one.argParser((given: string, before: unknown) => {
      try {
        return parseArg(given, before);
      } catch (error) {
        const proposal = suggestionText(given, argChoices);
        if (!(error instanceof InvalidArgumentError) || proposal === null) throw error;
        throw new InvalidArgumentError(`${error.message}\n(${capital(proposal)})`);
      }
    });
  }
  command.commands.forEach(proposeChoices);
}

/** Other programs' names for options of nodewise. */
const OTHER_WORDS: Readonly<Record<string, string>> = { format: "output" };
/** For an unknown option, suggests a similar one if commander does not. */
function proposeOptions(command: Command): void {
  const { outputError } = command.configureOutput();
  command.configureOutput({
    outputError: (text, write) => {
      const [, word] = /^error: unknown option '--([^']+)'\n$/.exec(text) ?? [];
      const proposal = word === undefined ? null : suggestOption(word, command);
      outputError?.(proposal === null ? text : `${text}(${capital(proposal)})\n`, write);
    },
  });
  command.commands.forEach(proposeOptions);
}
function suggestOption(word: string, { options }: Command): string | null {
  const names = options.flatMap(({ long, hidden }) => (typeof long === "string" && !hidden ? [long.slice(2)] : []));
  const ours = OTHER_WORDS[nearName(word, Object.keys(OTHER_WORDS)) ?? ""] ?? "";
  const meant = names.includes(ours) ? [ours] : similarNames(word, names);
  return meant.length === 0 ? null : `did you mean ${meant.map((name) => `--${name}`).join(" or ")}?`;
}

/** The tree of commands, for parsing or for reading. */
export function programOf(cli: Cli, commands: readonly AddCommand[]): Command {
  const program = new Command(cli.isPlugin ? "kubectl nodewise" : "nodewise")
    .description("What the kubelet would decide on a node, with reasons: from files, as an API, on this machine.")
    .version(VERSION_LINE)
    .helpCommand(false)
    // `history` and its `removals` have options of the same name
    .enablePositionalOptions()
    .showHelpAfterError("(`--help` shows the choices)")
    .exitOverride()
    .configureHelp({ minWidthToWrap: NARROWEST_WORDS })
    .configureOutput({
      writeOut: (text) => cli.terminal.write(fittedHelp(text, cli.terminal.columns)),
      getOutHelpWidth: () => (Number.isFinite(cli.terminal.columns) ? Math.min(cli.terminal.columns, WIDEST_HELP) : 80),
      writeErr: (text) => {
        for (const line of text.trimEnd().split("\n")) cli.terminal.warn(line);
      },
      outputError: (text, write) => write(`nodewise: ${text.replace(/^error: /, "")}`),
    })
    .addHelpText("after", EXIT_CODES);
  for (const addCommand of commands) addCommand(program, cli);
  proposeChoices(program);
  proposeOptions(program);
  addHelp(program);
  for (const one of [program, ...program.commands]) {
    const refuse = ([word = "", ...rest]: readonly string[]): void =>
      word === "help" ? helpOf(one, rest) : unknown(one, word);
    one.helpCommand(false).on("command:*", refuse);
    // a command that also does something itself, such as `history`, would only report the number of arguments
    if (one.commands.length > 0 && one.registeredArguments.length === 0)
      one.allowExcessArguments().hook("preAction", (_, ran) => {
        if (ran === one && ran.args.length > 0) refuse(ran.args);
      });
  }
  return program;
}

export const policyVersions = PROFILES.map(({ policyVersion }) => policyVersion);

const VERSION = packageJson.version;

/** One line: the program's version, the policies that it knows, and its Node version. */
export const VERSION_LINE = `nodewise ${VERSION} (policies ${policyVersions.join(", ")}, Node ${process.versions.node})`;
