import { type Command, Option } from "commander";
import { KINDS } from "../../model/decision.ts";
import { withHistoryOrApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, kubeletOption, setOption, wholeNumber } from "../cli.ts";
import type { ReplayFlags } from "./replay.ts";

const EXIT_CODES = `
Exit codes:
  0    every decision would be the same
  1   some would be different, or are refused
  2    bad usage or bad input, such as a file that is not there
  3    none would be different, but there were none, or not all could be decided again: their snapshot is no longer stored
  4    the API or the history failed, or some records cannot be read: they are named, and the others replayed
  130  interrupted: what was counted is printed, and the --page-token with which the same command goes on`;

export function addReplay(program: Command, cli: Cli): void {
  const command = withHistoryOrApiOptions(
    program
      .command("replay")
      .summary("Decide the recorded history again with another configuration")
      .description(
        "Decide the history again, oldest first, with another configuration or kubelet version: which decisions would have been different. Records nothing. Without either it shows what this version decides differently.",
      ),
  )
    .option("--since <time>", "from this time: RFC 3339, or a duration back from now such as 90m, 24h or 7d")
    .option(
      "--until <time>",
      "until this time: RFC 3339, or a duration back from now such as 90m, 24h or 7d (default: now)",
    )
    .option("--node <name>", "only this node")
    .addOption(new Option("--kind <kind>", "only this kind").choices(KINDS))
    .option(
      "--config <file>",
      "KubeletConfiguration, or the kubelet's /configz, instead of the recorded one: what it leaves out has the kubelet's default",
    )
    .option("--patch <file>", "fields to change in the recorded configuration, or in --config; null removes a field")
    .addOption(setOption())
    .addOption(kubeletOption("decide as a kubelet of this version, such as 1.37 (default: as recorded)"))
    .addOption(
      new Option("--limit <n>", "list at most so many of the changed and of the unreadable decisions")
        .argParser(wholeNumber(0, 100_000))
        .default(20),
    )
    .addOption(new Option("--all", "list all of them").conflicts("json"))
    .option(
      "--json",
      "a line of JSON for each changed or unreadable decision, one with the page token after each page, and a last one with what was counted",
    )
    .option("--page-token <token>", "continue an interrupted run of the same command")
    .action((given: ReplayFlags) => finish(cli, async () => (await import("./replay.ts")).replay(given, cli)));
  examples(
    command,
    "nodewise replay --since 24h --config kubelet.yaml",
    "nodewise replay --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z --node n1 --patch patch.yaml --all",
    "nodewise replay --since 7d --kind admission --patch patch.yaml --json | jq -r 'select(.verdict == \"refused\").id'",
    "nodewise replay --since 7d --kubelet 1.37",
    "nodewise replay --api https://nodewise.example:8787 --token-file token --since 7d --config kubelet.yaml",
  );
  command.addHelpText("after", EXIT_CODES);
}
