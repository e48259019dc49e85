import { type Command, Option } from "commander";
import { ok } from "../../base/result.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { asksCluster, type ClusterFlags, withClusterOptions } from "../cluster-options.ts";
import type { MachineSnapshotOptions } from "../inputs/machine-snapshot.ts";
import { EXIT, fault, type Outcome, printData, type Terminal } from "../terminal.ts";

type SnapshotFlags = MachineSnapshotOptions &
  ClusterFlags & { readonly output: "json" | "yaml"; readonly node?: string };

export function addSnapshot(program: Command, cli: Cli): void {
  const command = program
    .command("snapshot")
    .summary("Print the NodeSnapshot of this machine, or of a node of a cluster")
    .description(
      "Print the NodeSnapshot of this machine, or of a node of a live cluster: the input of every decision. Changes nothing.",
    )
    .addOption(
      new Option(
        "--pods <file>",
        "pods of this machine: a PodList, one Pod, or manifests (absent: not known)",
      ).conflicts("manifests"),
    )
    .option("--manifests <dir>", "static pods of this machine: a directory of manifests")
    .option(
      "--config <file>",
      "KubeletConfiguration of this machine (absent: not known, and decisions use the kubelet's defaults)",
    )
    .option(
      "--kubelet-dir <dir>",
      "where the kubelet of this machine keeps its state files (default: /var/lib/kubelet)",
    )
    .option(
      "--runtime-endpoint <socket>",
      "container runtime of this machine (CRI v1): images, containers and their file systems",
    )
    .option("--node-name <name>", "node name of this machine (default: the host's)")
    .addOption(
      new Option("--cgroup-driver <driver>", "default: the configuration's, else cgroupfs").choices([
        "cgroupfs",
        "systemd",
      ]),
    )
    .option("--node <name>", "with a cluster: the node (default: its only one)");
  withClusterOptions(command)
    .addOption(outputOption(["json", "yaml"]))
    .action((given: SnapshotFlags) => finish(cli, () => print(given, cli)));
  examples(
    command,
    "nodewise snapshot > snapshot.json",
    "nodewise snapshot -o yaml --manifests /etc/kubernetes/manifests --config /var/lib/kubelet/config.yaml",
    "nodewise snapshot --context prod --node worker-1 > snapshot.json",
    "nodewise snapshot --runtime-endpoint unix:///run/containerd/containerd.sock > snapshot.json",
    "kubectl get pods -A -o json | nodewise snapshot --pods - | nodewise decide cgroups --snapshot -",
  );
}

async function print(given: SnapshotFlags, cli: Cli): Promise<Outcome> {
  const { terminal } = cli;
  const { node, output, context: _, kubeconfig: __, proxy: ___, kubeletInsecureTls: ____, ...ofMachine } = given;
  const [option] = Object.keys(ofMachine);
  const named = { namesObject: node !== undefined, hasFiles: option !== undefined };
  if (!asksCluster(given, cli, named)) {
    if (node !== undefined)
      return fault(EXIT.badInput, "--node belongs to a live cluster: give --context NAME too, or --node-name");
    return printMachine(ofMachine, output, terminal);
  }
  if (option !== undefined) {
    return fault(EXIT.badInput, `--${dashed(option)} belongs to this machine: leave it out, or the cluster`);
  }
  const { readClusterNode } = await import("../inputs/cluster-node.ts");
  const read = await readClusterNode(given, { node }, cli);
  if (!read.ok) return read;
  printData(terminal, read.value.snapshot, output);
  return ok(EXIT.ok);
}
const dashed = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

async function printMachine(
  given: MachineSnapshotOptions,
  output: SnapshotFlags["output"],
  terminal: Terminal,
): Promise<Outcome> {
  const { readMachine } = await import("../inputs/machine-snapshot.ts");
  const machine = await readMachine(given);
  if (!machine.ok) return machine;
  for (const line of machine.value.missing) terminal.warn(`nodewise: ${line}`);
  printData(terminal, machine.value.snapshot, output);
  return ok(EXIT.ok);
}
