import { type Command, Option } from "commander";
import { withApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, logFormatOption, wholeNumber } from "../cli.ts";
import { withClusterOptions } from "../cluster-options.ts";
import type { CollectFlags } from "./collect.ts";

export function addCollect(program: Command, cli: Cli): void {
  const command = withClusterOptions(
    program
      .command("collect")
      .summary("Follow a cluster: send snapshots of its nodes to an API")
      .description(
        "Follow a cluster: send snapshots of its nodes, and what its kubelets do, to an API. Without --api it starts an API itself, as `nodewise api` does.",
      ),
  )
    .option("--api <url>", "the API to send everything to")
    .option(
      "--token-file <file>",
      "file with the token for --api, of scope decide (or set NODEWISE_TOKEN); read for each request",
    )
    .addOption(
      new Option("--interval-seconds <n>", "each node is read once in this interval, and soon after its pods changed")
        .argParser(wholeNumber(5, 86_400))
        .default(60),
    )
    .addOption(
      new Option(
        "--status-listen <address>",
        "serve /healthz, /readyz and /metrics, such as on 127.0.0.1:10261",
      ).default("off"),
    )
    .addOption(logFormatOption())
    .optionsGroup("Without --api:");
  withApiOptions(command).action((given: CollectFlags) =>
    finish(cli, async () => (await import("./collect.ts")).collect(given, cli)),
  );
  examples(
    command,
    "nodewise collect --context prod",
    "nodewise collect --context prod --api https://nodewise.example:8787 --token-file token",
  );
}
