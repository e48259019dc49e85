import { type Command, Option } from "commander";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { TakeoverFlags } from "./takeover.ts";

const EXIT_CODES = `
Exit codes:
  0  no sandbox of another program blocks a pod, or none does after this run
  1  some would be stopped (dry run), or not all were
  2  bad usage or bad input
  3  a kubelet runs there, or may; there is no daemon to start the pods; or the runtime cannot be used
  4  the runtime failed in the middle
 130  interrupted: run it again, it continues with what still runs`;

/** `nodewise takeover`: lists the pods that others run in the runtime for which pods are to run here; stops them only on request. */
export function addTakeover(program: Command, cli: Cli): void {
  const command = program
    .command("takeover")
    .summary("List the pods that a removed kubelet left running, and stop them on request")
    .description(
      "Nodewise does not start a pod while a sandbox that it did not make runs a pod of the same namespace and name. This lists all such sandboxes: which would be stopped in which order, which stay and why. Only --stop stops anything: sandboxes of pods that Nodewise is to run, never others.",
    )
    .argument("[pods...]", "only these, as NAMESPACE/NAME (of a static pod with the node's name at its end)")
    .option("--dry-run", "list only, stop nothing: the default")
    .addOption(new Option("--stop", "stop them, in that order, each after another check").conflicts("dryRun"))
    .option("--without-daemon", "with --stop: even if there is no daemon to start them afterwards")
    .option("--kubelet-elsewhere", "with --stop: a kubelet whose runtime cannot be determined uses another runtime")
    .option("--settings <file>", "the actuator's settings, for the pods, the runtime and the names below; flags win")
    .option("--manifests <dir>", "the pods that are to run here: a directory or a file of static pods")
    .option("--pods-url <url>", "instead of --manifests: a URL that returns a v1.PodList")
    .option("--pods-token-file <file>", "file with the token for --pods-url")
    .option("--pods-ca-file <file>", "file with the certificate authority for --pods-url")
    .option("--node-name <name>", "the node name that the kubelet used (default: the host's name)")
    .option("--cgroup-root <path>", "the cgroup root that marks Nodewise's own sandboxes (default: /nodewise)")
    .option("--runtime-endpoint <socket>", "CRI v1 (default: unix:///run/containerd/containerd.sock)")
    .addOption(new Option("--runtime-timeout-seconds <n>", "timeout of one call to the runtime").argParser(Number))
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
