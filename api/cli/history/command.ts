import { type Command, Option } from "commander";
import { REMOVAL_ENDS } from "../../model/container-gc.ts";
import { KINDS, VERDICTS } from "../../model/decision.ts";
import { ADMITTED } from "../../model/kinds.ts";
import { type HistorySourceFlags, withHistoryOptions, withHistoryOrApiOptions } from "../api-options.ts";
import {
  type Cli,
  examples,
  finish,
  kubeletOption,
  limitOption,
  outputOption,
  reasonOption,
  wholeNumber,
} from "../cli.ts";
import type { BackupFlags, RestoreFlags } from "./backup.ts";
import type { ExportFlags } from "./export.ts";
import type { HistoryFlags } from "./history.ts";
import type { PruneFlags } from "./prune.ts";
import type { RemovalsFlags } from "./removals.ts";
import type { ShowFlags } from "./show.ts";

export function addHistory(program: Command, cli: Cli): void {
  const command = withHistoryOrApiOptions(
    program
      .command("history")
      .summary("List recorded decisions, newest first")
      .description("List recorded decisions, newest first: of a data directory, or of a running API."),
  )
    .option("--node <name>", "only this node")
    .addOption(new Option("--kind <kind>", "only this kind").choices(KINDS))
    .addOption(
      new Option(
        "--verdict <verdict>",
        "with this verdict only; admitted: admitted pods, by --kind or else admission",
      ).choices([...VERDICTS, ADMITTED]),
    )
    .addOption(reasonOption("OutOfcpu or memory.available"))
    .option("--pod <pod>", "about this pod: uid, namespace/name, or name")
    .addOption(kubeletOption("decided as this version of the kubelet only, such as 1.36"))
    .option("--since <time>", "from this time: RFC 3339, or a duration back from now such as 90m")
    .option("--until <time>", "until this time: RFC 3339, or a duration back from now such as 90m")
    .addOption(limitOption())
    .addOption(outputOption(["table", "json", "yaml", "csv"]))
    .action((given: HistoryFlags) => finish(cli, async () => (await import("./history.ts")).history(given, cli)));
  examples(
    command,
    "nodewise history --since 1h",
    "nodewise history --reason OutOfcpu --since 12h",
    "nodewise history --kubelet 1.37 --since 7d",
    "nodewise history --node n1 --kind allocatable --verdict kubelet-refuses",
    "nodewise history --verdict evicts --since 7d --limit 10000 -o csv",
    "NODEWISE_TOKEN=$(cat token) nodewise history --api https://nodewise.example:8787 -o json",
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7",
    "nodewise history removals --node n1 --since 720h --summary",
  );
  addShow(command, cli);
  addRemovals(command, cli);
  addRetention(command, cli);
  addBackup(command, cli);
  addMoving(command, cli);
}

function addMoving(history: Command, cli: Cli): void {
  const out = withHistoryOptions(
    history
      .command("export")
      .argument("[file]", "created, compressed if it ends in .gz; without it standard output")
      .description(
        "Write the history as lines of JSON, for another store. If it was interrupted, the same command continues the file.",
      ),
  )
    .option("--node <name>", "only this node")
    .option("--since <time>", "from this time: RFC 3339, or a duration back from now such as 90m")
    .option("--until <time>", "until this time: RFC 3339, or a duration back from now such as 90m")
    .addOption(
      new Option("--tokens", "with the API's tokens: their names, rights and hashes, not the secrets").conflicts("api"),
    )
    .option("--api <url>", "the history of this API instead, such as one on Workers; without its tokens")
    .option("--token-file <file>", "file with the token for --api, which needs the scope admin (or set NODEWISE_TOKEN)")
    .action((file: string | undefined, given: ExportFlags) =>
      finish(cli, async () => (await import("./export.ts")).exportHistory(file, given, cli)),
    );
  examples(
    out,
    "nodewise history export history.ndjson.gz --data-dir /var/lib/nodewise --tokens",
    "nodewise history export --node n1 --since 24h | gzip > n1.ndjson.gz",
    "nodewise history export history.ndjson.gz --api https://nodewise.example.workers.dev --token-file admin-token",
  );
  const into = withHistoryOptions(
    history
      .command("import")
      .argument("[file]", "what `history export` wrote, compressed or not; - or nothing: standard input")
      .description(
        "Read such lines into a history, or with --api into a running API. Run again, it skips what is there.",
      ),
  )
    .option("--api <url>", "into the history of this API instead, such as one on Workers")
    .option("--token-file <file>", "file with the token for --api, which needs the scope admin (or set NODEWISE_TOKEN)")
    .action((file: string | undefined, given: HistorySourceFlags) =>
      finish(cli, async () => (await import("./import.ts")).importHistory(file, given, cli)),
    );
  examples(
    into,
    "nodewise history import history.ndjson.gz --database postgres://nodewise@db.example/nodewise",
    "NODEWISE_TOKEN=$(cat token) nodewise history import history.ndjson.gz --api https://nodewise.example.workers.dev",
  );
}

function addRetention(history: Command, cli: Cli): void {
  const prune = withHistoryOptions(
    history
      .command("prune")
      .description(
        "Remove now what is older than --keep-days or beyond --keep-decisions, and nodes that have reported nothing for so long.",
      ),
  )
    .addOption(
      new Option("--keep-days <n>", "days after which history is removed: use the API's value (its default is 30)")
        .argParser(wholeNumber(1, 36_500))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option("--keep-decisions <n>", "decisions kept of each node (default: all)").argParser(wholeNumber(1)),
    )
    .option("--confirm", "the clock is right: remove by age even if the clock has jumped since the last sweep")
    .action((given: PruneFlags) => finish(cli, async () => (await import("./prune.ts")).prune(given, cli)));
  examples(prune, "nodewise history prune --keep-days 30", "nodewise history prune --keep-days 30 --confirm");
  const compact = withHistoryOptions(
    history
      .command("compact")
      .description("Rewrite the history's file without its free space. Stop the API first: it cannot write meanwhile."),
  ).action((given: { dataDir?: string }) => finish(cli, async () => (await import("./prune.ts")).compact(given, cli)));
  examples(compact, "nodewise history compact --data-dir /var/lib/nodewise");
}

function addBackup(history: Command, cli: Cli): void {
  const backup = withHistoryOptions(
    history
      .command("backup")
      .argument("<file>", "the copy, which must not exist yet")
      .description("Copy the history into one file and check it. The API may go on reading and writing meanwhile."),
  ).action((file: string, given: BackupFlags) =>
    finish(cli, async () => (await import("./backup.ts")).backup(file, given, cli)),
  );
  examples(backup, "nodewise history backup /backups/nodewise-$(date +%F).db --data-dir /var/lib/nodewise");
  const restore = withHistoryOptions(
    history
      .command("restore")
      .argument("<file>", "a file that `history backup` made; it stays unchanged")
      .description("Replace the history by a copy. Stop the API first."),
  )
    .option("--replace", "replace an existing history, which is kept beside it under another name")
    .action((file: string, given: RestoreFlags) =>
      finish(cli, async () => (await import("./backup.ts")).restore(file, given, cli)),
    );
  examples(restore, "nodewise history restore /backups/nodewise-2026-01-31.db --data-dir /var/lib/nodewise --replace");
}

function addShow(history: Command, cli: Cli): void {
  const command = withHistoryOrApiOptions(
    history
      .command("show")
      .argument("<id>", "the decision's id, or at least its first 8 characters")
      .description("Show one recorded decision: the answer, why, and what was done about it."),
  )
    .addOption(
      new Option("--explain <how>", "reasons as sentences, or with codes and numbers")
        .choices(["reasons", "full"])
        .default("reasons"),
    )
    .addOption(outputOption())
    .action((id: string, given: ShowFlags) =>
      finish(cli, async () => (await import("./show.ts")).showDecision(id, given, cli)),
    );
  examples(
    command,
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7",
    "nodewise history show 0e1c1a2b3c4d5e6f708192a3b4c5d6e7 --api http://127.0.0.1:8787 -o json",
  );
}

function addRemovals(history: Command, cli: Cli): void {
  const command = withHistoryOrApiOptions(
    history
      .command("removals")
      .description(
        "List what was removed from a node, newest first; or how much removing its images freed and how often they were pulled again.",
      ),
  )
    .requiredOption("--node <name>", "the node")
    .addOption(
      new Option("--summary", "how much was freed, and how often an image was pulled again").conflicts([
        "image",
        "search",
        "end",
      ]),
    )
    .addOption(new Option("--image <name>", "images with this in a name or an id").conflicts("search"))
    .option("--search <text>", "anything with this in an id, a name, NAMESPACE/POD or a container's name")
    .addOption(new Option("--end <end>", "only this result").choices(REMOVAL_ENDS))
    .option("--since <time>", "from this time: RFC 3339, or a duration back from now such as 90m")
    .option("--until <time>", "until this time: RFC 3339, or a duration back from now such as 90m")
    .addOption(limitOption())
    .addOption(outputOption())
    .action((given: RemovalsFlags) => finish(cli, async () => (await import("./removals.ts")).removals(given, cli)));
  examples(
    command,
    "nodewise history removals --node n1 --since 24h",
    "nodewise history removals --node n1 --image registry.example/app",
    "nodewise history removals --node n1 --since 720h --summary",
  );
}
