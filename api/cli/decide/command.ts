import { Argument, type Command, Option } from "commander";
import { PARTS } from "../../documents/inputs/parts.ts";
import { GC_OPERATIONS } from "../../model/container-gc.ts";
import { EXPLAIN, KINDS, type Kind } from "../../model/decision.ts";
import { type Cli, examples, finish, kubeletOption, outputOption, setOption } from "../cli.ts";
import {
  asksCluster,
  type ClusterFlags,
  isPodOfCluster,
  namespaceOption,
  podNamed,
  withClusterOptions,
} from "../cluster-options.ts";
import type { SnapshotFiles } from "../inputs/snapshot.ts";
import { EXIT, fault, type Outcome } from "../terminal.ts";
import type { DecideOptions } from "./decide.ts";

type Given = Readonly<Record<string, string | undefined>> & DecideOptions & ClusterFlags;

const EXIT_CODES = `
Exit codes:
  0  decided (with a pod: it comes in), calm, keeps
  1  refused, kubelet-refuses, under-pressure, reclaims, evicts, removes, fails, restarts; or no decision, for something is missing
  2  bad usage or bad input, such as a file or a pod that is not there`;

const EXAMPLES = [
  "nodewise snapshot | nodewise decide allocatable --snapshot -",
  "nodewise decide cgroups --node node.json --pods pods.json --config configz.json --cgroup-version 2",
  "kubectl get pods -A -o json | nodewise decide cgroups --snapshot snapshot.json --pods - --explain full",
  "nodewise decide cpus --snapshot snapshot.json --pod pod.yaml",
  'nodewise decide allocatable --snapshot snapshot.json --set kubeReserved.cpu=500m --set evictionHard["memory.available"]=1Gi',
  "nodewise decide cgroups --snapshot snapshot.json --set memoryThrottlingFactor=0.9 --kubelet 1.37",
  "nodewise decide allocatable --capacity cpu=4,memory=16Gi,pods=110,ephemeral-storage=100Gi --config kubelet.yaml -o karpenter",
  "nodewise decide topology --machine epyc-2s-nps4 --policy restricted --pod pod.yaml",
  "nodewise decide admission --pod pod.yaml --node node.json --pods pods.json",
  "nodewise decide cgroups --pods pods.json --cgroup-version 2 --kubelet 1.35",
  "nodewise decide preemption --pod critical.yaml --node node.json --pods pods.json --explain reasons",
  "nodewise decide eviction --pods pods.json --config configz.json --stats summary.json -o json > pass-1.json",
  "nodewise decide eviction --pods pods.json --config configz.json --stats summary.json --facts pass-1.json",
  "crictl images -o json | nodewise decide image-gc --images - --containers containers.json --sandboxes sandboxes.json --stats summary.json",
  "nodewise decide container-gc --containers containers.json --sandboxes sandboxes.json --pods pods.json --operation delete-unused",
  "nodewise decide probes --pod pod.yaml --outcomes ok,ok,fail*3",
  "nodewise probes outcomes --pod shop/web-0 | nodewise decide probes --pod web.yaml --outcomes @- --strict",
  "nodewise decide probes --pod pod.yaml --startup fail*20,ok --readiness 'ok*5,timeout*3,ok' --seconds 300 --strict",
  "nodewise probes history -o json | jq '[.entries[] | select(.ask)][0].ask' | nodewise decide probe-guard --ask - --explain reasons",
  "nodewise decide eviction --context prod --node worker-1",
  "nodewise decide admission --context prod -n shop --pod web-0 --node worker-2",
  "nodewise decide cgroups --snapshot snapshot.json -o json | jq '.decision.cgroups[].files'",
];

export function addDecide(program: Command, cli: Cli): void {
  const command = program
    .command("decide")
    .summary("decide from files, without API and history")
    .description("Decide from files (JSON or YAML, `-` for standard input), without API and history.")
    .addArgument(new Argument("<kind>", "what to decide").choices(KINDS))
    .option("--snapshot <file>", "a whole NodeSnapshot; the options below replace parts of it");
  for (const { option, what } of PARTS) command.option(`--${option} <file>`, what);
  namespaceOption(withClusterOptions(command));
  command
    .addOption(setOption())
    .option(
      "--patch <file>",
      "what if: fields to change of the configuration (a JSON merge patch, as JSON or YAML); null takes one away",
    )
    .option("--policy <policy>", "what if: of the kind's own manager (cpus, memory, topology)")
    .addOption(new Option("--scope <scope>", "what if: topologyManagerScope").choices(["container", "pod"]));
  command
    .option(
      "--pod <file>",
      "the pod that asks to come in: a file with one Pod, NAMESPACE/NAME of one of the snapshot, or one of the cluster, whose node is taken then",
    )
    .option("--ask <file>", "the whole ask as the API takes it, in the place of --pod")
    .option(
      "--facts <file>",
      "eviction, image-gc: the answer of the last pass (-o json), or its `next`; without it this is the first",
    )
    .addOption(
      new Option("--operation <operation>", "image-gc, container-gc: what for (default: garbage-collect)").choices(
        GC_OPERATIONS,
      ),
    )
    .option(
      "--capacity <amount>",
      "allocatable: resources of a node that need not exist, such as cpu=4,memory=16Gi,pods=110; image-gc: the size of the image file system, in bytes or as a quantity, with --available",
    )
    .option("--available <size>", "image-gc: what is left of the image file system")
    .option("--outcomes <list>", "probes: what attempts are answered, such as ok,ok,fail*3, or @FILE; the last repeats")
    .option("--startup <list>", "probes: the same of startup probes alone")
    .option("--liveness <list>", "probes: of liveness probes alone")
    .option("--readiness <list>", "probes: of readiness probes alone")
    .option("--container <name>", "probes: only this one of the pod")
    .option("--seconds <number>", "probes: how long the dry run is (default: 120)")
    .option("--strict", "probes: the documented behaviour in the place of the kubelet's quirks")
    .option("--stop-seconds <number>", "probes: how long a container takes to end (default: 0)")
    .option("--no-back-off", "probes: restart at once, without CrashLoopBackOff")
    .option("--kubelet-restart <seconds>", "probes: when the kubelet itself restarts")
    .option("--jitter <share>", "probes: of its period that each probe waits after that restart, 0 to 1 (default: 0)")
    .option("--observed-at <time>", "when it was so, such as 2026-01-31T12:00:00Z")
    .addOption(new Option("--cgroup-version <version>", "cgroup version of the node").choices(["1", "2"]))
    .addOption(new Option("--cgroup-driver <driver>", "cgroup driver").choices(["cgroupfs", "systemd"]))
    .addOption(
      kubeletOption(
        "as which kubelet to answer where the node tells no version (default: the newest); with --set or --patch also what if: another than the node's own",
      ),
    )
    .addOption(outputOption(["table", "json", "yaml", "karpenter"]))
    .addOption(
      new Option("--explain <detail>", "why each value is what it is (default: off in tables, else reasons)").choices(
        EXPLAIN,
      ),
    )
    .action((kind: Kind, given: Given) => finish(cli, () => decideOn(kind, given, cli)));
  examples(command, ...EXAMPLES);
  command.addHelpText("after", EXIT_CODES);
}

/** Reads the node, and the pod that is asked about, of a live cluster where one is asked for. */
async function decideOn(kind: Kind, given: Given, cli: Cli): Promise<Outcome> {
  const { decide } = await import("./decide.ts");
  const { node, ...files } = filesOf(given);
  const { snapshot } = given;
  const pod = given.pod && podNamed(given.pod);
  const ofCluster = pod !== undefined && isPodOfCluster(pod) ? pod : undefined;
  const namesPod = ofCluster !== undefined && snapshot === undefined && files.pods === undefined;
  const named = { namesObject: node !== undefined || namesPod, hasFiles: Object.keys(files).length > 0 };
  if (!asksCluster(given, cli, named)) {
    return decide(kind, node === undefined ? files : { ...files, node }, given, cli.terminal);
  }
  if (snapshot !== undefined) return fault(EXIT.badInput, "--snapshot is a whole node: give it without a cluster");
  const { readClusterNode } = await import("../inputs/cluster-node.ts");
  const read = await readClusterNode(given, { node, pod: ofCluster }, cli);
  if (!read.ok) return read;
  const { snapshot: live, pod: bound, podObject } = read.value;
  const { pod: _, ...rest } = given;
  const asked =
    ofCluster === undefined ? given : { ...rest, ...(bound && { pod: bound }), ...(podObject && { podObject }) };
  return decide(kind, { ...files, live }, asked, cli.terminal);
}

function filesOf(given: Given): SnapshotFiles {
  const { snapshot, cgroupVersion, cgroupDriver, observedAt, kubelet } = given;
  const parts = PARTS.map(({ option }) => [option, given[camelCase(option)]] as const);
  return {
    ...(snapshot === undefined ? {} : { snapshot }),
    ...(observedAt === undefined ? {} : { observedAt }),
    ...(kubelet === undefined ? {} : { kubelet }),
    ...Object.fromEntries(parts.filter(([, file]) => file !== undefined)),
    ...(cgroupVersion === undefined ? {} : { cgroupVersion: cgroupVersion === "1" ? 1 : 2 }),
    ...(cgroupDriver === undefined ? {} : { cgroupDriver: cgroupDriver === "systemd" ? "systemd" : "cgroupfs" }),
  };
}
/** How commander names an option's value. */
const camelCase = (option: string): string => option.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
