import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { POLICY_VERSION } from "../model/decision.ts";
import { addActuator } from "./actuator-command.ts";
import { addApi } from "./api-command.ts";
import { type Cli, reportCrash } from "./cli.ts";
import { addDecide } from "./decide-command.ts";
import { addDevices } from "./devices-command.ts";
import { EXIT } from "./exit.ts";
import { addGc } from "./gc-command.ts";
import { addHistory } from "./history-command.ts";
import { addKinds } from "./kinds-command.ts";
import { addLint } from "./lint-command.ts";
import { addMachines } from "./machines-command.ts";
import { addPods, addTop } from "./pods-command.ts";
import { addProbes } from "./probes-command.ts";
import { addReplay } from "./replay-command.ts";
import { addSnapshot } from "./snapshot-command.ts";
import { processTerminal } from "./terminal.ts";
import { addToken } from "./token-command.ts";
import { addUp } from "./up-command.ts";

const EXIT_CODES = `
Exit codes:
  0  done
  1  a negative decision, or a refusal to decide (the API's 422)
  2  bad usage or bad input
  3  cannot run here (Node too old, packages missing)
  4  a file, the API or the history failed
  5  lint: the kubelet does not start with the configuration

Run \`nodewise COMMAND --help\` for the options and examples of a command.`;

/** Runs one command line, without the program's own name. Sets the exit code; never rejects. */
export async function main(argv: readonly string[]): Promise<void> {
  const cli: Cli = { terminal: processTerminal(process.env), env: process.env };
  try {
    await programOf(cli).parseAsync(argv, { from: "user" });
  } catch (error) {
    process.exitCode = error instanceof CommanderError ? usageExit(error) : reportCrash(cli.terminal, error);
  }
}

/** Help and version that were asked for are no fault. */
const usageExit = (error: CommanderError): number => (error.exitCode === 0 ? EXIT.ok : EXIT.badInput);

function programOf(cli: Cli): Command {
  const program = new Command("nodewise")
    .description(
      "What the kubelet would decide on a node, as explained answers: from files, as an API, on this machine.",
    )
    .version(`nodewise ${packageJson.version} (policy ${POLICY_VERSION}, Node ${process.versions.node})`)
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
  const add = [
    ...[addUp, addDecide, addSnapshot, addMachines, addKinds, addApi],
    ...[addActuator, addPods, addTop, addProbes, addDevices, addGc, addToken, addHistory, addReplay, addLint],
  ];
  for (const addCommand of add) addCommand(program, cli);
  return program;
}
