import { fstatSync } from "node:fs";
import { basename } from "node:path";
import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { PROFILES } from "../profiles/index.ts";
import { type Cli, reportCrash } from "./cli.ts";
import { EXIT, processTerminal } from "./terminal.ts";

const EXIT_CODES = `
Exit codes:
  0  done
  1  a negative decision, or a refusal to decide (the API's 422)
  2  bad usage or bad input, such as a file, a node or a pod that is not there
  3  cannot run here (Node too old, packages missing)
  4  the API, a cluster or the history failed, or a file could not be written
  5  lint, upgrade: the kubelet does not start with the configuration

Run \`nodewise COMMAND --help\` for the options and examples of a command.`;

/** Under this name on PATH kubectl finds it as the command `kubectl nodewise`. */
const PLUGIN = "kubectl-nodewise";

type AddCommand = (program: Command, cli: Cli) => void;

/** What this process is started with, and where it ends. */
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

/** Runs one command line, without the program's own name, by the commands given. Tells the exit code; never rejects. */
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

/** Options that kubectl takes before the command's name as well, each with a value. */
const EARLY = /^(?:-n|--namespace|--context|--kubeconfig|--cluster|--user|--as|--request-timeout)(=|$)/;

/** `-n shop why web` is `why web -n shop`. */
function commandFirst(argv: readonly string[]): readonly string[] {
  let at = 0;
  for (let early = EARLY.exec(argv[at] ?? ""); early !== null; early = EARLY.exec(argv[at] ?? ""))
    at += early[1] === "=" ? 1 : 2;
  return at === 0 || at >= argv.length ? argv : [...argv.slice(at), ...argv.slice(0, at)];
}

/** Help and version that were asked for are no fault. */
const usageExit = (error: CommanderError): number => (error.exitCode === 0 ? EXIT.ok : EXIT.badInput);

function programOf(cli: Cli, commands: readonly AddCommand[]): Command {
  const program = new Command(cli.isPlugin ? "kubectl nodewise" : "nodewise")
    .description(
      "What the kubelet would decide on a node, as explained answers: from files, as an API, on this machine.",
    )
    .version(
      `nodewise ${packageJson.version} (policies ${PROFILES.map(({ policyVersion }) => policyVersion).join(", ")}, Node ${process.versions.node})`,
    )
    .helpCommand(false)
    // `history` and its `removals` have options of the same names
    .enablePositionalOptions()
    .showHelpAfterError("(`--help` shows what there is)")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.terminal.write(text),
      writeErr: (text) => text.trimEnd().split("\n").forEach(cli.terminal.warn),
      outputError: (text, write) => write(`nodewise: ${text.replace(/^error: /, "")}`),
    })
    .addHelpText("after", EXIT_CODES);
  for (const addCommand of commands) addCommand(program, cli);
  return program;
}
