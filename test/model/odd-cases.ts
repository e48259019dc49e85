import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { parse } from "yaml";
import { writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { boundPod, CRITICAL, readyNode } from "../decide/admission/admission-kit.ts";
import * as gc from "../decide/container-gc/container-gc-kit.ts";
import * as pass from "../decide/eviction/eviction-kit.ts";
import * as images from "../decide/image-gc/image-gc-kit.ts";
import { HTTP, probedPod } from "../decide/probes/probes-kit.ts";
import * as dra from "../kit/claims.ts";
import { container, running } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import * as pod from "../kit/pods.ts";
import { type Json, snapshot } from "../kit/snapshots.ts";
import { type Case, each } from "./decision-cases.ts";

const yaml = (path: string): Json => parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
/** A time after which the node's clock was set ahead. */
const LATER = images.iso(images.START + 10_000);

const NODE = node({
  capacity: { cpu: "4", memory: "8Gi" },
  allocatable: { cpu: "4", memory: "8Gi", pods: "9" },
});

/**
 * Claims that are unprepared or kept, devices that the scheduler should not have allocated, and resources of claims and
 * of plugins.
 */
function* claims(): Generator<Case> {
  const gpus = { "example.com/gpu": "1" };
  const extended = pod.pod("x", {
    spec: { containers: [container("c", gpus)] },
    status: {
      extendedResourceClaimStatus: {
        resourceClaimName: "made",
        requestMappings: [{ containerName: "c", resourceName: "example.com/gpu", requestName: "r" }],
      },
    },
  });
  const entry = (name: string, pods: readonly string[]): string =>
    `{"ClaimUID":"claim-${name}","ClaimName":"${name}","Namespace":"default","PodUIDs":{${pods.map((one) => `"uid-${one}":{}`).join(",")}},"DriverState":{"${dra.DRIVER}":{"Devices":[{"PoolName":"n1","DeviceName":"${name}","RequestNames":null,"CDIDeviceIDs":["example.com/gpu=${name}"]}]}}}`;
  const cache = ["a", "b"].map((name) => entry(name, name === "a" ? ["p", "gone"] : ["ended"]));
  const devices = [dra.result("a"), dra.result("none"), { ...dra.result("a"), driver: "other.example.com" }];
  const base = {
    observedAt: "2026-01-31T12:00:00Z",
    node: node({ capacity: { cpu: "4" } }),
    pods: [dra.claiming("p", ["a"]), { ...dra.claiming("ended", ["b"]), status: { phase: "Succeeded" } }, extended],
    assignments: { dra_manager_state: stateFileOf(cache) },
  };
  const parts = {
    resourceClaims: [dra.claim("a", devices, ["p"]), dra.claim("made", [dra.result("m")], ["x"])],
    resourceSlices: [dra.slice([{ name: "a", taints: [{ key: "hot", effect: "NoExecute" }] }])],
    drivers: [{ name: dra.DRIVER }],
  };
  const shared = dra.claim("s", [dra.result("a")], ["p", "q"]);
  const plugin = { devices: [{ resource: "example.com/gpu", id: "gpu-0" }] };
  const off = { kubeletConfiguration: { featureGates: { DRAExtendedResource: false } } };
  const without = { kubeletConfiguration: { featureGates: { DynamicResourceAllocation: false } } };
  const older = { ...base, node: { ...base.node, status: { nodeInfo: { kubeletVersion: "v1.34.4" } } } };
  const on = { kubeletConfiguration: { featureGates: { DRAExtendedResource: true } } };
  const listing = { ...off, node: node({ capacity: { cpu: "4", "example.com/gpu": "2" } }) };
  for (const snapshot of [
    { ...base, dra: parts },
    { ...base, dra: { ...parts, drivers: undefined } },
    { ...older, ...off, ...plugin, dra: parts },
    { ...older, ...on, ...plugin, dra: parts },
    { ...older, ...off, dra: parts },
    { ...base, ...off, dra: parts },
    { ...base, ...listing, dra: parts },
    { ...base, ...listing, devices: [], dra: parts },
    { ...older, ...without, dra: parts },
    { ...base, pods: [...base.pods, boundPod("b", {}, { nodeName: "other" })], dra: parts },
    { ...base, assignments: { dra_manager_state: "{" } },
    { ...base, dra: { ...parts, preparedClaims: [] } },
    { ...base, pods: ["p", "q"].map((name) => dra.claiming(name, ["s"])), dra: { ...parts, resourceClaims: [shared] } },
  ])
    yield* each(["claims"], snapshot);
  const left = dra.result("l", { skipNodeOperations: ["*"] });
  const skipping = { kubeletConfiguration: { featureGates: { DRAOptionalNodeOperations: true } } };
  const dras = { ...parts, resourceClaims: [dra.claim("l", [left], ["l"])] };
  yield* each(["claims"], { ...base, ...skipping, dra: dras }, { pod: dra.claiming("l", ["l"]) });
  const made = { name: "t", resourceClaimTemplateName: "t" };
  const notNeeded = pod.pod("n", {
    spec: { resourceClaims: [made] },
    status: { resourceClaimStatuses: [{ name: "t" }] },
  });
  yield* each(["claims"], { ...base, dra: parts }, { pod: notNeeded });
}
const stateFileOf = (entries: readonly string[]): string => {
  const data = `{"ClaimInfoStateList":[${entries.join(",")}]}`;
  return JSON.stringify({ Data: data, Checksum: crc32(data) });
};

/** Posted pods of another node. */
function* podsOfOthers(): Generator<Case> {
  const cpus = [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
  const snapshot = {
    ...pass.underMemory({}, pass.Gi),
    ...{ node: NODE, kubeletConfiguration: {}, cgroup: { version: 2 }, machine: { cpus } },
    pods: [boundPod("a"), boundPod("b", {}, { nodeName: "other" })],
    runtime: { images: [], containers: [], sandboxes: [], podLogDirectories: [], danglingLogLinks: [] },
  };
  yield* each(["cgroups", "topology", "eviction", "container-gc"], snapshot);
  yield* each(["admission", "preemption"], snapshot, { pod: boundPod("p", { cpu: "1" }) });
  yield { kind: "image-gc", snapshot: { ...snapshot, stats: images.disk(pass.Gi) } };
}

/** A resize, huge pages, devices that only the node's status reports, and CPUs from a claim. */
function* nodes(): Generator<Case> {
  const status = {
    qosClass: "Burstable",
    containerStatuses: [{ ...running("c", "id1"), allocatedResources: { cpu: "1", memory: "1Gi" } }],
  };
  const pods = [pod.podOf([container("c", { cpu: "2", memory: "2Gi", "hugepages-2Mi": "2Mi" })], {}, { status })];
  const lists = { cpu: "4", memory: "8Gi", "hugepages-2Mi": "1Gi", "example.com/gpu": "2" };
  const both = node({ capacity: lists, allocatable: lists });
  yield* each(["cgroups", "allocatable", "resize"], { ...snapshot({ pods }), node: both });
  const assignments = { cpu_manager_state: { policyName: "static", defaultCpuSet: "0", entries: {} } };
  const machine = { cpus: [0, 1].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
  const kubeletConfiguration = { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } };
  yield* each(["resize"], { ...snapshot({ pods }), node: both, assignments, machine, kubeletConfiguration });
  const mapping = [{ name: "cpu", quantity: "1" }];
  const nodeAllocatableResourceClaimStatuses = [{ resourceClaimName: "m", containers: ["c"], mapping }];
  const claiming = pod.podOf([container("c", { cpu: "1" })], {}, { status: { nodeAllocatableResourceClaimStatuses } });
  const newest = node({ capacity: lists, allocatable: lists, nodeInfo: { kubeletVersion: "v1.37.2" } });
  const allocating = { featureGates: { DRANodeAllocatableResources: true } };
  const given = { ...snapshot({ pods: [claiming] }), node: newest, kubeletConfiguration: allocating };
  yield* each(["cgroups"], given);
  yield* each(["admission", "preemption"], given, { pod: claiming });
}

function* admissions(): Generator<Case> {
  const full = [boundPod("a", { cpu: "2" }), boundPod("b", { cpu: "2" })];
  const late = readyNode({ pods: full, kubelet: { shuttingDown: true } });
  yield* each(["admission", "preemption"], late, { pod: boundPod("p", { cpu: "1" }, CRITICAL) });
  yield* each(["admission", "preemption"], late, {
    pod: boundPod("p", { cpu: "1" }, {}, { status: { phase: "Failed" } }),
  });
  const sysctls = [{ name: "net.ipv4.tcp_rmem" }];
  yield {
    kind: "admission",
    snapshot: readyNode({ pods: [] }),
    ask: { pod: boundPod("p", {}, { securityContext: { sysctls } }) },
  };
  yield { kind: "admission", snapshot: readyNode({ pods: full }), ask: { pod: "default/a" } };
  const assignments = { allocated_pods_state: { entries: { "uid-a": {} } } };
  const newest = readyNode({ pods: full, assignments }, { nodeInfo: { kubeletVersion: "v1.37.2" } });
  yield* each(["admission", "preemption"], newest, { pod: boundPod("p", { cpu: "1" }) });
}

/** Sixteen NUMA nodes, and a checkpoint that no plugin matches. */
function* machines(): Generator<Case> {
  const cpus = Array.from({ length: 64 }, (_, cpu) => ({ cpu, core: cpu, socket: 0, numa: cpu >> 2 }));
  const kubeletConfiguration = {
    cpuManagerPolicy: "static",
    topologyManagerPolicy: "best-effort",
    topologyManagerPolicyOptions: { "max-allowable-numa-nodes": "16" },
    kubeReserved: { cpu: "1" },
  };
  yield {
    kind: "topology",
    snapshot: { machine: { cpus }, kubeletConfiguration, pods: [] },
    ask: { pod: pod.guaranteed("p", "2", "1Gi") },
  };
  const entry = { podUid: "u", containerName: "c", resourceName: "example.com/gpu", allocResp: "Cg==" };
  const kubelet_internal_checkpoint = writeCheckpoint({
    entries: [{ ...entry, deviceIds: new Map([[-1, ["a"]]]) }],
    registered: new Map([["example.com/gpu", ["a"]]]),
  });
  const pods = [pod.bestEffort("u")];
  yield { kind: "devices", snapshot: { pods, observedAt: LATER, assignments: { kubelet_internal_checkpoint } } };
}

function* evictions(): Generator<Case> {
  const atMs = pass.START;
  const PODS = [[pod.requesting("a"), pass.podStats("a", pass.Gi)] as const];
  const hard = { evictionHard: { "memory.available": "10%" } };
  yield { kind: "eviction", snapshot: pass.underMemory(hard, pass.Gi / 2, atMs, PODS) };
  // the clock was set, or ran backwards; the stats are old or missing, or contain impossible values
  yield {
    kind: "eviction",
    snapshot: { ...pass.underMemory({}, pass.Gi, atMs), clockSteppedMs: 5000, observedAt: LATER },
    goesOn: true,
  };
  yield { kind: "eviction", snapshot: pass.underMemory({}, pass.Gi, atMs - 60_000), goesOn: true };
  const disk = {
    fs: pass.disk(1000 * pass.Gi, atMs),
    runtime: { imageFs: pass.disk(pass.Gi, atMs) },
    fileSystems: "one",
  };
  const odd = {
    evictionHard: { "nodefs.available": "10%", "containerfs.available": "1%", "imagefs.available": "15%" },
  };
  const runtime = { containers: [], sandboxes: [] };
  for (const nodeFs of [{}, { fs: pass.disk(pass.Gi, atMs - 600_000) }, { fs: pass.disk(pass.Gi, atMs + 600_000) }]) {
    const snapshot = { ...pass.underDisk(odd, { ...disk, ...nodeFs }, PODS), runtime };
    yield { kind: "eviction", snapshot, ask: { pod: "default/a" } };
  }
}

function* containers(): Generator<Case> {
  const { gcContainer, sandbox, READY } = gc;
  const ended = { deletionTimestamp: "2026-01-31T11:00:00Z" };
  const pods = [
    ...["web", "idle"].map((name) => gc.live(name)),
    pod.pod("done", { status: { phase: "Failed" } }),
    pod.pod("going", { status: { phase: "Failed" }, metadata: ended }),
    gc.evictedPod("out"),
  ];
  const runtime = {
    containers: [
      ...["web", "done", "going", "out", "gone"].map((name) => gcContainer(name, name, 9000)),
      gcContainer("torn", "torn", 1, { state: "CONTAINER_RUNNING" }),
      gcContainer("odd", "odd", -9000, { podSandboxId: "nowhere", metadata: { name: "c" } }),
      gcContainer("abcdef123456", "web", 0, { state: "CONTAINER_UNKNOWN" }),
    ],
    sandboxes: [
      ...["web", "done", "torn", "idle"].map((name) => sandbox(`sb-${name}`, name, 100, name === "torn" ? READY : {})),
      ...["web", "done"].map((name) => sandbox(`sb-old-${name}`, name, 3000)),
    ],
    podLogDirectories: ["default_web_uid-web", "default_gone_uid-gone", "odd", "default_torn_uid-torn"],
    danglingLogLinks: ["web_default_c-abcdef123456.log", "gone_default_c-nobody.log"],
  };
  for (const kubelet of [{}, { sourcesReady: false }, { maximumDeadContainersPerContainer: -1 }])
    for (const operation of ["garbage-collect", "delete-unused"])
      yield { kind: "container-gc", snapshot: gc.gcNode(pods, runtime, kubelet), ask: { operation } };
  yield { kind: "container-gc", snapshot: gc.gcNode(pods, runtime), ask: { error: "gone", done: [] } };
}

function* collections(): Generator<Case> {
  const { image, containerFrom, gcNode, disk, Gi } = images;
  const sandboxes = { sandboxImage: "pause:1", sandboxes: [] };
  const mounts = [{ containerPath: "/v", image: { image: "volume:1" } }];
  const all = [
    ...["used", "volume", "pause", "space"].map((id) => image(id, { repoTags: [`${id}:1`] })),
    image("pinned", { pinned: true }),
    image("", { size: undefined }),
    image("twice"),
    image("twice"),
  ];
  const runtime = { ...sandboxes, containers: [containerFrom("used", { mounts }), containerFrom("unknown")] };
  const snapshot = gcNode(all, {}, runtime);
  yield { kind: "image-gc", snapshot };
  yield { kind: "image-gc", snapshot: { ...snapshot, clockSteppedMs: 5000, observedAt: LATER }, goesOn: true };
  yield { kind: "image-gc", snapshot: { ...snapshot, observedAt: images.iso(images.START - 60_000) }, goesOn: true };
  yield { kind: "image-gc", snapshot };
  yield { kind: "image-gc", snapshot: gcNode(all, {}, sandboxes), goesOn: true };
  yield { kind: "image-gc", snapshot: { ...snapshot, kubeletConfiguration: { imageGCHighThresholdPercent: 100 } } };
  yield { kind: "image-gc", snapshot: { ...snapshot, stats: disk(0, 0) } };
  yield { kind: "image-gc", snapshot: { ...snapshot, stats: disk(20 * Gi) }, ask: { operation: "delete-unused" } };
  yield { kind: "image-gc", snapshot, ask: { error: "gone", done: [] } };
  const kata = image("i", { spec: { runtimeHandler: "kata" } });
  const kubeletConfiguration = { featureGates: { RuntimeClassInImageCriApi: true } };
  yield { kind: "image-gc", snapshot: gcNode([kata], { kubeletConfiguration }, { containers: [containerFrom("i")] }) };
}

function* probes(): Generator<Case> {
  const probe = { ...HTTP, periodSeconds: 5, failureThreshold: 2 };
  // ready before, and the success count continues with the next container's first answer
  const both = probedPod({ livenessProbe: probe, readinessProbe: { ...probe, successThreshold: 2 } });
  yield { kind: "probes", snapshot: {}, ask: { pod: both, outcomes: { liveness: "fail", readiness: "ok" } } };
  const pods = [
    yaml("cli/manifests/probed.yaml"),
    probedPod({ livenessProbe: probe }),
    probedPod({ startupProbe: probe, readinessProbe: { ...probe, successThreshold: 2 } }),
  ];
  for (const pod of pods)
    for (const outcomes of ["ok", "fail", "error", "warn", "timeout", "hang", "ok,ok,fail*3,error*9,ok"])
      for (const strict of [false, true])
        for (const kubeletRestartSeconds of [40, null])
          yield {
            kind: "probes",
            snapshot: {},
            ask: { pod, outcomes, strict, seconds: 90, kubeletRestartSeconds, jitter: 0.5, stopSeconds: 3 },
          };
}

/** Containers that fail together or one after another, and later recover, end or continue to fail. */
function* storms(): Generator<Case> {
  const failed = (name: string) => ({ containerId: name, container: `a/${name}/c`, group: `g-${name}` });
  const held = (name: string, heldForMs: number, failedAgoMs = 1000) => ({ ...failed(name), failedAgoMs, heldForMs });
  const asks = [
    { failed: [failed("a")] },
    { failed: ["a", "b", "c"].map(failed) },
    { failed: [failed("a")], known: ["a", "b", "c"].map((name) => held(name, 5000)) },
    { failed: [failed("a")], known: ["a", "b", "c"].map((name) => held(name, 31_000)) },
    { failed: [failed("a")], known: ["a", "b"].map((name) => held(name, 5000, 60_000)) },
    { recovered: ["a"], gone: ["b"], known: ["a", "b", "c"].map((name) => held(name, 5000)) },
  ];
  for (const ask of asks)
    for (const least of [{ groups: 3 }, { share: 0.3 }])
      yield {
        kind: "probe-guard",
        snapshot: {},
        ask: { ...ask, groups: 9, guard: { windowSeconds: 10, least, holdSeconds: 30 } },
      };
}

/** Small nodes and pods that cover what the recorded cases do not. */
export function* oddCases(): Generator<Case> {
  for (const some of [podsOfOthers, claims, nodes, admissions, machines, evictions, containers, collections])
    yield* some();
  for (const some of [probes, storms]) yield* some();
}
