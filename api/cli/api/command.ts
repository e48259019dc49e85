import { type Command, InvalidArgumentError, Option } from "commander";
import { checkPointer } from "../../service/decision-event.ts";
import { databaseOption, passwordFileOption, withApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, wholeNumber } from "../cli.ts";
import type { ServeFlags } from "./serve.ts";

export function addApi(program: Command, cli: Cli): void {
  const served = withApiOptions(
    program
      .command("api")
      .summary("Serve the policy API and its dashboard")
      .description("Serve the policy API and its dashboard; prints the address when it listens."),
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

/** Adds the options for reporting to other systems. */
const withTelemetryOptions = (command: Command): Command =>
  command
    .optionsGroup("For other programs:")
    .addOption(
      new Option(
        "--decision-log <target>",
        "deliver each recorded decision: to a URL, as OPA posts its decision logs, or to a file of JSON lines",
      ).env("NODEWISE_DECISION_LOG"),
    )
    .addOption(
      new Option(
        "--decision-log-token-file <file>",
        "file with the bearer token for the URL; read for each request (or set NODEWISE_DECISION_LOG_TOKEN)",
      ).env("NODEWISE_DECISION_LOG_TOKEN_FILE"),
    )
    .addOption(
      new Option(
        "--decision-log-label <name=value...>",
        "labels of each event, beside id and version of the process",
      ).argParser(labels),
    )
    .addOption(
      new Option(
        "--decision-log-erase <pointer...>",
        "leave out of each event what these JSON Pointers name: /input, /input/snapshot, /result/reasons",
      ).argParser(pointers),
    )
    .addOption(
      new Option(
        "--decision-log-max-bytes <n>",
        "bytes of the events of one POST, before gzip; a larger event is sent alone (default: 1 MiB)",
      ).argParser(wholeNumber(1024)),
    )
    .addOption(
      new Option(
        "--otlp <url>",
        "send traces and metrics to an OpenTelemetry collector, over HTTP, such as http://127.0.0.1:4318 (or set OTEL_EXPORTER_OTLP_ENDPOINT; other OTEL_* variables count too)",
      ),
    );

function labels(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, name, value] = /^([\w./-]{1,128})=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("Expected NAME=VALUE, such as cluster=prod.");
  return { ...before, [name]: value };
}

function pointers(text: string, before: readonly string[] = []): readonly string[] {
  const checked = checkPointer(text);
  if (!checked.ok) throw new InvalidArgumentError(`${checked.error[0]?.toUpperCase()}${checked.error.slice(1)}.`);
  return [...before, checked.value];
}
