import { type Command, Option } from "commander";
import { ok } from "../../model/result.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { MachineSnapshotOptions } from "../inputs/machine-snapshot.ts";
import { EXIT, type Outcome, printData } from "../terminal.ts";

type Given = MachineSnapshotOptions & { readonly output: "json" | "yaml" };

export function addSnapshot(program: Command, cli: Cli): void {
  const command = program
    .command("snapshot")
    .description("Print the NodeSnapshot of this machine: what every decision starts from. Reads only.")
    .addOption(
      new Option("--pods <file>", "its pods: a PodList, one Pod, or manifests (absent: not known)").conflicts(
        "manifests",
      ),
    )
    .option("--manifests <dir>", "its static pods: a directory of manifests")
    .option(
      "--config <file>",
      "its KubeletConfiguration (absent: not known, and decisions take the kubelet's defaults)",
    )
    .option("--kubelet-dir <dir>", "where its kubelet keeps its state files (default: /var/lib/kubelet)")
    .option("--runtime-endpoint <socket>", "its container runtime (CRI v1): images, containers and their file systems")
    .option("--node-name <name>", "its name (default: the host's)")
    .addOption(
      new Option("--cgroup-driver <driver>", "default: the configuration's, else cgroupfs").choices([
        "cgroupfs",
        "systemd",
      ]),
    )
    .addOption(outputOption(["json", "yaml"]))
    .action((given: Given) => finish(cli, () => print(given, cli)));
  examples(
    command,
    "nodewise snapshot > snapshot.json",
    "nodewise snapshot -o yaml --manifests /etc/kubernetes/manifests --config /var/lib/kubelet/config.yaml",
    "nodewise snapshot --runtime-endpoint unix:///run/containerd/containerd.sock > snapshot.json",
    "kubectl get pods -A -o json | nodewise snapshot --pods - | nodewise decide cgroups --snapshot -",
  );
}

async function print(given: Given, { terminal }: Cli): Promise<Outcome> {
  const { readMachine } = await import("../inputs/machine-snapshot.ts");
  const machine = await readMachine(given);
  if (!machine.ok) return machine;
  for (const line of machine.value.missing) terminal.warn(`nodewise: ${line}`);
  printData(terminal, machine.value.snapshot, given.output);
  return ok(EXIT.ok);
}
