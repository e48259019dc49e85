import { type Command, Option } from "commander";
import { REMOVAL_ENDS } from "../../model/container-gc.ts";
import { dataDirOption } from "../api-options.ts";
import { type Cli, examples, finish, outputOption, wholeNumber } from "../cli.ts";
import type { RemovalsGiven } from "./removal-source.ts";

export function addRemovals(history: Command, cli: Cli): void {
  const command = history
    .command("removals")
    .description("List what was removed of a node, newest first; or what removing its images brought and cost.")
    .addOption(dataDirOption())
    .option("--api <url>", "ask this API instead")
    .option("--token-file <file>", "holds the token for it (or set NODEWISE_TOKEN)")
    .requiredOption("--node <name>", "of this node")
    .addOption(
      new Option("--summary", "how much it was, and how often an image was pulled again").conflicts([
        "image",
        "search",
        "end",
      ]),
    )
    .addOption(new Option("--image <name>", "images with this in a name or an id").conflicts("search"))
    .option("--search <text>", "anything with this in an id, a name, NAMESPACE/POD or a container's name")
    .addOption(new Option("--end <end>", "that ended like this only").choices(REMOVAL_ENDS))
    .option("--since <time>", "RFC 3339, or a duration back from now such as 90m")
    .option("--until <time>", "likewise")
    .addOption(new Option("--limit <n>", "at most so many").argParser(wholeNumber(1, 100_000)).default(50))
    .addOption(outputOption())
    .action((given: RemovalsGiven) => finish(cli, async () => (await import("./removals.ts")).removals(given, cli)));
  examples(
    command,
    "nodewise history removals --node n1 --since 24h",
    "nodewise history removals --node n1 --image registry.example/app",
    "nodewise history removals --node n1 --since 720h --summary",
  );
}
