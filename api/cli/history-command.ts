import { type Command, Option } from "commander";
import { KINDS, VERDICTS } from "../model/decision.ts";
import { dataDirOption } from "./api-options.ts";
import { type Cli, examples, finish, outputOption } from "./cli.ts";
import type { HistoryGiven } from "./history.ts";
import type { ShowGiven } from "./history-show.ts";
import { addRemovals } from "./removals-command.ts";
import { wholeNumber } from "./whole-number.ts";

export function addHistory(program: Command, cli: Cli): void {
  const command = program
    .command("history")
    .description("List recorded decisions, newest first: of a data directory, or of a running API.")
    .addOption(dataDirOption())
    .option("--api <url>", "ask this API instead")
    .option("--token-file <file>", "holds the token for it (or set NODEWISE_TOKEN)")
    .option("--node <name>", "of this node only")
    .addOption(new Option("--kind <kind>", "of this kind only").choices(KINDS))
    .addOption(new Option("--verdict <verdict>", "with this verdict only").choices(VERDICTS))
    .option("--pod <pod>", "about this pod: uid, namespace/name, or name")
    .option("--since <time>", "RFC 3339, or a duration back from now such as 90m")
    .option("--until <time>", "likewise")
    .addOption(new Option("--limit <n>", "at most so many").argParser(wholeNumber(1, 100_000)).default(50))
    .addOption(outputOption())
    .action((given: HistoryGiven) => finish(cli, async () => (await import("./history.ts")).history(given, cli)));
  examples(
    command,
    "nodewise history --since 1h",
    "nodewise history --node n1 --kind allocatable --verdict kubelet-refuses",
    "NODEWISE_TOKEN=$(cat token) nodewise history --api https://nodewise.example:8787 -o json",
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7",
    "nodewise history removals --node n1 --since 720h --summary",
  );
  addShow(command, cli);
  addRemovals(command, cli);
}

function addShow(history: Command, cli: Cli): void {
  const command = history
    .command("show")
    .argument("<id>", "the decision's id")
    .description("Show one recorded decision: the answer, why, and what was done about it.")
    .addOption(dataDirOption())
    .option("--api <url>", "ask this API instead")
    .option("--token-file <file>", "holds the token for it (or set NODEWISE_TOKEN)")
    .addOption(
      new Option("--explain <how>", "reasons in words, or with codes and numbers")
        .choices(["reasons", "full"])
        .default("reasons"),
    )
    .addOption(outputOption())
    .action((id: string, given: ShowGiven) =>
      finish(cli, async () => (await import("./history-show.ts")).showDecision(id, given, cli)),
    );
  examples(
    command,
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7",
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7 --api http://127.0.0.1:8787 -o json",
  );
}
