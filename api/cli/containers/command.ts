import { type Command, InvalidArgumentError, Option } from "commander";
import { nanosOf } from "../../../actuator/pods/logs/lines.ts";
import { parseDuration } from "../../base/duration.ts";
import { type Cli, examples, finish, sourceOptions } from "../cli.ts";
import type { ExecFlags, LogsFlags } from "./find.ts";

const LOGS_EXIT_CODES = `
Exit codes:
  0  shown
  2  bad usage, no such pod or container, or a container must be named
  4  the runtime does not answer, or there is no log`;

/** `nodewise logs POD`: prints the containers' output from the node's log files. */
export function addLogs(program: Command, cli: Cli): void {
  const command = program
    .command("logs")
    .summary("Print the logs of a container, rotated ones included")
    .description(
      "Print what a container wrote to standard output and standard error, each to the same stream, rotated logs included. It reads the files of this node and asks the runtime for their paths, so it needs root.",
    )
    .argument("<pod>", "as `nodewise pods` shows it: NAMESPACE/NAME, or NAME");
  withContainer(command)
    .addOption(new Option("--all-containers", "of every container of the pod").conflicts("container"))
    .option("-f, --follow", "and follow it: across rotations and restarts, until the pod has ended")
    .option("-p, --previous", "of the instance before this one")
    .addOption(new Option("--tail <lines>", "only the last lines; -1: all").argParser(wholeFrom(-1)).default(-1))
    .addOption(
      new Option("--since <duration>", "only what was written within this time: 5s, 2m, 3h")
        .argParser(sinceMs)
        .conflicts("sinceTime"),
    )
    .addOption(new Option("--since-time <time>", "or since this RFC 3339 time").argParser(sinceNanos))
    .option("--timestamps", "the time before each line")
    .option("--prefix", "the names of pod and container before each line")
    .addOption(new Option("--limit-bytes <bytes>", "at most so many bytes, of each container").argParser(wholeFrom(1)))
    .action((pod: string, given: LogsFlags) =>
      finish(cli, async () => (await import("./logs.ts")).logs(pod, given, cli)),
    );
  examples(
    command,
    "nodewise logs shop/web-0",
    "nodewise logs web-0 -c app --tail 100 -f",
    "nodewise logs web-0 --previous",
    "nodewise logs web-0 --all-containers --prefix --since 10m --timestamps",
  );
  command.addHelpText("after", LOGS_EXIT_CODES);
}

const EXEC_EXIT_CODES = `
Exit codes: those of the command, and
  2    bad usage, no such pod or container, or a container must be named
  4    the runtime does not answer, or the container does not run
  124  the command took longer than --timeout
  126  the command cannot be started
  127  there is no such command in the container`;

/** `nodewise exec POD -- COMMAND...`: runs a command in a container. */
export function addExec(program: Command, cli: Cli): void {
  const command = program
    .command("exec")
    .summary("Run a command in a container")
    .description(
      "Run a command in a running container. Without -i and -t its output is shown when it has ended, 16 MB of it at most; with them as it is written.",
    )
    .argument("<pod>", "as `nodewise pods` shows it: NAMESPACE/NAME, or NAME")
    .argument("<command...>", "behind `--`: the program with its arguments; no shell reads them");
  withContainer(command)
    .option("-i, --stdin", "pass standard input to the command")
    .option("-t, --tty", "with a terminal of its own")
    .addOption(
      new Option("--timeout <seconds>", "the command is killed after this time; 0: never. Not with -i or -t")
        .argParser(wholeFrom(0))
        .default(0),
    )
    .action((pod: string, words: string[], given: ExecFlags) =>
      finish(cli, async () => (await import("./exec.ts")).exec(pod, words, given, cli)),
    );
  examples(
    command,
    "nodewise exec web-0 -- ls -l /data",
    "nodewise exec -it shop/web-0 -c app -- sh",
    "nodewise exec -i db-0 -- tar xf - -C /data < backup.tar",
    "nodewise exec web-0 --timeout 10 -- /bin/check; echo $?",
  );
  command.addHelpText("after", EXEC_EXIT_CODES);
}

const withContainer = (command: Command): Command =>
  sourceOptions(command)
    .option("-n, --namespace <name>", "the pod's namespace")
    .option("-c, --container <name>", "which container, where the pod has several")
    .option("--runtime-endpoint <socket>", "CRI v1 (default: that of --settings, else that of the daemon's status)")
    .option("--settings <file>", "the daemon's settings, for its runtimeEndpoint");

const wholeFrom =
  (least: number) =>
  (text: string): number => {
    const number = Number(text);
    if (/^-?\d+$/.test(text) && Number.isSafeInteger(number) && number >= least) return number;
    throw new InvalidArgumentError(`Expected a whole number from ${least} on.`);
  };
function sinceMs(text: string): number {
  const duration = parseDuration(text);
  if (duration.ok && duration.value.millis > 0) return duration.value.millis;
  throw new InvalidArgumentError("Expected a duration above zero, such as 5s, 2m or 3h.");
}
function sinceNanos(text: string): bigint {
  const nanos = nanosOf(text);
  if (nanos !== undefined) return nanos;
  throw new InvalidArgumentError("Expected a time such as 2026-01-31T12:00:00Z.");
}
