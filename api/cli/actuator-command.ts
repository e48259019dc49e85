import { type Command, Option } from "commander";
import type { ActuatorGiven } from "./actuator.ts";
import { type Cli, examples, finish, outputOption } from "./cli.ts";

const seconds = (text: string): number => Number(text);

/** Every setting of actuator/config.ts as a flag of its name; what a flag does not say, the settings file or the default does. */
export function addActuator(program: Command, cli: Cli): void {
  const command = program
    .command("actuator")
    .description(
      "Observe this machine, ask for decisions, and (with --mode enforce) carry them out below a cgroup of its own.",
    )
    .option("--settings <file>", "settings as YAML or JSON, under the names below in camelCase; flags win")
    .addOption(new Option("--mode <mode>", "observe writes nothing (the default)").choices(["observe", "enforce"]))
    .option("--once", "one pass, then end")
    .option("--dry-run", "one pass that writes nothing; prints old and new of every file")
    .option(
      "--fail-on-drift",
      "with one pass: end with 1 when a file holds a value that is neither wanted nor our own earlier one nor a rounding (-o json: `drift`, with the cause of each)",
    )
    .option("--api <url>", "the policy API; absent: every decision is made here")
    .option("--api-token-file <file>", "holds the token for it")
    .addOption(new Option("--api-timeout-seconds <n>", "how long to wait for an answer").argParser(seconds))
    .option("--manifests <dir>", "static pods: a directory or a file")
    .option("--pods-url <url>", "or a URL that answers a v1.PodList")
    .option("--pods-token-file <file>", "holds the token for it")
    .option("--pods-ca-file <file>", "holds its certificate authority")
    .option("--kubelet-configuration <file>", "absent: the kubelet's defaults")
    .option("--kubelet-dir <dir>", "where a kubelet keeps its state files; only read")
    .option("--node-name <name>", "default: the host's name")
    .option(
      "--cgroup-root <path>",
      "cgroup that everything is written below (default: /nodewise); `/` to observe a kubelet's own",
    )
    .option("--cgroup-mount <dir>", "where the hierarchies are mounted")
    .option("--state-dir <dir>", "journal and outbox (default: $XDG_STATE_HOME/nodewise/actuator)")
    .addOption(new Option("--interval-seconds <n>", "from pass to pass").argParser(seconds))
    .addOption(
      new Option("--containers <how>", "create: also make containers' cgroups").choices(["existing", "create"]),
    )
    .option("--no-remove-orphans", "leave cgroups of pods that are gone")
    .addOption(outputOption(["table", "json"]))
    .action((given: ActuatorGiven) => finish(cli, async () => (await import("./actuator.ts")).actuator(given, cli)));
  examples(
    command,
    "nodewise actuator --dry-run --manifests /etc/kubernetes/manifests",
    "nodewise actuator --mode enforce --manifests ./pods --api http://127.0.0.1:8787",
    "nodewise actuator --settings /etc/nodewise/actuator.yaml",
    "nodewise actuator --once --fail-on-drift --manifests ./pods",
    "nodewise actuator --once -o json | jq '.drift'",
  );
}
