import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { RuntimeFault } from "../../../actuator/containerd/cri.ts";
import { execStreams } from "../../../actuator/containerd/exec-streams.ts";
import { faultText } from "../../../actuator/containerd/fault.ts";
import { ok, type Result } from "../../base/result.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";
import type { ExecFlags, WithEndpoint } from "./find.ts";
import { ask, containerOf, findPod, instancesOf, nameOf, withRuntime } from "./find.ts";

/** The exit codes of `timeout` and of shells. */
const TIMED_OUT = 124;
const NOT_STARTED = 126;
const NOT_FOUND = 127;

/** Runs a command in a container of a pod, and exits with its code. */
export async function exec(wanted: string, words: readonly string[], given: ExecFlags, cli: Cli): Promise<Outcome> {
  const { stdin = false, tty = false, timeout } = given;
  if ((stdin || tty) && timeout > 0)
    return fault(
      EXIT.badInput,
      "--timeout: the runtime has no timeout for a command with -i or -t: leave one of them out",
    );
  // kubectl's message and behaviour; without -i it ignores -t silently
  const hasTerminal = tty && process.stdin.isTTY;
  if (tty && !hasTerminal)
    cli.terminal.warn("nodewise: Unable to use a TTY - input is not a terminal or the right kind of file");
  return withRuntime(given, cli, async (connection, at) => {
    const id = await runningContainer(connection, wanted, at, cli);
    if (!id.ok) return id;
    return stdin || tty
      ? interactive(connection, id.value, words, { stdin, tty: hasTerminal })
      : plain(connection, id.value, words, timeout);
  });
}

async function runningContainer(
  connection: Connection,
  wanted: string,
  given: WithEndpoint<ExecFlags>,
  cli: Cli,
): Promise<Result<string, Fault>> {
  const pod = await findPod(connection, wanted, given);
  if (!pod.ok) return pod;
  const name = await containerOf(pod.value, given, cli);
  if (!name.ok) return name;
  const [newest] = instancesOf(pod.value).get(name.value) ?? [];
  if (newest?.state === "running") return ok(newest.id);
  const { namespace } = pod.value;
  return fault(
    EXIT.failed,
    `container ${printable(name.value)} of pod ${nameOf(pod.value)} does not run (it is ${newest?.state ?? "gone"}): \`nodewise pods ${printable(namespace)}/${printable(pod.value.name)}\` shows why, \`nodewise logs\` what it wrote`,
  );
}

async function plain(
  connection: Connection,
  containerId: string,
  cmd: readonly string[],
  timeout: number,
): Promise<Outcome> {
  // without a timeout there is no limit
  const extraMs = timeout > 0 ? timeout * 1000 : LONGEST_MS;
  const ran = await connection.call("ExecSync", { containerId, cmd, timeout }, extraMs);
  if (!ran.ok) return notRun(ran.error, timeout);
  process.stdout.write(ran.value.stdout);
  process.stderr.write(ran.value.stderr);
  return ok(ran.value.exitCode);
}
const LONGEST_MS = 24 * 60 * 60 * 1000;

async function interactive(
  connection: Connection,
  containerId: string,
  cmd: readonly string[],
  { stdin, tty }: { readonly stdin: boolean; readonly tty: boolean },
): Promise<Outcome> {
  const asked = await ask(connection, "Exec", { containerId, cmd, tty, stdin, stdout: true, stderr: !tty });
  if (!asked.ok) return asked;
  const { stdin: input, stdout: output, stderr: errors } = process;
  const isRaw = tty && stdin && input.isTTY;
  if (isRaw) input.setRawMode(true);
  try {
    const ended = await execStreams(asked.value.url, {
      stdin: stdin ? input : null,
      stdout: output,
      stderr: tty ? null : errors,
      terminal: tty ? output : null,
    });
    if (!ended.ok) return fault(EXIT.failed, ended.error);
    const { exitCode, message } = ended.value;
    return exitCode === null ? notStarted(message) : ok(exitCode);
  } finally {
    if (isRaw) input.setRawMode(false);
    // an open standard input would keep the process alive
    input.destroy();
  }
}

function notRun(error: RuntimeFault, timeout: number): Outcome {
  const { code, message } = error;
  if (code === "DEADLINE_EXCEEDED" && timeout > 0)
    return fault(TIMED_OUT, `the command took longer than ${timeout} s, and was killed`);
  if (code === "RESOURCE_EXHAUSTED" && message.includes("larger than max"))
    return fault(
      EXIT.failed,
      `the command ran, and wrote more than the runtime passes on when it has ended (16 MB with containerd), so neither its output nor its exit code is known: with -i output of any length is shown as it is written (-i < /dev/null: without input), or let the command write to a file in the container`,
    );
  return /OCI runtime exec failed|failed to start exec/.test(message)
    ? notStarted(message)
    : fault(EXIT.failed, faultText(error));
}
const notStarted = (message: string): Outcome =>
  fault(
    /executable file not found|no such file or directory/.test(message) ? NOT_FOUND : NOT_STARTED,
    printable(message),
  );
