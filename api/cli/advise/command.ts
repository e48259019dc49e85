import type { Command } from "commander";
import { withApiAddressOptions, withHistoryOptions } from "../api-options.ts";
import { type Cli, examples, finish, kubeletOption, outputOption } from "../cli.ts";
import { withClusterOptions } from "../cluster-options.ts";
import type { AdviseFlags } from "./advise.ts";

const EXIT_CODES = `
Exit codes:
  0  advice is given
  2  bad usage or bad input, such as a file that is not there
  3  nothing was measured
  4  the API or the history failed
  5  the kubelet would not start with what is advised: the findings say why`;

export function addAdvise(program: Command, cli: Cli): void {
  const advise = program
    .command("advise")
    .summary("Advise on a node's configuration, from measurements")
    .description("Advise on a node's configuration, from what was measured.");
  const command = withHistoryOptions(
    advise
      .command("reserves")
      .summary("Propose kubeReserved and systemReserved from measured use")
      .description(
        "Advise on kubeReserved and systemReserved, from what the system containers of /stats/summary were measured to use: of a node of the history, from files, or once of a live cluster. Reports what the change would free or cost, and what is not known.",
      )
      .argument(
        "[files...]",
        "answers of the kubelet's /stats/summary, from several times; NodeSnapshots; a v1.Node, and a KubeletConfiguration or /configz, for what the node has now. Each is recognised by its content",
      )
      .option("--node <name>", "a node of the history, or of a live cluster")
      .option(
        "--since <time>",
        "measured since this time: RFC 3339, or a duration back from now such as 24h (default: 7d)",
      )
      .option(
        "--until <time>",
        "measured until this time: RFC 3339, or a duration back from now such as 24h (default: now)",
      )
      .option("--percentile <number>", "the percentile of the measurements to use (default: 99)")
      .option("--margin <percent>", "percent to add to it (default: 10)")
      .option(
        "--limit <n>",
        "measurements to read from the history, spread evenly over the time (default: 2016, and with --api 300)",
      ),
  );
  withApiAddressOptions(withClusterOptions(command))
    .addOption(
      kubeletOption("files: the kubelet version to decide as where the node reports none (default: the newest)"),
    )
    .addOption(outputOption(["table", "json", "yaml", "patch"]))
    .action((files: readonly string[], given: AdviseFlags) =>
      finish(cli, async () => (await import("./advise.ts")).adviseOnReserves(files, given, cli)),
    );
  examples(
    command,
    "nodewise advise reserves --node n1 --since 7d",
    "nodewise advise reserves --node n1 --percentile 99.9 --margin 25 -o patch > patch.yaml",
    "nodewise decide admission --snapshot snapshot.json --pod pod.yaml --patch patch.yaml",
    "nodewise advise reserves node.json configz.json summary-*.json",
    "nodewise advise reserves --context prod --node n1",
    "nodewise advise reserves --node n1 --api https://nodewise.example:8787 --token-file token -o json",
  );
  command.addHelpText("after", EXIT_CODES);
}
