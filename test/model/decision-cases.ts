import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { parse } from "yaml";
import type { Done } from "../../api/model/container-gc.ts";
import type { Kind } from "../../api/model/decision.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { storyStep } from "../cli/story.ts";
import { ADMISSION_SUITES } from "../conformance/admission-suites.ts";
import { CGROUP_TREE_SUITES } from "../conformance/cgroup-tree-suites.ts";
import { CONTAINER_GC_SUITES } from "../conformance/container-gc-suites.ts";
import { IMAGE_GC_SUITES } from "../conformance/image-gc-suites.ts";
import { readNodeStatus } from "../conformance/node-status.ts";
import { RESIZE_SUITES } from "../conformance/resize-suites.ts";
import { readCases } from "../conformance/run.ts";
import type { Suite } from "../conformance/suite.ts";
import { realCases } from "../decide/admission/real-cases.ts";
import { node } from "../kit/nodes.ts";
import { realLists } from "../kit/real-node.ts";
import type { Json } from "../kit/snapshots.ts";
import { randomNode } from "../properties/random-node.ts";

/** A request to a kind, as it is posted. */
export interface Case {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask?: unknown;
  /** The case gets the facts that the previous case returned. */
  readonly goesOn?: boolean;
}

const at = (path: string): URL => new URL(`../${path}`, import.meta.url);
const json = (path: string): Json => JSON.parse(readFileSync(at(path), "utf8"));
const yaml = (path: string): Json => parse(readFileSync(at(path), "utf8"));
const iso = (ms: number): string => new Date(ms).toISOString();
// biome-ignore lint/suspicious/noExplicitAny: the vectors and the captured data have a different form for each kind
type Loose = any;
const lines = (path: string): Loose[] => {
  const text = gunzipSync(readFileSync(at(path))).toString("utf8");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
};
const vectors = (suite: string, release = "1.36.3"): Loose[] =>
  readCases(at(`vectors/${release}/${suite}.jsonl.gz`).pathname).map((one) => one.in);
/** The part of a vector that a suite reads, as JSON. */
const read = (suites: Readonly<Record<string, Suite>>, name: string, input: unknown): Loose =>
  JSON.parse(JSON.stringify(suites[name]?.read(input, v1_36)));

const MANAGERS = ["cpus", "memory", "topology", "devices"] as const;
const OF_PODS = [...MANAGERS, "admission", "preemption"] as const;
/** The same request to several kinds. */
export const each = (kinds: readonly Kind[], snapshot: unknown, ask?: unknown): Case[] =>
  kinds.map((kind) => ({ kind, snapshot, ask }));

const plugins = () => ({
  devices: yaml("cli/manifests/devices.yaml"),
  devicePlugins: yaml("cli/manifests/plugins.yaml"),
});
const captured = (): Json => ({
  ...json("data/real-node/snapshot.json"),
  ...plugins(),
  runtime: realLists(),
});

/** The captured node, in both cgroup versions and some configurations, and pods to admit. */
function* capturedNode(): Generator<Case> {
  const whole = captured();
  const configuration = whole["kubeletConfiguration"] as Json;
  const files = readdirSync(at("data/pods")).map((name) => yaml(`data/pods/${name}`));
  const trader = { ...yaml("cli/manifests/trader.yaml"), metadata: { name: "trader" } };
  const pods = [...files.filter((one) => one["kind"] === "Pod"), trader, yaml("cli/manifests/training.yaml")];
  for (const version of [1, 2]) {
    for (const change of [{}, { maxPods: 10, topologyManagerScope: "pod", cpuManagerPolicy: "none" }]) {
      const kubeletConfiguration = { ...configuration, ...change };
      const snapshot = { ...whole, cgroup: { version }, kubeletConfiguration };
      yield* each(["allocatable", "cgroups", "eviction", "image-gc", "container-gc", ...MANAGERS], snapshot);
      for (const pod of [...pods, "default/guar-int", "default/besteffort"]) yield* each(OF_PODS, snapshot, { pod });
    }
  }
  yield* each(OF_PODS, { ...whole, kubeletConfiguration: {}, assignments: {} }, { pod: trader });
}

/** Random nodes, and pods of other random nodes to admit. */
function* randomNodes(): Generator<Case> {
  const machine = json("data/real-node/machine.json");
  for (let seed = 1; seed <= 30; seed++) {
    yield* each(["allocatable", "cgroups"], randomNode(seed));
    const snapshot = { ...randomNode(seed), machine };
    const [pod] = (randomNode(seed + 1000)["pods"] as Json[] | undefined) ?? [];
    if (pod !== undefined) yield* each(["cpus", "memory", "devices", "admission", "preemption"], snapshot, { pod });
  }
}

function* admissions(): Generator<Case> {
  for (const name of ["admission", "x-admission-status"]) {
    for (const input of vectors(name)) {
      const { snapshot, pod } = read(ADMISSION_SUITES, "admission", input);
      yield { kind: name === "admission" ? "preemption" : "admission", snapshot, ask: { pod } };
    }
  }
  for (const { pod, pods, failureReasons } of vectors("preemption")) {
    const reported = failureReasons.map(({ resource: resourceName, predicate: predicateName, ...amounts }: Json) =>
      predicateName === undefined ? { resourceName, ...amounts } : { predicateName },
    );
    yield { kind: "preemption", snapshot: { pods }, ask: { pod, failureReasons: reported } };
  }
  for (const { snapshot, applied } of (["real-admission", "real-preemption"] as const).flatMap(realCases))
    yield* each(["admission", "preemption"], snapshot, { pod: applied });
}

/** Resizes that the kubelet's own functions answered, and those of the captured node. */
function* resizes(): Generator<Case> {
  for (const input of vectors("resize").slice(0, 80)) {
    const { snapshot, pushed: pods } = read(RESIZE_SUITES, "resize", input);
    yield* [{ pods }, { pod: pods[0] }].map((ask): Case => ({ kind: "resize", snapshot, ask }));
  }
  for (const input of vectors("resize-actuation").slice(0, 40))
    yield { kind: "resize", snapshot: read(RESIZE_SUITES, "resize-actuation", input) };
  const elsewhere = { metadata: { name: "e", uid: "e" }, spec: { nodeName: "other", containers: [{ name: "c" }] } };
  const { snapshot } = read(RESIZE_SUITES, "resize", vectors("resize")[0]);
  yield { kind: "resize", snapshot: { ...snapshot, pods: [...snapshot.pods, elsewhere] } };
}

/** Machines of the managers' vectors, each with a request for the first pods. */
function* machines(): Generator<Case> {
  const observedAt = "2026-01-31T12:00:00Z";
  for (const { topology: cpus, reservedSystemCPUs = "0", policyOptions: cpuManagerPolicyOptions, ops } of vectors(
    "cpu-manager",
  )) {
    const kubeletConfiguration = {
      cpuManagerPolicy: "static",
      cpuManagerPolicyOptions,
      reservedSystemCPUs,
      topologyManagerPolicy: ["best-effort", "restricted", "single-numa-node"][cpus.length % 3],
      featureGates: { CPUManagerPolicyAlphaOptions: true },
    };
    const capacity = { cpu: `${cpus.length}`, memory: "64Gi" };
    const snapshot = { observedAt, node: node({ capacity }), machine: { cpus }, kubeletConfiguration };
    for (const { pod } of ops.slice(0, 1)) if (pod !== undefined) yield* each(["cpus"], snapshot, { pod });
  }
  for (const { numaNodes, ops } of vectors("memory-manager")) {
    const sum = (total: number, { systemReservedBytes }: Loose): number => total + systemReservedBytes;
    const machine = {
      cpus: numaNodes.flatMap(({ id }: Loose) =>
        [0, 1].map((i) => ({ cpu: 2 * id + i, core: id, socket: 0, numa: id })),
      ),
      numaNodes: numaNodes.map(({ id, memoryBytes, hugepages2Mi }: Loose) => ({
        id,
        memoryBytes,
        hugepages: { "2Mi": hugepages2Mi },
      })),
    };
    const kubeletConfiguration = {
      memoryManagerPolicy: "Static",
      reservedMemory: numaNodes.map(({ id, systemReservedBytes }: Loose) => ({
        numaNode: id,
        limits: { memory: `${systemReservedBytes}` },
      })),
      kubeReserved: { memory: `${numaNodes.reduce(sum, 0)}` },
      evictionHard: {},
      topologyManagerPolicy: "best-effort",
    };
    for (const { pod } of ops.slice(0, 1))
      if (pod !== undefined)
        yield* each(["memory", "topology"], { observedAt, machine, kubeletConfiguration }, { pod });
  }
}

/** The captured device plugins, and the example's plugins at some moments. */
function* deviceStory(): Generator<Case> {
  const { cpus } = json("data/real-node/snapshot.json")["machine"] as Json;
  const snapshot = { machine: { cpus }, observedAt: "2026-11-21T06:42:00Z", ...plugins() };
  yield { kind: "devices", snapshot, ask: { pod: yaml("cli/manifests/training.yaml") } };
  for (const name of ["01-registered", "02-first-of-two", "09-fuse-two", "12-plugin-stopped"]) {
    yield* each(["devices"], storyStep(name));
    for (const observedAt of ["2026-11-21T06:42:00Z", "2026-11-21T07:40:00Z"])
      yield { kind: "devices", snapshot: { ...storyStep(name), ...plugins(), observedAt } };
  }
}

/** Passes that the kubelet's own eviction manager answered. */
function* evictions(): Generator<Case> {
  for (const run of lines("data/kubelet-eviction/passes.jsonl.gz")) {
    const { layout: fileSystems, kubeletConfiguration, summaries, passes } = run;
    const statsOf = (i: number) => ({ node: { ...summaries[i].node, fileSystems }, pods: summaries[i].pods });
    for (const [i, pass] of passes.entries()) {
      const pods = run.pods.filter((one: Loose) => pass.pods.includes(one.metadata.uid));
      const snapshot = { observedAt: iso(pass.nowMs), kubeletConfiguration, pods, stats: statsOf(pass.summary) };
      yield { kind: "eviction", snapshot, ask: { statsAfterReclaim: statsOf(pass.after) }, goesOn: i > 0 };
    }
  }
  for (const name of ["memory", "disk"]) {
    const { kubeletConfiguration, pods, passes } = json(`data/real-eviction/${name}.json`) as Loose;
    for (const [i, { at: observedAt, node, pods: ofPods }] of passes.entries()) {
      const snapshot = { observedAt, kubeletConfiguration, pods, stats: { node, pods: ofPods } };
      yield { kind: "eviction", snapshot, goesOn: i > 0 };
    }
  }
}

/** Some removals succeed, some fail, and the pass stops at some. */
const ends = (all: readonly { readonly id: string }[]): Done[] =>
  all.map(({ id }, i) => {
    if (i % 4 === 1) return { id, end: "failed", message: "no" };
    return i % 4 === 3 ? { id, end: "stopped" } : { id, end: "removed" };
  });

function* collections(): Generator<Case> {
  for (const input of vectors("container-gc")) {
    const { snapshot, ask } = read(CONTAINER_GC_SUITES, "container-gc", input);
    yield { kind: "container-gc", snapshot, ask };
    yield { kind: "container-gc", snapshot, ask: { ...ask, done: ends(input.containers).slice(0, 6) } };
  }
  for (const input of vectors("image-gc")) {
    for (const [i, { snapshot, operation }] of read(IMAGE_GC_SUITES, "image-gc", input).entries()) {
      yield { kind: "image-gc", snapshot, ask: { operation } };
      yield { kind: "image-gc", snapshot, ask: { operation, done: ends(input.steps[i].images) }, goesOn: i > 0 };
    }
  }
}

/** The pods of the DRA manager's vectors when they are first admitted, on a node with the drivers' answers. */
function* claimNodes(): Generator<Case> {
  for (const { claims, drivers, state, ops, gates } of vectors("claims", "1.37.2")) {
    const [first] = ops.filter(({ op }: Loose) => op === "prepare");
    if (first === undefined) continue;
    const answersOf = (driver: string): Loose[] =>
      Object.entries(first.answers?.[driver]?.claims ?? {}).map(([claim, { error, devices = [] }]: Loose) => ({
        claim,
        error,
        devices: devices.map(({ requests: requestNames, pool: poolName, device: deviceName, cdi, share }: Loose) => ({
          ...{ requestNames, poolName, deviceName, shareId: share, cdiDeviceIds: cdi },
        })),
      }));
    const registered = Object.entries<string[]>(drivers ?? {});
    const dra = {
      resourceClaims: claims ?? [],
      drivers: registered.map(([name, services]) => ({ name, services, answers: answersOf(name) })),
    };
    const kubeletConfiguration = { featureGates: gates ?? {} };
    const snapshot = { pods: [first.pod], dra, kubeletConfiguration, assignments: { dra_manager_state: state } };
    yield* each(["claims"], snapshot, { pod: first.pod });
    yield* each(["claims"], snapshot);
  }
}

/** Every request in the vectors and the captured data, and random nodes. */
export function* recordedCases(): Generator<Case> {
  for (const input of vectors("node-status"))
    yield { kind: "allocatable", snapshot: JSON.parse(JSON.stringify(readNodeStatus(input))) };
  for (const input of vectors("x-v2-tree"))
    yield { kind: "cgroups", snapshot: read(CGROUP_TREE_SUITES, "x-v2-tree", input) };
  for (const some of [capturedNode, randomNodes, admissions, resizes, machines, deviceStory, claimNodes]) yield* some();
  for (const some of [evictions, collections]) yield* some();
}
