import { type Command, Option } from "commander";
import { withDeadContainerLimits, withLogDirectories, withPluginDirectories } from "../actuator-options.ts";
import { type Cli, examples, finish, logFormatOption, logLevelOption, outputOption } from "../cli.ts";
import type { ActuatorFlags } from "./settings.ts";

const seconds = (text: string): number => Number(text);

/** Adds the options for running pods. */
function podOptions(command: Command): Command {
  command
    .addOption(
      new Option(
        "--garbage-collection <what>",
        "dead containers and images: observe reports what would be removed, enforce removes it (default: off)",
      ).choices(["off", "observe", "enforce"]),
    )
    .addOption(
      new Option("--pods <what>", "enforce: run pods: admit, start, restart and stop them (default: off)").choices([
        "off",
        "enforce",
      ]),
    )
    .addOption(
      new Option("--manifest-pods <how>", "static: critical, as a kubelet treats them (the default)").choices([
        "static",
        "ordinary",
      ]),
    )
    .option("--pods-directory <dir>", "volumes of pods (default: /var/lib/nodewise/pods)")
    .addOption(new Option("--sync-seconds <n>", "between two checks of the pods (default: 1)").argParser(seconds))
    .addOption(new Option("--eviction-period-seconds <n>", "between two checks for pressure").argParser(seconds))
    .addOption(new Option("--retry-seconds <n>", "until a refused pod is tried again anyway").argParser(seconds))
    .addOption(
      new Option(
        "--device-plugins <what>",
        "serve: let device plugins register as a kubelet does, with --pods enforce (default: off)",
      ).choices(["off", "serve"]),
    )
    .addOption(
      new Option(
        "--dra-drivers <what>",
        "serve: prepare the ResourceClaims of pods, with --pods enforce (default: off)",
      ).choices(["off", "serve"]),
    );
  return withPluginDirectories(command)
    .option(
      "--pod-resources-directory <dir>",
      "directory of the podresources API's socket (default: /var/lib/kubelet/pod-resources)",
    )
    .addOption(new Option("--device-wait-seconds <n>", "a pod's wait for its plugin (default: 300)").argParser(seconds))
    .option("--strict-probes", "probes behave as documented where the kubelet differs")
    .addOption(
      new Option(
        "--probe-spread <how>",
        "even: spread over each period; kubelet: at random after the start, later all of a pod at once (default: even)",
      ).choices(["even", "kubelet"]),
    )
    .addOption(new Option("--max-exec-probes <n>", "exec probes at the same time (default: 64)").argParser(Number))
    .addOption(
      new Option("--probe-guard <what>", "hold: no restarts while many unrelated pods fail together").choices([
        "off",
        "hold",
      ]),
    )
    .option("--drain", "when the daemon stops, stop its pods, those of the lowest priority first");
}

/** Adds the options for the status, the container runtime and the collection of its garbage. */
function runtimeOptions(command: Command): Command {
  command
    .option("--status-listen <address>", "status and metrics: HOST:PORT, or off (with --pods: 127.0.0.1:10260)")
    .option("--runtime-endpoint <socket>", "CRI v1 (default: unix:///run/containerd/containerd.sock)")
    .addOption(new Option("--runtime-timeout-seconds <n>", "timeout of one call to the runtime").argParser(seconds));
  withLogDirectories(command)
    .addOption(
      new Option("--container-gc-period-seconds <n>", "between two collections of containers").argParser(seconds),
    )
    .addOption(new Option("--image-gc-period-seconds <n>", "between two collections of images").argParser(seconds));
  return withDeadContainerLimits(command);
}

/** Every setting of actuator/core/config.ts as a flag of the same name; without the flag, the settings file or the default applies. */
export function addActuator(program: Command, cli: Cli): void {
  const command = program
    .command("actuator")
    .summary("Observe this machine, ask for decisions, and apply them")
    .description(
      "Observe this machine, ask for decisions, and (with --mode enforce) carry them out below a cgroup of its own.",
    )
    .option(
      "--settings <file>",
      "settings as YAML or JSON, under the names below in camelCase; flags win; SIGHUP rereads it",
    )
    .addOption(new Option("--mode <mode>", "observe writes nothing (the default)").choices(["observe", "enforce"]))
    .option("--once", "one pass over cgroups and garbage, then exit; only a daemon runs pods")
    .option("--dry-run", "one pass that writes and removes nothing; prints old and new of every file")
    .option(
      "--fail-on-drift",
      "with one pass: exit with 1 if a file holds a value that was neither decided nor written by Nodewise before, and is not a rounded form of such a value (-o json: `drift`, with the cause of each)",
    )
    .option("--api <url>", "the policy API; absent: every decision is made locally")
    .option("--api-token-file <file>", "file with the token for --api")
    .addOption(new Option("--api-timeout-seconds <n>", "how long to wait for an answer").argParser(seconds))
    .option("--manifests <dir>", "static pods: a directory or a file")
    .option("--pods-url <url>", "instead of --manifests: a URL that returns a v1.PodList")
    .option("--pods-token-file <file>", "file with the token for --pods-url")
    .option("--pods-ca-file <file>", "file with the certificate authority for --pods-url")
    .option(
      "--standalone-kubelet",
      "the kubelet at --pods-url runs without an API server: its static pods are the only pods of the node",
    )
    .option("--kubelet-configuration <file>", "absent: the kubelet's defaults")
    .option("--kubelet-version <version>", "the kubelet version to decide as, such as 1.36 (default: the newest)")
    .option("--kubelet-dir <dir>", "where a kubelet keeps its state files; only read")
    .option("--node-name <name>", "default: the host's name")
    .option(
      "--cgroup-root <path>",
      "cgroup that everything is written below (default: /nodewise); `/` to observe a kubelet's own",
    )
    .option("--cgroup-mount <dir>", "where the hierarchies are mounted")
    .option("--state-dir <dir>", "journal and outbox (default: $XDG_STATE_HOME/nodewise/actuator)")
    .addOption(new Option("--interval-seconds <n>", "between two passes").argParser(seconds))
    .addOption(
      new Option("--containers <how>", "create: also create containers' cgroups").choices(["existing", "create"]),
    )
    .option("--no-remove-orphans", "keep cgroups of pods that are gone");
  runtimeOptions(podOptions(command))
    .addOption(outputOption(["table", "json"]))
    .addOption(logFormatOption())
    .addOption(logLevelOption())
    .action((given: ActuatorFlags) => finish(cli, async () => (await import("./actuator.ts")).actuator(given, cli)));
  examples(
    command,
    "nodewise actuator --dry-run --manifests /etc/kubernetes/manifests",
    "nodewise actuator --mode enforce --manifests ./pods --api http://127.0.0.1:8787",
    "nodewise actuator --settings /etc/nodewise/actuator.yaml",
    "nodewise actuator --once --fail-on-drift --manifests ./pods",
    "nodewise actuator --once -o json | jq '.drift'",
    "nodewise actuator --garbage-collection observe --pods-url http://127.0.0.1:10255/pods",
  );
}
