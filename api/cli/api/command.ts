import type { Command } from "commander";
import { type ApiFlags, withApiOptions } from "../api-options.ts";
import { type Cli, examples, finish } from "../cli.ts";

export function addApi(program: Command, cli: Cli): void {
  const command = withApiOptions(
    program.command("api").description("Serve the policy API and its dashboard; prints the address when it listens."),
  ).action((given: ApiFlags) => finish(cli, async () => (await import("./serve.ts")).serve(given, cli)));
  examples(
    command,
    "nodewise api",
    "nodewise api --port 0 --data-dir ./data",
    "nodewise token create cluster --data-dir /var/lib/nodewise && nodewise api --host 0.0.0.0 --data-dir /var/lib/nodewise",
  );
}
