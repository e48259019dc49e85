import type { Kind } from "../model/decision.ts";
import type { PartOption } from "./inputs/parts.ts";

/** A node with one pod, whose documents every kind's example builds on. */
export const SNAPSHOT = {
  observedAt: "2026-01-31T12:00:00Z",
  bootId: "0b1f6a3e-52c9-4a77-9d7a-2f6d1c0e4b8a",
  sequence: 1,
  node: {
    metadata: { name: "n1" },
    status: { capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" } },
  },
  kubeletConfiguration: {
    kubeReserved: { cpu: "100m", memory: "256Mi" },
    evictionHard: { "memory.available": "100Mi" },
  },
  pods: [
    {
      metadata: { name: "web", namespace: "default", uid: "7f0c1f6e-1d50-4a51-9ad7-36a1c2b0a9d4" },
      spec: {
        containers: [
          { name: "app", resources: { requests: { cpu: "250m", memory: "64Mi" }, limits: { memory: "128Mi" } } },
        ],
      },
    },
  ],
  cgroup: { version: 2, driver: "systemd" },
} as const;

/** Eight CPUs on two NUMA nodes, two threads per core. */
const MACHINE = {
  cpus: Array.from({ length: 8 }, (_, cpu) => ({ cpu, core: cpu % 4, socket: 0, numa: cpu % 4 < 2 ? 0 : 1 })),
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * 1024 ** 3 })),
};
const STATIC = {
  ...SNAPSHOT,
  kubeletConfiguration: {
    ...SNAPSHOT.kubeletConfiguration,
    cpuManagerPolicy: "static",
    topologyManagerPolicy: "single-numa-node",
  },
  machine: MACHINE,
};
const POD = {
  metadata: { name: "trader", namespace: "default" },
  spec: {
    containers: [
      {
        name: "app",
        resources: { requests: { cpu: "2", memory: "1Gi" }, limits: { cpu: "2", memory: "1Gi" } },
        livenessProbe: { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 5 },
      },
    ],
  },
};
const CRITICAL = { ...POD, spec: { ...POD.spec, priority: 2_000_001_000 } };
const TIME = SNAPSHOT.observedAt;
const [{ metadata: WEB }] = SNAPSHOT.pods;
const memory = (availableBytes: number, workingSetBytes: number) => ({ time: TIME, availableBytes, workingSetBytes });
const UNDER_PRESSURE = {
  ...SNAPSHOT,
  stats: {
    node: { nodeName: "n1", memory: memory(50_000_000, 8_500_000_000) },
    pods: [{ podRef: WEB, memory: { time: TIME, workingSetBytes: 400_000_000 }, containers: [] }],
  },
};
const IMAGES = {
  ...SNAPSHOT,
  stats: { node: { runtime: { imageFs: { time: TIME, capacityBytes: 100e9, availableBytes: 5e9 } } } },
  runtime: {
    images: [{ id: "sha256:aaaa", repoTags: ["registry.example/web:1"], size: "8000000000" }],
    containers: [],
    sandboxes: [],
  },
};

/** Two exited attempts of one container, from an hour and half an hour ago. */
const exited = [60, 30].map((minutes, attempt) => ({
  id: `web-${attempt}`,
  podSandboxId: "web",
  metadata: { name: "app", attempt },
  state: "CONTAINER_EXITED",
  createdAt: `${Date.parse(TIME) - minutes * 60_000}000000`,
  labels: {
    "io.kubernetes.pod.name": WEB.name,
    "io.kubernetes.pod.namespace": WEB.namespace,
    "io.kubernetes.pod.uid": WEB.uid,
    "io.kubernetes.container.name": "app",
  },
}));

/** A GPU allocated to the pod `trader`, whose driver is registered. */
const DRA = {
  resourceClaims: [
    {
      metadata: { name: "gpu", namespace: "default", uid: "5d0e2c9f-claim" },
      status: {
        allocation: {
          devices: { results: [{ request: "gpu", driver: "gpu.example.com", pool: "n1", device: "gpu-0" }] },
        },
        reservedFor: [{ resource: "pods", name: "trader", uid: "trader-uid" }],
      },
    },
  ],
  drivers: [{ name: "gpu.example.com", services: ["v1.DRAPlugin"] }],
};

const STATE_FILES = ["cpu-manager-state", "memory-manager-state"] as const;
const RUNTIME_PARTS = ["images", "containers", "sandboxes", "imagefs"] as const;
const MANAGER_PARTS = [
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

const CLAIM_PARTS = [
  "resource-claims",
  "resource-slices",
  "device-classes",
  "dra-drivers",
  "dra-state",
  "dra-health",
] as const;

/** The parts of a node that a kind reads, with its commands and request body. */
interface KindExamples {
  /** The parts of a snapshot that the decision depends on, by their options. */
  readonly parts: readonly PartOption[];
  /**
   * What the command line accepts for this kind and not for all: `--capacity` with resources of a node, `--cgroup-driver`, and `-o
   * karpenter`, which prints a node's capacity and overhead.
   */
  readonly takes: readonly ("node-capacity" | "cgroup-driver" | "karpenter")[];
  readonly commands: readonly [string, string, ...string[]];
  /** The body of a request, small but complete: a test posts it as it is. */
  readonly body: { readonly snapshot?: object; readonly ask?: object };
}

export const KIND_EXAMPLES: Readonly<Record<Kind, KindExamples>> = {
  allocatable: {
    parts: ["node", "config", "stats", "machine", "device-checkpoint", "devices", "device-plugins"],
    takes: ["node-capacity", "karpenter"],
    commands: [
      "nodewise decide allocatable --node node.json --config configz.json --stats summary.json",
      "nodewise decide allocatable --capacity cpu=4,memory=16Gi,pods=110 --set kubeReserved.memory=1Gi",
    ],
    body: { snapshot: SNAPSHOT },
  },
  cgroups: {
    parts: ["node", "pods", "config", "stats", "machine", ...STATE_FILES, "allocated-pods"],
    takes: ["cgroup-driver"],
    commands: [
      "nodewise decide cgroups --node node.json --pods pods.json --config configz.json --cgroup-version 2",
      "nodewise decide cgroups --snapshot snapshot.json --set memoryThrottlingFactor=0.8 --explain full",
    ],
    body: { snapshot: SNAPSHOT },
  },
  cpus: {
    parts: MANAGER_PARTS,
    takes: [],
    commands: [
      "nodewise decide cpus --snapshot snapshot.json --pod pod.yaml",
      "nodewise decide cpus --machine xeon-2s --policy static --pod pod.yaml",
    ],
    body: { snapshot: STATIC, ask: { pod: POD } },
  },
  memory: {
    parts: MANAGER_PARTS,
    takes: [],
    commands: [
      "nodewise decide memory --snapshot snapshot.json --pod pod.yaml",
      "nodewise decide memory --machine xeon-2s --policy Static --pod pod.yaml",
    ],
    body: { snapshot: STATIC, ask: { pod: POD } },
  },
  topology: {
    parts: MANAGER_PARTS,
    takes: [],
    commands: [
      "nodewise decide topology --machine epyc-2s-nps4 --policy restricted --pod pod.yaml",
      "nodewise decide topology --snapshot snapshot.json --policy single-numa-node --scope pod --pod pod.yaml",
    ],
    body: { snapshot: STATIC, ask: { pod: POD } },
  },
  devices: {
    parts: MANAGER_PARTS,
    takes: [],
    commands: [
      "nodewise decide devices --snapshot snapshot.json --devices devices.yaml --pod pod.yaml",
      "nodewise decide devices --node node.json --pods pods.json --device-checkpoint kubelet_internal_checkpoint",
    ],
    body: {
      snapshot: {
        ...STATIC,
        devices: [{ resource: "example.com/gpu", id: "gpu-0", health: "Healthy", numaNodes: [0] }],
      },
      ask: { pod: withDevice() },
    },
  },
  claims: {
    parts: ["node", "pods", "config", ...CLAIM_PARTS, "devices", "device-plugins"],
    takes: [],
    commands: [
      "nodewise decide claims --pod shop/train-0 --pods pods.json --resource-claims claims.json --dra-drivers drivers.yaml",
      "nodewise decide claims --node node.json --pods pods.json --dra-state dra_manager_state --resource-slices slices.json",
    ],
    body: { snapshot: { ...SNAPSHOT, dra: DRA }, ask: { pod: withClaim() } },
  },
  admission: {
    parts: MANAGER_PARTS,
    takes: [],
    commands: [
      "nodewise decide admission --pod pod.yaml --node node.json --pods pods.json",
      "nodewise decide admission --context prod -n shop --pod web-0 --node worker-2",
    ],
    body: { snapshot: { ...SNAPSHOT, node: allocatable() }, ask: { pod: POD } },
  },
  preemption: {
    parts: ["node", "pods", "allocated-pods"],
    takes: [],
    commands: [
      "nodewise decide preemption --pod critical.yaml --node node.json --pods pods.json --explain reasons",
      "nodewise decide preemption --context prod -n kube-system --pod dns-7 --node worker-2",
    ],
    body: { snapshot: { ...SNAPSHOT, node: allocatable() }, ask: { pod: CRITICAL } },
  },
  resize: {
    parts: [...MANAGER_PARTS, "stats"],
    takes: [],
    commands: [
      "nodewise decide resize --context prod --node worker-2 --pod shop/web-0 --to cpu=2,memory=1Gi",
      "nodewise decide resize --snapshot snapshot.json # the resizes that wait",
      "nodewise decide resize --context prod -n shop -l app=web --to cpu=2,memory=1Gi # on every node",
      'echo \'{"pods": ["shop/a", "shop/b"], "to": {"cpu": "2"}}\' | nodewise decide resize --snapshot snapshot.json --ask -',
      "kubectl get vpa web -n shop -o json | jq '{pod: \"shop/web-0\", recommendation: .status.recommendation}' | nodewise decide resize --context prod --node worker-2 --ask -",
    ],
    body: {
      snapshot: { ...SNAPSHOT, node: allocatable() },
      ask: { pod: `${WEB.namespace}/${WEB.name}`, to: { cpu: "1", memory: "1Gi" } },
    },
  },
  eviction: {
    parts: ["node", "pods", "config", "stats", ...RUNTIME_PARTS],
    takes: [],
    commands: [
      "nodewise decide eviction --context prod --node worker-1",
      "nodewise decide eviction --pods pods.json --config configz.json --stats summary.json --facts last-answer.json",
    ],
    body: { snapshot: UNDER_PRESSURE },
  },
  "image-gc": {
    parts: ["node", "pods", "config", "stats", ...RUNTIME_PARTS],
    takes: [],
    commands: [
      "nodewise decide image-gc --images images.json --containers containers.json --capacity 252Gi --available 40Gi",
      "crictl images -o json | nodewise decide image-gc --images - --snapshot snapshot.json --set imageGCHighThresholdPercent=70",
    ],
    body: { snapshot: IMAGES },
  },
  "container-gc": {
    parts: ["node", "pods", "containers", "sandboxes"],
    takes: [],
    commands: [
      "nodewise decide container-gc --containers containers.json --sandboxes sandboxes.json --pods pods.json",
      "nodewise decide container-gc --snapshot snapshot.json --operation delete-unused",
    ],
    body: { snapshot: { ...IMAGES, runtime: { ...IMAGES.runtime, containers: exited } } },
  },
  probes: {
    parts: ["node", "pods", "config"],
    takes: [],
    commands: [
      "nodewise decide probes --pod pod.yaml --startup 'fail*20,ok' --readiness 'ok*5,timeout*3,ok' --seconds 300",
      "nodewise probes outcomes --pod shop/web-0 | nodewise decide probes --pod web.yaml --outcomes @- --strict",
    ],
    body: { snapshot: SNAPSHOT, ask: { pod: POD, outcomes: { liveness: ["ok", "fail*3", "ok"] }, seconds: 60 } },
  },
  "probe-guard": {
    parts: [],
    takes: [],
    commands: [
      "nodewise decide probe-guard --ask ask.json --explain reasons",
      "nodewise probes history -o json | jq '[.entries[] | select(.ask)][0].ask' | nodewise decide probe-guard --ask -",
    ],
    body: {
      snapshot: SNAPSHOT,
      ask: {
        guard: { windowSeconds: 30, least: { groups: 2 }, holdSeconds: 120 },
        groups: 2,
        failed: ["a", "b"].map((name) => ({ containerId: name, container: `default/${name}/app`, group: name })),
      },
    },
  },
};

/** Whether the command line accepts an option or output for the kind. */
export const takes = (kind: Kind, what: KindExamples["takes"][number]): boolean =>
  KIND_EXAMPLES[kind].takes.includes(what);

function withDevice(): object {
  const [container] = POD.spec.containers;
  const resources = { limits: { ...container?.resources.limits, "example.com/gpu": "1" } };
  return { ...POD, spec: { containers: [{ ...container, resources }] } };
}

function withClaim(): object {
  const [container] = POD.spec.containers;
  const resources = { ...container?.resources, claims: [{ name: "gpu" }] };
  return {
    metadata: { ...POD.metadata, uid: "trader-uid" },
    spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }], containers: [{ ...container, resources }] },
  };
}

function allocatable(): object {
  const { metadata, status } = SNAPSHOT.node;
  return { metadata, status: { ...status, allocatable: status.capacity } };
}
