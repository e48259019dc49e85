import type { Command } from "commander";
import { databaseOption, passwordFileOption, withApiOptions } from "../api-options.ts";
import { type Cli, examples, finish } from "../cli.ts";
import type { ServeFlags } from "./serve.ts";
import { withTelemetryOptions } from "./telemetry-options.ts";

export function addApi(program: Command, cli: Cli): void {
  const served = withApiOptions(
    program.command("api").description("Serve the policy API and its dashboard; prints the address when it listens."),
  )
    .addOption(databaseOption())
    .addOption(passwordFileOption());
  const command = withTelemetryOptions(served).action((given: ServeFlags) =>
    finish(cli, async () => (await import("./serve.ts")).serve(given, cli)),
  );
  examples(
    command,
    "nodewise api",
    "nodewise api --port 0 --data-dir ./data",
    "nodewise api --database postgres://nodewise@db.example/nodewise --database-password-file /run/secrets/db",
    "nodewise api --decision-log https://logs.example/logs --decision-log-token-file /run/secrets/logs --decision-log-label cluster=prod",
    "nodewise token create cluster --data-dir /var/lib/nodewise && nodewise api --host 0.0.0.0 --data-dir /var/lib/nodewise",
  );
}
