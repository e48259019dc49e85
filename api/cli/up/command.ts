import { type Command, Option } from "commander";
import { withApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, wholeNumber } from "../cli.ts";
import { withClusterOptions } from "../cluster-options.ts";
import type { UpFlags } from "./up.ts";

export function addUp(program: Command, cli: Cli): void {
  const command = withApiOptions(
    program
      .command("up")
      .summary("Start the API and an actuator that only observes this machine")
      .description(
        "Start the API, and an actuator that only observes this machine, and show what they see. With --context they observe a cluster instead of this machine.",
      ),
    "/up",
  )
    .option("--snapshot <file>", "show another node as well: its snapshot, as `nodewise snapshot` prints one")
    .option("--images <file>", "images of the node of --snapshot: crictl images -o json")
    .option("--containers <file>", "containers of the node of --snapshot: crictl ps -a -o json")
    .option("--sandboxes <file>", "sandboxes of the node of --snapshot: crictl pods -o json")
    .option("--imagefs <file>", "image file system of the node of --snapshot: crictl imagefsinfo -o json")
    .option("--manifests <dir>", "static pods of this machine: a directory or a file")
    .option("--config <file>", "KubeletConfiguration of this machine (absent: the kubelet's defaults)")
    .option("--node-name <name>", "node name of this machine (default: the host's)")
    .addOption(new Option("--interval-seconds <n>", "between two passes").argParser(wholeNumber(1, 86_400)).default(60))
    .optionsGroup("Options for a cluster:");
  withClusterOptions(command).action((given: UpFlags) =>
    finish(cli, async () => (await import("./up.ts")).up(given, cli)),
  );
  examples(
    command,
    "nodewise up",
    "nodewise up --context prod",
    "nodewise up --port 9000 --manifests ./pods --config kubelet.yaml",
  );
}
