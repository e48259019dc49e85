import { type Command, Option } from "commander";
import {
  type Cli,
  examples,
  finish,
  limitOption,
  outputOption,
  sourceOptions,
  watchOption,
  wholeNumber,
} from "../cli.ts";
import type { ProbeHistoryFlags, ProbeOutcomesFlags, ProbePlanFlags, ProbesFlags } from "./probes.ts";

const EXIT_CODES = `
Exit codes:
  0  shown
  2  bad usage or bad input
  4  the daemon does not answer, or its status or history cannot be read`;

/** `nodewise probes`: the state of each container's probes, their history, and their load on a node. */
export function addProbes(program: Command, cli: Cli): void {
  const command = program
    .command("probes")
    .summary("Show the startup, liveness and readiness of the node's containers")
    .description(
      "Show the probes of a node as its daemon sees them: the current result, since when, and the last message.",
    );
  sourceOptions(command)
    .option("-n, --namespace <name>", "only pods of this namespace")
    .option("--failing", "only probes without success")
    .addOption(watchOption())
    .addOption(outputOption())
    .action((given: ProbesFlags) => finish(cli, async () => (await import("./probes.ts")).probes(given, cli)));
  examples(
    command,
    "nodewise probes",
    "nodewise probes --failing --watch 5",
    "nodewise probes -o json | jq '.probes[] | select(.failures > 0)'",
    "nodewise probes history --pod shop/web-0",
    "nodewise probes outcomes --pod shop/web-0 > outcomes.json",
    "nodewise probes plan /etc/nodewise/manifests",
  );
  command.addHelpText("after", EXIT_CODES);
  addHistory(command, cli);
  addOutcomes(command, cli);
  addPlan(command, cli);
}

function addHistory(probes: Command, cli: Cli): void {
  const command = probes
    .command("history")
    .summary("Show what the node's probes did")
    .description("List what happened to a node's probes, newest first: changes of results, failures, held restarts.")
    .option("--state-dir <dir>", "the daemon's (default: the actuator's, $XDG_STATE_HOME/nodewise/actuator)")
    .option("--pod <pod>", "only this pod: NAMESPACE/NAME")
    .addOption(limitOption())
    .addOption(outputOption())
    .action((given: ProbeHistoryFlags) =>
      finish(cli, async () => (await import("./history.ts")).probeHistory(given, cli)),
    );
  examples(command, "nodewise probes history", "nodewise probes history --pod shop/web-0 --limit 20 -o json");
}

function addOutcomes(probes: Command, cli: Cli): void {
  const command = probes
    .command("outcomes")
    .summary("Print the results of a container's probe attempts, for a dry run")
    .description(
      "Print the results of a container's probe attempts from the history, in the form that `nodewise decide probes --outcomes @FILE` reads. The length of the last run is not recorded yet: it is one outcome, which repeats.",
    )
    .option("--state-dir <dir>", "the daemon's (default: the actuator's, $XDG_STATE_HOME/nodewise/actuator)")
    .requiredOption("--pod <pod>", "NAMESPACE/NAME")
    .option("--container <name>", "which container, if several of the pod are probed")
    .action((given: ProbeOutcomesFlags) =>
      finish(cli, async () => (await import("./outcomes.ts")).probeOutcomes(given, cli)),
    );
  examples(
    command,
    "nodewise probes outcomes --pod shop/web-0 > outcomes.json",
    "nodewise probes outcomes --pod shop/web-0 --container app | nodewise decide probes --pod web.yaml --outcomes @-",
  );
}

function addPlan(probes: Command, cli: Cli): void {
  const command = probes
    .command("plan")
    .summary("Show the load of a node's probes: rate, bursts, concurrent execs")
    .description(
      "Show how many attempts a second the probes of manifests make, or those of the running daemon, how many begin together at worst, and how many execs run at the same time.",
    )
    .argument("[path]", "a manifest, or a directory of them; absent: what the daemon probes");
  sourceOptions(command)
    .addOption(
      new Option("--exec-ms <n>", "duration of an exec (default: as measured, else 100)").argParser(
        wholeNumber(1, 3_600_000),
      ),
    )
    .addOption(outputOption())
    .action((path: string | undefined, given: ProbePlanFlags) =>
      finish(cli, async () => (await import("./plan.ts")).probesPlan(path, given, cli)),
    );
  examples(command, "nodewise probes plan", "nodewise probes plan /etc/nodewise/manifests --exec-ms 250");
}
