import { type Command, Option } from "commander";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { TakeoverFlags } from "./takeover.ts";

const EXIT_CODES = `
Exit codes:
  0  no sandbox of others holds a pod back (any more)
  1  some would be stopped (dry run), or not all were
  2  bad usage or bad input
  3  a kubelet runs there, or may; no daemon is there to start the pods; or the runtime cannot be used
  4  the runtime failed in the middle
 130  interrupted: run it again, it goes on with what still runs`;

/** `nodewise takeover`: lists the pods that others run in the runtime for which pods are to run here; stops them only on request. */
export function addTakeover(program: Command, cli: Cli): void {
  const command = program
    .command("takeover")
    .summary("run pods in place of a kubelet: list what it left running, stop that when asked")
    .description(
      "A pod whose namespace and name run in a sandbox that Nodewise did not make is held. This lists all such sandboxes, what would be stopped in which order, what stays and why. Only --stop stops anything: sandboxes of pods that Nodewise is to run, never others.",
    )
    .argument("[pods...]", "only these, as NAMESPACE/NAME (of a static pod with the node's name at its end)")
    .option("--dry-run", "list only, stop nothing: the default")
    .addOption(new Option("--stop", "stop them, in that order, after each was looked at again").conflicts("dryRun"))
    .option("--without-daemon", "with --stop: also where no daemon is there that starts them afterwards")
    .option("--kubelet-elsewhere", "with --stop: a kubelet whose runtime cannot be determined has another one")
    .option("--settings <file>", "the actuator's settings, for the pods, the runtime and the names below; flags win")
    .option("--manifests <dir>", "the pods that are to run here: a directory or a file of static pods")
    .option("--pods-url <url>", "or a URL that answers a v1.PodList")
    .option("--pods-token-file <file>", "holds the token for it")
    .option("--pods-ca-file <file>", "holds its certificate authority")
    .option("--node-name <name>", "as the kubelet had it (default: the host's name)")
    .option("--cgroup-root <path>", "what Nodewise's own sandboxes are known by (default: /nodewise)")
    .option("--runtime-endpoint <socket>", "CRI v1 (default: unix:///run/containerd/containerd.sock)")
    .addOption(new Option("--runtime-timeout-seconds <n>", "of one call to it").argParser(Number))
    .addOption(outputOption())
    .action((pods: readonly string[], given: TakeoverFlags) =>
      finish(cli, async () => (await import("./takeover.ts")).takeover(pods, given, cli)),
    );
  examples(
    command,
    "nodewise takeover --settings /etc/nodewise/actuator.yaml",
    "nodewise takeover --manifests /etc/kubernetes/manifests -o json | jq '.stops[].pod'",
    "nodewise takeover --settings /etc/nodewise/actuator.yaml --stop default/web-n1",
    "nodewise takeover --settings /etc/nodewise/actuator.yaml --stop",
  );
  command.addHelpText("after", EXIT_CODES);
}
