import { type Command, Option } from "commander";
import { PARTS, type PartOption } from "../../documents/inputs/parts.ts";
import { GC_OPERATIONS } from "../../model/container-gc.ts";
import { EXPLAIN, type Kind } from "../../model/decision.ts";
import { asksFor, specOf, traitsOf } from "../../model/kinds.ts";
import { kubeletOption, outputOption, setOption } from "../cli.ts";

const STATE_FILES = ["cpu-manager-state", "memory-manager-state"] as const;
const RUNTIME = ["images", "containers", "sandboxes", "imagefs"] as const;
const MANAGERS = [
  "node",
  "pods",
  "config",
  "machine",
  ...STATE_FILES,
  "allocated-pods",
  "device-checkpoint",
  "devices",
  "device-plugins",
] as const;

const DRA = ["resource-claims", "resource-slices", "device-classes", "dra-drivers", "dra-state", "dra-health"] as const;

interface HelpOfKind {
  /** The parts of a snapshot that its answer depends on. */
  readonly parts: readonly PartOption[];
  readonly examples: readonly [string, string, ...string[]];
}

/** The help of each kind, beside what follows from its spec. */
export const HELP: Readonly<Record<Kind, HelpOfKind>> = {
  allocatable: {
    parts: ["node", "config", "stats", "machine", "device-checkpoint", "devices", "device-plugins"],
    examples: [
      "nodewise decide allocatable --node node.json --config configz.json --stats summary.json",
      "nodewise decide allocatable --capacity cpu=4,memory=16Gi,pods=110 --set kubeReserved.memory=1Gi",
    ],
  },
  cgroups: {
    parts: ["node", "pods", "config", "stats", "machine", ...STATE_FILES, "allocated-pods"],
    examples: [
      "nodewise decide cgroups --node node.json --pods pods.json --config configz.json --cgroup-version 2",
      "nodewise decide cgroups --snapshot snapshot.json --set memoryThrottlingFactor=0.8 --explain full",
    ],
  },
  cpus: {
    parts: MANAGERS,
    examples: [
      "nodewise decide cpus --snapshot snapshot.json --pod pod.yaml",
      "nodewise decide cpus --machine xeon-2s --policy static --pod pod.yaml",
    ],
  },
  memory: {
    parts: MANAGERS,
    examples: [
      "nodewise decide memory --snapshot snapshot.json --pod pod.yaml",
      "nodewise decide memory --machine xeon-2s --policy Static --pod pod.yaml",
    ],
  },
  topology: {
    parts: MANAGERS,
    examples: [
      "nodewise decide topology --machine epyc-2s-nps4 --policy restricted --pod pod.yaml",
      "nodewise decide topology --snapshot snapshot.json --policy single-numa-node --scope pod --pod pod.yaml",
    ],
  },
  devices: {
    parts: MANAGERS,
    examples: [
      "nodewise decide devices --snapshot snapshot.json --devices devices.yaml --pod pod.yaml",
      "nodewise decide devices --node node.json --pods pods.json --device-checkpoint kubelet_internal_checkpoint",
    ],
  },
  claims: {
    parts: ["node", "pods", "config", ...DRA, "devices", "device-plugins"],
    examples: [
      "nodewise decide claims --pod shop/train-0 --pods pods.json --resource-claims claims.json --dra-drivers drivers.yaml",
      "nodewise decide claims --node node.json --pods pods.json --dra-state dra_manager_state --resource-slices slices.json",
    ],
  },
  admission: {
    parts: MANAGERS,
    examples: [
      "nodewise decide admission --pod pod.yaml --node node.json --pods pods.json",
      "nodewise decide admission --context prod -n shop --pod web-0 --node worker-2",
    ],
  },
  preemption: {
    parts: ["node", "pods", "allocated-pods"],
    examples: [
      "nodewise decide preemption --pod critical.yaml --node node.json --pods pods.json --explain reasons",
      "nodewise decide preemption --context prod -n kube-system --pod dns-7 --node worker-2",
    ],
  },
  resize: {
    parts: [...MANAGERS, "stats"],
    examples: [
      "nodewise decide resize --context prod --node worker-2 --pod shop/web-0 --to cpu=2,memory=1Gi",
      "nodewise decide resize --snapshot snapshot.json # the resizes that wait",
      "nodewise decide resize --context prod -n shop -l app=web --to cpu=2,memory=1Gi # on every node",
      'echo \'{"pods": ["shop/a", "shop/b"], "to": {"cpu": "2"}}\' | nodewise decide resize --snapshot snapshot.json --ask -',
      "kubectl get vpa web -n shop -o json | jq '{pod: \"shop/web-0\", recommendation: .status.recommendation}' | nodewise decide resize --context prod --node worker-2 --ask -",
    ],
  },
  eviction: {
    parts: ["node", "pods", "config", "stats", ...RUNTIME],
    examples: [
      "nodewise decide eviction --context prod --node worker-1",
      "nodewise decide eviction --pods pods.json --config configz.json --stats summary.json --facts last-answer.json",
    ],
  },
  "image-gc": {
    parts: ["node", "pods", "config", "stats", ...RUNTIME],
    examples: [
      "nodewise decide image-gc --images images.json --containers containers.json --capacity 252Gi --available 40Gi",
      "crictl images -o json | nodewise decide image-gc --images - --snapshot snapshot.json --set imageGCHighThresholdPercent=70",
    ],
  },
  "container-gc": {
    parts: ["node", "pods", "containers", "sandboxes"],
    examples: [
      "nodewise decide container-gc --containers containers.json --sandboxes sandboxes.json --pods pods.json",
      "nodewise decide container-gc --snapshot snapshot.json --operation delete-unused",
    ],
  },
  probes: {
    parts: ["node", "pods", "config"],
    examples: [
      "nodewise decide probes --pod pod.yaml --startup 'fail*20,ok' --readiness 'ok*5,timeout*3,ok' --seconds 300",
      "nodewise probes outcomes --pod shop/web-0 | nodewise decide probes --pod web.yaml --outcomes @- --strict",
    ],
  },
  "probe-guard": {
    parts: [],
    examples: [
      "nodewise decide probe-guard --ask ask.json --explain reasons",
      "nodewise probes history -o json | jq '[.entries[] | select(.ask)][0].ask' | nodewise decide probe-guard --ask -",
    ],
  },
};

/**
 * Adds the options of a kind, in groups. The help shows those that it has a use for; the others are taken all the same, so that one
 * script gives the same files to every kind, and what is no file is refused with the kinds that take it.
 */
export function addKindOptions(command: Command, kind: Kind): void {
  const groups = [
    ["The node, from files:", nodeOptions(kind)],
    ["What is asked:", askOptions(kind)],
    ["What if:", whatIfOptions(kind)],
    ["The answer:", answerOptions(kind)],
  ] as const;
  for (const [heading, options] of groups) {
    command.optionsGroup(heading);
    for (const [isFor, option] of options) command.addOption(isFor ? option : option.hideHelp());
  }
}
type KindOption = readonly [isFor: boolean, option: Option];

export const readsNode = (kind: Kind): boolean => HELP[kind].parts.length > 0;

function nodeOptions(kind: Kind): readonly KindOption[] {
  const { parts } = HELP[kind];
  const ofImages = asksFor(kind, "fileSystem");
  const capacity = ofImages
    ? "size of the image file system, in bytes or as a quantity, with --available"
    : "resources of a node that need not exist, such as cpu=4,memory=16Gi,pods=110";
  const isTimed = traitsOf(kind).needsTime || parts.includes("devices");
  return [
    [readsNode(kind), new Option("--snapshot <file>", "a whole NodeSnapshot; the others replace parts of it")],
    ...PARTS.map(({ option, what }) => [parts.includes(option), new Option(`--${option} <file>`, what)] as const),
    [ofImages || kind === "allocatable", new Option("--capacity <amount>", capacity)],
    [ofImages, new Option("--available <size>", "what is left of the image file system")],
    [isTimed, new Option("--observed-at <time>", "when it was so, such as 2026-01-31T12:00:00Z")],
    [
      parts.includes("config"),
      new Option("--cgroup-version <version>", "cgroup version of the node").choices(["1", "2"]),
    ],
    [kind === "cgroups", new Option("--cgroup-driver <driver>", "cgroup driver").choices(["cgroupfs", "systemd"])],
  ];
}

function askOptions(kind: Kind): readonly KindOption[] {
  const { ask, facts } = specOf(kind);
  return [
    [ask.pod !== "none", new Option("--pod <file>", POD[ask.pod])],
    [
      ask.schema !== null,
      new Option("--ask <file>", "the whole ask as the API takes it, in the place of the other options of this group"),
    ],
    [
      facts !== null,
      new Option(
        "--facts <file>",
        "the answer of the last pass (-o json), or its `next`; without it this is the first",
      ),
    ],
    [
      asksFor(kind, "operation"),
      new Option("--operation <operation>", "what for (default: garbage-collect)").choices(GC_OPERATIONS),
    ],
    [
      asksFor(kind, "to"),
      new Option(
        "--to <amounts>",
        "the requests that its container is to have, such as cpu=2,memory=1Gi; limits keep their ratio",
      ).argParser((amounts: string, before?: string) => (before === undefined ? amounts : `${before},${amounts}`)),
    ],
    [asksFor(kind, "container"), new Option("--container <name>", "only this one of the pod")],
    ...probesOptions().map((option) => [asksFor(kind, "outcomes"), option] as const),
  ];
}

function whatIfOptions(kind: Kind): readonly KindOption[] {
  const { policy, managers } = traitsOf(kind);
  const isConfigured = HELP[kind].parts.includes("config");
  const ofPolicy = `${policy?.field} (${policy?.values.join(", ")})`;
  return [
    [isConfigured, setOption()],
    [
      isConfigured,
      new Option(
        "--patch <file>",
        "fields to change of the configuration (a JSON merge patch, as JSON or YAML); null takes one away",
      ),
    ],
    [policy !== null, new Option("--policy <policy>", ofPolicy)],
    [managers !== "none", new Option("--scope <scope>", "topologyManagerScope").choices(["container", "pod"])],
    [
      true,
      kubeletOption(
        "as which kubelet to answer where the node tells no version (default: the newest); with --set or --patch: another than the node's own",
      ),
    ],
  ];
}

const answerOptions = (kind: Kind): readonly KindOption[] => [
  [true, outputOption(["table", "json", "yaml", ...(kind === "allocatable" ? ["karpenter"] : [])])],
  [
    true,
    new Option("--explain <detail>", "why each value is what it is (default: off in tables, else reasons)").choices(
      EXPLAIN,
    ),
  ],
];

const POD = {
  none: "the pod that is asked about",
  object:
    "the pod that is asked about: a file with one Pod, NAMESPACE/NAME of one of the snapshot, or one of the cluster, whose node is taken then",
  name: "the pod that is asked about: NAMESPACE/NAME of one of the snapshot",
} as const;

const probesOptions = (): readonly Option[] => [
  new Option("--outcomes <list>", "what attempts are answered, such as ok,ok,fail*3, or @FILE; the last repeats"),
  new Option("--startup <list>", "the same of startup probes alone"),
  new Option("--liveness <list>", "of liveness probes alone"),
  new Option("--readiness <list>", "of readiness probes alone"),
  new Option("--seconds <number>", "how long the dry run is (default: 120)"),
  new Option("--strict", "the documented behaviour in the place of the kubelet's quirks"),
  new Option("--stop-seconds <number>", "how long a container takes to end (default: 0)"),
  new Option("--no-back-off", "restart at once, without CrashLoopBackOff"),
  new Option("--kubelet-restart <seconds>", "when the kubelet itself restarts"),
  new Option("--jitter <share>", "of its period that each probe waits after that restart, 0 to 1 (default: 0)"),
];
