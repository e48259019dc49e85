import type { ContainerRow, DeviceRow, NodeStatus, PodRow, SeenEvent } from "../../actuator/status/node-status.ts";

export const AT = "2026-11-22T12:00:00.000Z";
export const earlier = (seconds: number): string => new Date(Date.parse(AT) - seconds * 1000).toISOString();
const MIB = 2 ** 20;

export const containerRow = (name: string, changes: Partial<ContainerRow> = {}): ContainerRow => ({
  name,
  kind: "container",
  id: `${name}-0123456789abcdef`,
  state: "running",
  reason: "",
  message: "",
  exitCode: null,
  restarts: 0,
  ready: true,
  image: "registry.example/app:1",
  cpuset: null,
  ...changes,
});

export const podRow = (name: string, changes: Partial<PodRow> = {}): PodRow => ({
  namespace: "shop",
  name,
  uid: `uid-${name}`,
  state: "active",
  phase: "Running",
  reason: "",
  message: "",
  qos: "Burstable",
  priority: 0,
  isStatic: false,
  ip: "10.0.0.2",
  seenAt: earlier(600),
  startedAt: earlier(300),
  containers: [containerRow("app")],
  cgroups: [],
  resources: { cpuRequestMilli: 100, cpuLimitMilli: null, memoryRequestBytes: 64 * MIB, memoryLimitBytes: null },
  usage: null,
  refusal: null,
  end: null,
  resize: null,
  ...changes,
});

export const seenEvent = (reason: string, pod: PodRow, changes: Partial<SeenEvent> = {}): SeenEvent => ({
  at: earlier(5),
  firstAt: earlier(5),
  count: 1,
  type: "Normal",
  reason,
  message: `${reason} it`,
  pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
  container: null,
  ...changes,
});

/** Four pods: one active with drift, one failing, one pending, one terminated. */
export const WEB = podRow("web", {
  qos: "Guaranteed",
  containers: [
    containerRow("setup", {
      kind: "init",
      state: "terminated",
      reason: "Completed",
      exitCode: 0,
      ready: true,
      restarts: 7,
    }),
    containerRow("mesh", { kind: "sidecar", cpuset: "0-1" }),
    containerRow("app", { cpuset: "2-3", restarts: 2 }),
  ],
  cgroups: [
    {
      path: "/kubepods/poduid-web",
      files: [
        { file: "cpu.shares", wanted: "1024", actual: "2" },
        { file: "memory.limit_in_bytes", wanted: "268435456", actual: "268435456" },
        { file: "pids.max", wanted: "100", actual: null },
        { file: "cpu.weight", wanted: "17", actual: "4", harmless: "weight_formula" },
      ],
    },
  ],
  resources: { cpuRequestMilli: 500, cpuLimitMilli: 1000, memoryRequestBytes: 256 * MIB, memoryLimitBytes: 256 * MIB },
  usage: {
    cpuMilli: 250,
    memoryWorkingSetBytes: 240 * MIB,
    pids: 12,
    throttledPermille: 312,
    pressure: { cpu: 3.14, memory: 0, io: 12 },
  },
});
export const CRASHING = podRow("crashing", {
  reason: "CrashLoopBackOff",
  message: "back-off 5m0s restarting failed container=app",
  containers: [containerRow("app", { state: "waiting", reason: "CrashLoopBackOff", ready: false, restarts: 9 })],
  usage: { cpuMilli: 900, memoryWorkingSetBytes: 8 * MIB, pids: null, throttledPermille: null, pressure: null },
});
export const WAITING = podRow("batch", {
  namespace: "jobs",
  state: "pending",
  phase: "Pending",
  reason: "OutOfcpu",
  message: "Node didn't have enough resource: cpu",
  startedAt: null,
  containers: [containerRow("job", { state: "waiting", id: null, ready: false })],
  refusal: {
    reason: "OutOfcpu",
    message: "Node didn't have enough resource: cpu",
    sinceMs: Date.parse(earlier(90)),
    tries: 3,
  },
});
export const ENDED = podRow("done", {
  namespace: "jobs",
  state: "terminated",
  phase: "Succeeded",
  containers: [containerRow("job", { state: "terminated", reason: "Completed", exitCode: 0, ready: false })],
});

export const deviceRow = (resource: string, changes: Partial<DeviceRow> = {}): DeviceRow => ({
  resource,
  plugin: "registered",
  endpoint: "/var/lib/kubelet/device-plugins/gpu.sock",
  capacity: 4,
  allocatable: 3,
  allocated: 2,
  flips: 1,
  numa: [
    { node: 0, devices: 2, allocated: 2 },
    { node: 1, devices: 2, allocated: 0 },
  ],
  holders: [
    { pod: "shop/web", uid: "uid-web", container: "app", ids: ["gpu-0", "gpu-1"], numa: [0], isPending: false },
  ],
  pending: 0,
  ...changes,
});

export const nodeStatus = (changes: Partial<NodeStatus> = {}): NodeStatus => ({
  at: AT,
  nodeName: "n1",
  pid: 4711,
  mode: "enforce",
  runtime: { name: "containerd", version: "2.1.4" },
  pass: { sequence: 12, at: earlier(2), cpuMs: 31, tookMs: 48, wrote: 2, drift: 1, decidedBy: "here" },
  pods: [WEB, CRASHING, WAITING, ENDED],
  problems: [],
  refusedManifests: [],
  events: [],
  ...changes,
});
