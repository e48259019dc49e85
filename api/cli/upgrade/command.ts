import { type Command, Option } from "commander";
import { KINDS } from "../../model/decision.ts";
import { withHistoryOrApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, kubeletVersion, outputOption } from "../cli.ts";
import { withClusterOptions } from "../cluster-options.ts";
import { argsOption, configDirOption } from "../lint/command.ts";
import { LINT_PARTS } from "../lint/lint-input.ts";
import type { UpgradeFlags } from "./upgrade.ts";

const EXIT_CODES = `
Exit codes:
  0    nothing would change
  1    something would: findings, gates, defaults, static pods or decisions
  2    bad usage or bad input, such as a file that is not there
  3    nothing would change, but only a part could be checked, or nothing: nodes that could not be checked are named,
       or the snapshot of decisions is no longer stored
  4    the API, the cluster, one of its nodes or the history failed, or some records cannot be read
  5    the kubelet of --to would not start with the configuration
  130  interrupted: what was counted is printed, and the --page-token with which the same command goes on`;

export function addUpgrade(program: Command, cli: Cli): void {
  const command = program
    .command("upgrade")
    .summary("Show what another version of the kubelet changes on a node")
    .description(
      "What would not start with another version of the kubelet, with its own messages; gates and defaults that change; static pods that restart; which decisions change, on a snapshot and among the recorded ones; flags, files, events and metrics; and what to do before, in order. A version older than --from is a downgrade. Records nothing.",
    )
    .requiredOption("--to <version>", "the new kubelet version", kubeletVersion)
    .option(
      "--from <version>",
      "the current kubelet version where no node reports it, or the nearest known one; a node's own version overrides it",
      kubeletVersion,
    )
    .option("--config <file>", "KubeletConfiguration, or the kubelet's /configz; absent: that of the snapshot")
    .addOption(configDirOption())
    .addOption(argsOption())
    .option("--snapshot <file>", "a whole NodeSnapshot of the node; the options below replace parts of it");
  // `--node` names nodes of the history here, as in `nodewise replay`
  for (const { option, what } of LINT_PARTS) if (option !== "node") command.option(`--${option} <file>`, what);
  withHistoryOrApiOptions(
    withClusterOptions(command)
      .option("--node <name...>", "nodes of the history, or of the cluster (default: all, where no file is given)")
      .option(
        "--since <time>",
        "compare the decisions recorded since then: RFC 3339, or a duration back from now such as 24h or 7d",
      )
      .option(
        "--until <time>",
        "compare the decisions recorded until then: RFC 3339, or a duration back from now such as 24h or 7d (default: now)",
      )
      .addOption(new Option("--kind <kind>", "compare recorded decisions of this kind only").choices(KINDS))
      .option("--page-token <token>", "continue an interrupted run of the same command"),
  )
    .addOption(outputOption(["table", "json", "yaml", "markdown"]))
    .option("--json", "the same as -o json")
    .action((given: UpgradeFlags) => finish(cli, async () => (await import("./upgrade.ts")).upgrade(given, cli)));
  examples(
    command,
    "nodewise upgrade --from 1.36 --to 1.37 --config kubelet.yaml",
    "nodewise upgrade --from 1.36 --to 1.37 --config /var/lib/kubelet/config.yaml --config-dir /etc/kubernetes/kubelet.conf.d",
    "nodewise upgrade --to 1.37 --snapshot snapshot.json",
    "nodewise upgrade --to 1.37 --since 7d --node n1 n2 --data-dir /var/lib/nodewise",
    "nodewise upgrade --to 1.37 --since 7d --api https://nodewise.example:8787 --token-file token",
    "nodewise upgrade --to 1.37 --context prod",
    "nodewise upgrade --to 1.37 --snapshot snapshot.json -o markdown > change-request.md",
  );
  command.addHelpText("after", EXIT_CODES);
}
