import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SYSTEM_PRIORITY_CLASSES } from "../../api/model/pod.ts";
import disk from "../data/real-eviction/disk.json" with { type: "json" };
import memory from "../data/real-eviction/memory.json" with { type: "json" };
import evictions from "../data/real-why/eviction.json" with { type: "json" };
import type { Json } from "../kit/snapshots.ts";

/**
 * Imported instead of read from files, since these explanations are also tested in workerd, which has no file system.
 */
const EVICTION_RUNS = { memory, disk };

/**
 * A pod that a real kubelet 1.36.3 acted on, as `kubectl get` prints it: documents about the pod, its node, other pods
 * and events.
 */
export interface RealStory {
  readonly name: string;
  /** NAMESPACE/NAME of the explained pod. */
  readonly pod: string;
  readonly documents: readonly unknown[];
}

interface CapturedEvent {
  readonly object?: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
  readonly fieldPath?: string;
}
interface Captured {
  readonly status: Json;
  readonly events: readonly CapturedEvent[];
}

export const data = <T>(path: string): T =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../data", path), "utf8")) as T;

/** A v1.Event about `object` (`Node/n1`, `Pod/web`, `web`), or about `name` if the capture has no object. */
export function v1Event(
  { object, fieldPath, ...event }: CapturedEvent,
  name: string,
  uids: Readonly<Record<string, string>> = {},
): Json {
  const [kind, of] = (object ?? name).includes("/")
    ? ((object ?? name).split("/") as [string, string])
    : ["Pod", object ?? name];
  const { first, last, ...rest } = event;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${of}.${event.reason}`, namespace: "default" },
    involvedObject: {
      kind,
      name: of,
      ...(kind === "Pod" ? { namespace: "default" } : {}),
      ...(uids[of] === undefined ? {} : { uid: uids[of] }),
      ...(fieldPath === undefined ? {} : { fieldPath }),
    },
    ...rest,
    firstTimestamp: first,
    lastTimestamp: last,
    source: { component: "kubelet", host: "n1" },
  };
}
const list = (items: readonly unknown[]): Json => ({
  apiVersion: "v1",
  kind: "List",
  metadata: { resourceVersion: "" },
  items,
});
/** An item of a List with its apiVersion and kind. */
const withKind = (kind: string, object: unknown): Json => ({ apiVersion: "v1", kind, ...(object as Json) });

interface Cases {
  readonly nodes: readonly Json[];
  readonly pods: readonly Json[];
  readonly cases: readonly {
    readonly name: string;
    readonly node: number;
    readonly pods: readonly number[];
    readonly applied: Json;
  }[];
}
const meta = (pod: unknown) => (pod as { metadata: { name: string; uid?: string; namespace?: string } }).metadata;

/**
 * The pod as stored in the API server: with a uid, the priority of its class, its host ports, and the status that the
 * kubelet wrote.
 */
function stored(applied: Json, { uid, ...status }: Json): Json {
  const spec = applied["spec"] as PodSpec;
  const priority = spec.priority ?? SYSTEM_PRIORITY_CLASSES.get(spec.priorityClassName ?? "");
  const containers = spec.hostNetwork === true ? spec.containers.map(onHost) : spec.containers;
  return {
    ...applied,
    metadata: { namespace: "default", ...meta(applied), uid },
    spec: { ...spec, containers, ...(priority === undefined ? {} : { priority }) },
    status,
  };
}
interface PodSpec {
  readonly priority?: number;
  readonly priorityClassName?: string;
  readonly hostNetwork?: boolean;
  readonly containers: readonly { readonly ports?: readonly { readonly containerPort: number }[] }[];
}
const onHost = (container: PodSpec["containers"][number]) => ({
  ...container,
  ports: container.ports?.map((port) => ({ hostPort: port.containerPort, ...port })),
});

export function admissionStories(): readonly RealStory[] {
  const { nodes, pods, cases } = data<Cases>("real-admission/cases.json");
  const captured = data<Readonly<Record<string, Captured>>>("real-why/admission.json");
  return cases.flatMap(({ name, node, pods: indexes, applied }) => {
    const own = captured[name];
    if (own === undefined) return [];
    const pod = stored(applied, own.status);
    const others = indexes.map((i) => withKind("Pod", pods[i]));
    const events = own.events.map((event) => v1Event(event, meta(applied).name));
    return [
      {
        name,
        pod: `default/${meta(applied).name}`,
        documents: [list([...others, withKind("Pod", pod), withKind("Node", nodes[node]), ...events])],
      },
    ];
  });
}

interface CapturedPreemption extends Captured {
  readonly after: Readonly<
    Record<string, { readonly phase: string; readonly conditions?: unknown; readonly containers?: unknown }>
  >;
  readonly victims: readonly string[];
}
export interface RealPreemption extends RealStory {
  readonly victims: readonly string[];
  /** The critical pod's name. */
  readonly by: string;
}

/** One explanation for each victim. */
export function preemptionStories(): readonly RealPreemption[] {
  const { nodes, pods, cases } = data<Cases>("real-preemption/cases.json");
  const captured = data<Readonly<Record<string, CapturedPreemption>>>("real-why/preemption.json");
  return cases.flatMap(({ name, node, pods: indexes, applied }) => {
    const { status, after, victims, events } = captured[name] as CapturedPreemption;
    const others = indexes.map((i) => {
      const pod = pods[i] as Json;
      const then = after[meta(pod).name];
      if (then === undefined) return withKind("Pod", pod);
      const { containers, phase, conditions } = then;
      return withKind("Pod", { ...pod, status: { phase, conditions, containerStatuses: containers } });
    });
    const documents = [
      list([...others, withKind("Pod", stored(applied, status))]),
      nodes[node],
      list(events.map((event) => v1Event(event, ""))),
    ];
    const by = meta(applied).name;
    return victims.map((victim) => ({ name: `${name}: ${victim}`, pod: `default/${victim}`, documents, victims, by }));
  });
}

/** The critical pods themselves, and those that were refused although they are critical. */
export function preemptorStories(): readonly RealStory[] {
  const seen = new Set<string>();
  return [...preemptionStories(), ...refusedCritical()].flatMap((story) => {
    const pod = "by" in story ? `default/${String(story.by)}` : story.pod;
    const name = story.name.replace(/: .*/, "");
    if (seen.has(name)) return [];
    seen.add(name);
    return [{ name, pod, documents: story.documents }];
  });
}
function refusedCritical(): readonly RealStory[] {
  const { nodes, pods, cases } = data<Cases>("real-preemption/cases.json");
  const captured = data<Readonly<Record<string, CapturedPreemption>>>("real-why/preemption.json");
  return cases.flatMap(({ name, node, pods: indexes, applied }) => {
    const { status, victims, events } = captured[name] as CapturedPreemption;
    if (victims.length > 0) return [];
    const others = indexes.map((i) => withKind("Pod", pods[i]));
    const pod = meta(applied).name;
    const documents = [
      list([...others, withKind("Pod", stored(applied, status)), withKind("Node", nodes[node])]),
      ...events.map((event) => v1Event(event, pod)),
    ];
    return [{ name, pod: `default/${pod}`, documents }];
  });
}

interface CapturedProbe extends Captured {
  readonly metadata: Json;
  readonly spec: Json;
}
export function probeStories(): readonly RealStory[] {
  const captured = data<Readonly<Record<string, CapturedProbe>>>("real-why/probes.json");
  return Object.entries(captured).map(([name, { metadata, spec, status, events }]) => {
    const pod = withKind("Pod", stored({ metadata, spec }, { uid: metadata["uid"], ...status }));
    return { name, pod: name, documents: [list([pod, ...events.map((event) => v1Event(event, name))])] };
  });
}

interface Pass {
  readonly at: string;
  readonly node: Json;
  readonly pods: readonly Json[];
  readonly evicted: { readonly pod: string; readonly message: string } | null;
}
interface EvictionRun {
  readonly kubeletConfiguration: Json;
  readonly pods: readonly Json[];
  readonly passes: readonly Pass[];
  readonly admission?: readonly { readonly pod: Json }[];
  readonly readmission?: readonly { readonly pod: Json }[];
}
interface CapturedEviction {
  readonly statuses: Readonly<Record<string, Json>>;
  readonly events: readonly CapturedEvent[];
}
const NODE = (conditions: readonly Json[]): Json => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n1" },
  status: {
    capacity: { cpu: "2", memory: "24684092Ki", pods: "20" },
    allocatable: { cpu: "1800m", memory: "23123516Ki", pods: "20" },
    conditions,
    nodeInfo: { kubeletVersion: "v1.36.3" },
  },
});

/**
 * Every pod of an eviction run; `before`: with the stats of the pass in which the kubelet evicted it, otherwise with
 * later stats.
 */
export function evictionStories(run: "memory" | "disk", before = true): readonly RealStory[] {
  const {
    kubeletConfiguration,
    pods,
    passes,
    admission = [],
    readmission = [],
  } = EVICTION_RUNS[run] as unknown as EvictionRun;
  const { statuses, events } = (evictions as unknown as Readonly<Record<"memory" | "disk", CapturedEviction>>)[run];
  const specs = new Map([...admission, ...readmission].map(({ pod }) => [meta(pod).name, pod]));
  for (const pod of pods) specs.set(meta(pod).name, pod);
  const [type, since] =
    run === "memory" ? ["MemoryPressure", "2026-11-21T06:53:48Z"] : ["DiskPressure", "2026-11-21T06:58:17Z"];
  const is = run === "memory" ? "False" : "True";
  const condition = { type, status: is, lastTransitionTime: since, reason: "Kubelet", message: "" };
  const uids = Object.fromEntries(Object.entries(statuses).map(([name, status]) => [name, String(status["uid"])]));
  const all = Object.entries(statuses).flatMap(([name, status]) => {
    const spec = specs.get(name);
    if (spec === undefined) return [];
    const pod = stored({ ...spec, spec: { nodeName: "n1", ...(spec["spec"] as Json) } }, status);
    return [withKind("Pod", { ...pod, metadata: { ...meta(pod), namespace: meta(spec).namespace ?? "default" } })];
  });
  return Object.keys(statuses).map((name) => {
    const pass = passes.find(({ evicted }) => evicted?.pod.endsWith(`/${name}`)) ?? passes.at(-1);
    const stats = { node: { nodeName: "n1", ...pass?.node }, pods: pass?.pods ?? [] };
    return {
      name,
      pod: name,
      documents: [
        list(all),
        NODE([condition, { type: "Ready", status: "True" }]),
        ...events.map((event) => v1Event(event, name, uids)),
        ...(before ? [stats] : []),
        { kubeletconfig: kubeletConfiguration },
      ],
    };
  });
}
