import type { Command } from "commander";
import { KINDS, type Kind } from "../../model/decision.ts";
import { ok } from "../../model/result.ts";
import { NEWEST } from "../../profiles/index.ts";
import { table } from "../../text/table.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { EXIT, type Form, type Outcome, printData } from "../terminal.ts";

const WHAT: Readonly<Record<Kind, string>> = {
  allocatable: "capacity, what is reserved of it and why, allocatable, and the limits of kubepods",
  cgroups: "the node's whole cgroup tree with every value and the exact text of every file",
  cpus: "who has which CPUs, which a pod would get or why not, and which cpusets must change now",
  memory: "who has memory and huge pages of which NUMA nodes, and which a pod would get or why not",
  topology: "whether a pod comes in and where, how fragmented the node is, and the largest pod that still fits",
  admission: "whether the kubelet lets a pod in, with every reason that would refuse it",
  preemption: "whom the kubelet ends so that a critical pod fits, and who else would have done",
  eviction: "what one pass of the eviction manager does, who is next, and when",
  "image-gc": "which images go, in order, what stays and why, and whether that is enough",
  "container-gc": "which dead containers, sandboxes and log directories go, and why the others stay",
  probes: "what a pod's probes do on given answers: attempts, results, restarts; and what of their settings goes wrong",
  "probe-guard": "which liveness kills wait because many unrelated pods fail together, which go ahead, and why",
  devices: "plugins' devices, who holds which, and which a pod would get or why not",
};

export function addKinds(program: Command, cli: Cli): void {
  const command = program
    .command("kinds")
    .description("List what can be decided.")
    .addOption(outputOption())
    .action(({ output }: { output: Form }) => finish(cli, async () => list(cli, output)));
  examples(command, "nodewise kinds", "nodewise kinds -o json");
}

function list({ terminal }: Cli, output: Form): Outcome {
  const kinds = KINDS.map((kind) => ({ kind, policyVersion: NEWEST.policyVersion, decides: WHAT[kind] }));
  if (output !== "table") printData(terminal, kinds, output);
  else {
    const columns = [{ title: "KIND" }, { title: "DECIDES", shrinkTo: 20 }, { title: "POLICY", giveUp: 1 }];
    const rows = kinds.map(({ kind, policyVersion, decides }) => ({ cells: [kind, decides, policyVersion] }));
    terminal.write(table(columns, rows, terminal.columns, terminal.paint));
  }
  return ok(EXIT.ok);
}
