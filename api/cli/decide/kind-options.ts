import { type Command, Option } from "commander";
import { PARTS } from "../../documents/inputs/parts.ts";
import { KIND_EXAMPLES, takes } from "../../documents/kind-examples.ts";
import { GC_OPERATIONS } from "../../model/container-gc.ts";
import { EXPLAIN, type Kind } from "../../model/decision.ts";
import { asksFor, specOf, traitsOf } from "../../model/kinds.ts";
import { kubeletOption, outputOption, setOption } from "../cli.ts";

/**
 * Adds a kind's options, in groups. The help shows those that the kind uses; the others are accepted too, so that one script can
 * give the same files to every kind, but options other than files are refused, naming the kinds that accept them.
 */
export function addKindOptions(command: Command, kind: Kind): void {
  const groups = [
    ["The node, from files:", nodeOptions(kind)],
    ["Input of the decision:", askOptions(kind)],
    ["What if:", whatIfOptions(kind)],
    ["The answer:", answerOptions(kind)],
  ] as const;
  for (const [heading, options] of groups) {
    command.optionsGroup(heading);
    for (const [isFor, option] of options) command.addOption(isFor ? option : option.hideHelp());
  }
}
type KindOption = readonly [isFor: boolean, option: Option];

const readsNode = (kind: Kind): boolean => KIND_EXAMPLES[kind].parts.length > 0;

function nodeOptions(kind: Kind): readonly KindOption[] {
  const { parts } = KIND_EXAMPLES[kind];
  const ofImages = asksFor(kind, "fileSystem");
  const capacity = ofImages
    ? "size of the image file system, in bytes or as a quantity, with --available"
    : "resources of a node that need not exist, such as cpu=4,memory=16Gi,pods=110";
  const isTimed = traitsOf(kind).needsTime || parts.includes("devices");
  return [
    [readsNode(kind), new Option("--snapshot <file>", "a whole NodeSnapshot; the others replace parts of it")],
    ...PARTS.map(({ option, what }) => [parts.includes(option), new Option(`--${option} <file>`, what)] as const),
    [ofImages || takes(kind, "node-capacity"), new Option("--capacity <amount>", capacity)],
    [ofImages, new Option("--available <size>", "what is available on the image file system")],
    [isTimed, new Option("--observed-at <time>", "the time of the snapshot, such as 2026-01-31T12:00:00Z")],
    [
      parts.includes("config"),
      new Option("--cgroup-version <version>", "cgroup version of the node").choices(["1", "2"]),
    ],
    [
      takes(kind, "cgroup-driver"),
      new Option("--cgroup-driver <driver>", "cgroup driver").choices(["cgroupfs", "systemd"]),
    ],
  ];
}

function askOptions(kind: Kind): readonly KindOption[] {
  const { ask, facts } = specOf(kind);
  return [
    [ask.pod !== "none", new Option("--pod <file>", POD[ask.pod])],
    [
      ask.schema !== null,
      new Option("--ask <file>", "the whole ask as the API accepts it, instead of the other options of this group"),
    ],
    [
      facts !== null,
      new Option("--facts <file>", "the answer of the last pass (-o json), or its `next`; without it: the first pass"),
    ],
    [
      asksFor(kind, "operation"),
      new Option("--operation <operation>", "which operation (default: garbage-collect)").choices(GC_OPERATIONS),
    ],
    [
      asksFor(kind, "to"),
      new Option(
        "--to <amounts>",
        "the new requests of its container, such as cpu=2,memory=1Gi; limits keep their ratio",
      ).argParser((amounts: string, before?: string) => (before === undefined ? amounts : `${before},${amounts}`)),
    ],
    [asksFor(kind, "container"), new Option("--container <name>", "only this one of the pod")],
    ...probesOptions().map((option) => [asksFor(kind, "outcomes"), option] as const),
  ];
}

function whatIfOptions(kind: Kind): readonly KindOption[] {
  const { policy, managers } = traitsOf(kind);
  const isConfigured = KIND_EXAMPLES[kind].parts.includes("config");
  const ofPolicy = `${policy?.field} (${policy?.values.join(", ")})`;
  return [
    [isConfigured, setOption()],
    [
      isConfigured,
      new Option(
        "--patch <file>",
        "fields of the configuration to change (a JSON merge patch, as JSON or YAML); null removes a field",
      ),
    ],
    [policy !== null, new Option("--policy <policy>", ofPolicy)],
    [managers !== "none", new Option("--scope <scope>", "topologyManagerScope").choices(["container", "pod"])],
    [
      true,
      kubeletOption(
        "the kubelet version to use if the node reports none (default: the newest); with --set or --patch it may differ from the node's own",
      ),
    ],
  ];
}

const answerOptions = (kind: Kind): readonly KindOption[] => [
  [true, outputOption(["table", "json", "yaml", ...(takes(kind, "karpenter") ? ["karpenter"] : [])])],
  [
    true,
    new Option("--explain <detail>", "explain each value (default: off in tables, else reasons)").choices(EXPLAIN),
  ],
];

const POD = {
  none: "the pod to decide about",
  object:
    "the pod to decide about: a file with one Pod, or NAMESPACE/NAME of a pod in the snapshot, or in the cluster, whose node is then used",
  name: "the pod to decide about: NAMESPACE/NAME of a pod in the snapshot",
} as const;

const probesOptions = (): readonly Option[] => [
  new Option("--outcomes <list>", "the results of attempts, such as ok,ok,fail*3, or @FILE; the last repeats"),
  new Option("--startup <list>", "the same for startup probes only"),
  new Option("--liveness <list>", "for liveness probes only"),
  new Option("--readiness <list>", "for readiness probes only"),
  new Option("--seconds <number>", "how long the dry run is (default: 120)"),
  new Option("--strict", "the documented behaviour instead of the kubelet's quirks"),
  new Option("--stop-seconds <number>", "how long a container takes to end (default: 0)"),
  new Option("--no-back-off", "restart at once, without CrashLoopBackOff"),
  new Option("--kubelet-restart <seconds>", "when the kubelet itself restarts"),
  new Option(
    "--jitter <share>",
    "the part of its period that each probe waits after that restart, 0 to 1 (default: 0)",
  ),
];
