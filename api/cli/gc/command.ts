import { Argument, type Command, Option } from "commander";
import { GC_OPERATIONS } from "../../model/container-gc.ts";
import { EXPLAIN } from "../../model/decision.ts";
import { withDeadContainerLimits, withDecidingApi, withLogDirectories } from "../actuator-options.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { GcFlags } from "./options.ts";

const EXIT_CODES = `
Exit codes:
  0  all that was to be removed is removed, or there was nothing; with --preview: the kubelet would succeed
  1  not everything was removed, or less was freed than wanted (with --preview: would be)
  2  bad usage or bad input
  3  another process collects from this runtime, or it cannot be used
  4  the runtime, the pods or a file failed in the middle`;

/** `nodewise gc images|containers`: shows what would be removed, or removes it once. */
export function addGc(program: Command, cli: Cli): void {
  const command = program
    .command("gc")
    .summary("Collect dead containers and unused images once, or preview it")
    .description(
      "Collect dead containers with their sandboxes and logs, or images, once and as the kubelet would. Each removal is checked again right before it; the pass stops at the first unexpected change.",
    )
    .addArgument(new Argument("<what>", "what to collect").choices(["images", "containers"]))
    .option(
      "--preview",
      "list and decide, remove nothing: what would be removed in which order, and why the rest stays",
    )
    .option("--dry-run", "the same as --preview")
    .option("--runtime-endpoint <socket>", "CRI v1 (default: unix:///run/containerd/containerd.sock)")
    .option("--kubelet-config <file>", "the KubeletConfiguration: thresholds and ages (absent: the kubelet's defaults)")
    .addOption(
      new Option("--pods <file>", "ALL pods of this node: a PodList, a List, or manifests").conflicts("manifests"),
    )
    .option("--manifests <dir>", "instead of --pods: a directory of static pods, where a node has no others")
    .addOption(
      new Option("--operation <operation>", "delete-unused: what the kubelet does under disk pressure")
        .choices(GC_OPERATIONS)
        .default("garbage-collect"),
    )
    .option(
      "--seen <duration>",
      "with --preview: images without a recorded time count as first seen this long ago, such as 1h",
    )
    .option(
      "--state-dir <dir>",
      "where the times of images are remembered (default: the actuator's, $XDG_STATE_HOME/nodewise/actuator)",
    );
  withDeadContainerLimits(withLogDirectories(withDecidingApi(command)))
    .addOption(outputOption())
    .addOption(new Option("--explain <detail>", "why each is kept or removed, with numbers").choices(EXPLAIN))
    .action((what: "images" | "containers", given: GcFlags) =>
      finish(cli, async () => (await import("./gc.ts")).gc(what, given, cli)),
    );
  examples(
    command,
    "nodewise gc images --preview",
    "nodewise gc images --preview --seen 1h --kubelet-config /var/lib/kubelet/config.yaml",
    "kubectl get pods -A --field-selector spec.nodeName=$(hostname) -o json > pods.json",
    "nodewise gc containers --pods pods.json",
    "nodewise gc images -o json | jq '.removals'",
  );
  command.addHelpText("after", EXIT_CODES);
}
