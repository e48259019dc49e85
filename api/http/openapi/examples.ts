import type { Kind } from "../../model/decision.ts";
import { SNAPSHOT } from "./operation.ts";

/** Eight CPUs on two NUMA nodes, two threads a core. */
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

/** Two ends of one container, an hour and half an hour ago. */
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

/** A GPU that the scheduler gave to the pod `trader`, whose driver has registered. */
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

/** A body for each kind, small and whole: each may be posted as it is, which a test does. */
export const EXAMPLES: { readonly [K in Kind]: { readonly snapshot?: object; readonly ask?: object } } = {
  allocatable: { snapshot: SNAPSHOT },
  cgroups: { snapshot: SNAPSHOT },
  cpus: { snapshot: STATIC, ask: { pod: POD } },
  memory: { snapshot: STATIC, ask: { pod: POD } },
  topology: { snapshot: STATIC, ask: { pod: POD } },
  devices: {
    snapshot: {
      ...STATIC,
      devices: [{ resource: "example.com/gpu", id: "gpu-0", health: "Healthy", numaNodes: [0] }],
    },
    ask: { pod: withDevice() },
  },
  claims: { snapshot: { ...SNAPSHOT, dra: DRA }, ask: { pod: withClaim() } },
  admission: { snapshot: { ...SNAPSHOT, node: allocatable() }, ask: { pod: POD } },
  preemption: { snapshot: { ...SNAPSHOT, node: allocatable() }, ask: { pod: CRITICAL } },
  resize: {
    snapshot: { ...SNAPSHOT, node: allocatable() },
    ask: { pod: `${WEB.namespace}/${WEB.name}`, to: { cpu: "1", memory: "1Gi" } },
  },
  eviction: { snapshot: UNDER_PRESSURE },
  "image-gc": { snapshot: IMAGES },
  "container-gc": { snapshot: { ...IMAGES, runtime: { ...IMAGES.runtime, containers: exited } } },
  probes: { snapshot: SNAPSHOT, ask: { pod: POD, outcomes: { liveness: ["ok", "fail*3", "ok"] }, seconds: 60 } },
  "probe-guard": {
    snapshot: SNAPSHOT,
    ask: {
      guard: { windowSeconds: 30, least: { groups: 2 }, holdSeconds: 120 },
      groups: 2,
      failed: ["a", "b"].map((name) => ({ containerId: name, container: `default/${name}/app`, group: name })),
    },
  },
};

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
