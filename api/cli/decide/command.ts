import type { Command } from "commander";
import { PARTS } from "../../documents/inputs/parts.ts";
import { KIND_EXAMPLES } from "../../documents/kind-examples.ts";
import { KINDS, type Kind } from "../../model/decision.ts";
import { asksFor, specOf } from "../../model/kinds.ts";
import { shellWord } from "../../text/shell-word.ts";
import { type Cli, examples, finish } from "../cli.ts";
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
import type { FleetFlags } from "./fleet-resize.ts";
import { addKindOptions } from "./kind-options.ts";

type DecideFlags = Readonly<Record<string, string | undefined>> & DecideOptions & ClusterFlags;

const EXIT_CODES = `
Exit codes:
  0  decided (with a pod: it is admitted), calm, keeps
  1  refused, kubelet-refuses, under-pressure, reclaims, evicts, removes, fails, restarts; or no decision, because an input is missing
  2  bad usage or bad input, such as a file or a pod that is not there`;

const EXAMPLES = [
  "nodewise decide eviction --help",
  "nodewise snapshot | nodewise decide allocatable --snapshot -",
  "nodewise decide admission --pod pod.yaml --node node.json --pods pods.json",
  "nodewise decide eviction --context prod --node worker-1",
  "nodewise decide allocatable --snapshot snapshot.json --set kubeReserved.cpu=500m --set 'evictionHard[\"memory.available\"]=1Gi'",
  "nodewise decide cgroups --snapshot snapshot.json --set memoryThrottlingFactor=0.9 --kubelet 1.37",
  "nodewise decide cgroups --snapshot snapshot.json -o json | jq '.decision.cgroups[].files'",
];

/** `nodewise decide KIND`: a command for each kind, so that its help, its completions and its man page have its own options. */
export function addDecide(program: Command, cli: Cli): void {
  const command = program
    .command("decide")
    .summary("Decide from files, without an API and a history")
    .description(
      "Decide from files (JSON or YAML, `-` for standard input) or on a live cluster, without an API and a history. Each kind has options of its own: `nodewise decide KIND --help`.",
    )
    .usage("KIND [options]")
    .commandsGroup("Kinds:");
  for (const kind of KINDS) addKind(command, kind, cli);
  examples(command, ...EXAMPLES);
  command.addHelpText("after", EXIT_CODES);
}

/** The options for pods on several nodes, which one kind supports. */
const FLEET = ["selector", "snapshots", "nodes"] as const;

function addKind(decide: Command, kind: Kind, cli: Cli): void {
  const command = decide
    .command(kind)
    .summary(specOf(kind).decides)
    .description(`Decide ${specOf(kind).decides}.`)
    .allowExcessArguments();
  addKindOptions(command, kind);
  if (asksFor(kind, "pods"))
    command
      .optionsGroup("Pods of several nodes, a line each:")
      .option("-l, --selector <selector>", "the pods with these labels, of every node (with -n: of one namespace)")
      .option("--snapshots <files...>", "whole NodeSnapshots, one a node")
      .option("--nodes <names...>", "nodes of the live cluster (default: all)");
  command.optionsGroup("The node, from a live cluster:");
  namespaceOption(withClusterOptions(command)).action((given: DecideFlags & FleetFlags) => {
    const [file] = command.args;
    if (file !== undefined)
      command.error(
        `error: '${file}' is no option of '${kind}': give a node's snapshot with --snapshot ${shellWord(file)}`,
        {
          code: "commander.excessArguments",
        },
      );
    return finish(cli, async () => {
      const isFleet = FLEET.some((name) => given[name] !== undefined);
      return isFleet ? (await import("./fleet-resize.ts")).decideFleet(given, cli) : decideOn(kind, given, cli);
    });
  });
  examples(command, ...KIND_EXAMPLES[kind].commands);
  command.addHelpText("after", EXIT_CODES);
}

/** Reads the node, and the pod to decide on, from a live cluster if requested. */
async function decideOn(kind: Kind, given: DecideFlags, cli: Cli): Promise<Outcome> {
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
  const read = await readClusterNode(
    given,
    { node, pod: ofCluster, claims: KIND_EXAMPLES[kind].parts.includes("resource-claims") },
    cli,
  );
  if (!read.ok) return read;
  const { snapshot: live, pod: bound, podObject } = read.value;
  const { pod: _, ...rest } = given;
  const asked =
    ofCluster === undefined ? given : { ...rest, ...(bound && { pod: bound }), ...(podObject && { podObject }) };
  return decide(kind, { ...files, live }, asked, cli.terminal);
}

function filesOf(given: DecideFlags): SnapshotFiles {
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
/** Commander's name for an option's value. */
const camelCase = (option: string): string => option.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
