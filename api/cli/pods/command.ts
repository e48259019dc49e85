import { type Command, Option } from "commander";
import { type Cli, examples, finish, outputOption, sourceOptions, watchOption } from "../cli.ts";
import { type PodsFlags, SORTS, type TopFlags } from "./options.ts";

const EXIT_CODES = `
Exit codes:
  0  shown
  2  bad usage, or there is no such pod
  4  the daemon does not answer, or its status cannot be read`;

/** `nodewise pods [POD]`: the pods that a node's daemon runs, as it sees them. */
export function addPods(program: Command, cli: Cli): void {
  const command = program
    .command("pods")
    .summary("Show what the node's daemon runs: pods, refused manifests, events")
    .description(
      "Show the pods of a node as its daemon sees them; with a name, all details of that pod: containers, why it waits, cgroup values wanted and actual, events.",
    )
    .argument("[pod]", "only this pod, in detail: NAMESPACE/NAME, or NAME");
  withSource(command)
    .option("--events", "the last events below")
    .addOption(outputOption())
    .action((pod: string | undefined, given: PodsFlags) =>
      finish(cli, async () => (await import("./pods.ts")).pods(pod, given, cli)),
    );
  examples(
    command,
    "nodewise pods",
    "nodewise pods --watch",
    "nodewise pods shop/web-0",
    "nodewise pods --state-dir /var/lib/nodewise --events",
    "nodewise pods -o json | jq '.pods[] | select(.phase != \"Running\")'",
  );
  command.addHelpText("after", EXIT_CODES);
}

/** `nodewise top`: the pods' usage and requests. */
export function addTop(program: Command, cli: Cli): void {
  const command = program
    .command("top")
    .summary("Show what pods use: CPU, memory, throttling, pressure")
    .description("Show what each pod of a node uses of its requests and limits, as the node's daemon measured it.");
  withSource(command)
    .addOption(new Option("--sort <by>", "by use, highest first, or by name").choices(SORTS).default("cpu"))
    .addOption(outputOption())
    .action((given: TopFlags) => finish(cli, async () => (await import("./top.ts")).top(given, cli)));
  examples(command, "nodewise top", "nodewise top --watch 5 --sort memory", "nodewise top -n shop -o json");
  command.addHelpText("after", EXIT_CODES);
}

const withSource = (command: Command): Command =>
  sourceOptions(command).option("-n, --namespace <name>", "only pods of this namespace").addOption(watchOption());
