import type { Comparison, Outcome } from "../../api/model/outcome.ts";
import { eventOutcomes, nodeOutcomes, podOutcomes } from "../../api/service/agreement/outcomes.ts";
import realDisk from "../data/real-eviction/disk.json" with { type: "json" };
import realMemory from "../data/real-eviction/memory.json" with { type: "json" };
import configz from "../data/real-node/configz.json" with { type: "json" };
import machine from "../data/real-node/machine.json" with { type: "json" };
import evictions from "../data/real-outcomes/evictions.json" with { type: "json" };
import captured from "../data/real-outcomes/pods.json" with { type: "json" };
import probed from "../data/real-outcomes/probes.json" with { type: "json" };
import realProbes from "../data/real-probes.json" with { type: "json" };
import { realCases } from "../decide/admission/real-cases.ts";
import { answer as pass } from "../decide/eviction/eviction-kit.ts";
import { answer as collected } from "../decide/image-gc/image-gc-kit.ts";
import { realSnapshots, run } from "../decide/image-gc/real-run.ts";
import type { Json } from "../kit/snapshots.ts";
import { comparedOn, secondsBefore } from "./compared.ts";
import { mergedOutcomes } from "./merged.ts";

/** Snapshots and outcomes of a kubelet 1.36.3, captured outside the kubelet: objects, events, /stats/summary. */
interface Captured {
  readonly status: Json & { readonly uid: string; readonly startTime: string };
  readonly events: readonly CapturedEvent[];
  readonly victims?: Readonly<Record<string, Json>>;
  readonly cpuManagerState?: Json;
}
interface CapturedEvent {
  readonly reason: string;
  readonly message: string;
  readonly first: string;
  readonly last?: string;
  readonly count: number;
  readonly pod?: string;
}
const CAPTURED = captured as unknown as Readonly<Record<string, Captured>>;
type Pod = Json & { readonly metadata: Json & { readonly name: string; readonly uid: string } };

const event = ({ reason, message, first, last = first, count }: CapturedEvent, pod: Pod): Json => ({
  kind: "Event",
  involvedObject: { kind: "Pod", namespace: "default", ...pod.metadata },
  reason,
  message,
  count,
  firstTimestamp: first,
  lastTimestamp: last,
  source: { component: "kubelet", host: "n1" },
});
const withVersion = (snapshot: Json): Json => {
  const node = snapshot["node"] as { status: Json };
  return { ...snapshot, node: { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: "v1.36.3" } } } };
};

/**
 * The priority of each priority class, which the API server writes into posted pods. asStored adds it, and the host
 * ports of a pod in the host network.
 */
const PRIORITIES: Readonly<Record<string, number>> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
  high: 1_000_000,
};
function asStored(applied: Json, uid: string): Pod {
  const { metadata, spec } = applied as { metadata: Json; spec: Json & { containers: readonly Json[] } };
  const onHost = ({ ports = [], ...c }: { ports?: { hostPort?: number; containerPort: number }[] }): Json => ({
    ...c,
    ports: ports.map((port) => ({ hostPort: port.containerPort, ...port })),
  });
  const containers = spec["hostNetwork"] === true ? spec.containers.map(onHost) : spec.containers;
  const priority = PRIORITIES[String(spec["priorityClassName"])] ?? 0;
  return { metadata: { ...metadata, uid }, spec: { ...spec, containers, priority } } as unknown as Pod;
}

/** The outcomes in one capture, each compared on the last snapshot before it, with all other outcomes known. */
export interface Run {
  readonly name: string;
  readonly outcomes: readonly Outcome[];
  readonly compared: readonly Comparison[];
}

function ofPosted(name: string, { snapshot, applied }: { snapshot: Json; applied: Json }): Run {
  const { status, events, victims = {}, cpuManagerState } = CAPTURED[name] as Captured;
  const pod = asStored(applied, status.uid);
  const pods = snapshot["pods"] as readonly Pod[];
  const named = (one: string | undefined): Pod => pods.find((p) => p.metadata.name === one) ?? pod;
  const outcomes = mergedOutcomes([
    ...podOutcomes({ ...pod, status: { phase: "Pending" } }, { ...pod, status }),
    ...Object.entries(victims).flatMap(([victim, after]) =>
      podOutcomes(named(victim), { ...named(victim), status: after }),
    ),
    ...events.flatMap((one) => eventOutcomes(event(one, named(one.pod)), { pod: named(one.pod) })),
  ]);
  const files = cpuManagerState === undefined ? {} : { machine, assignments: { cpu_manager_state: cpuManagerState } };
  const before = {
    observedAt: secondsBefore(outcomes[0]?.at ?? status.startTime, 1),
    ...withVersion(snapshot),
    kubeletConfiguration: configz,
    ...files,
  };
  return { name, outcomes, compared: comparedOn(before, outcomes) };
}

/** Pods that were posted to a node, and the kubelet's outcomes. */
export const postedPods = (dir: "real-admission" | "real-preemption"): readonly Run[] =>
  realCases(dir).map((real) => ofPosted(real.name, real));

/** Compares each outcome on the last captured snapshot before it, with the facts of the earlier snapshots. */
function onLast(snapshots: readonly Json[], outcomes: readonly Outcome[]): readonly Comparison[] {
  let facts: unknown;
  const known = snapshots.map((snapshot) => {
    const before = facts;
    facts = JSON.parse(JSON.stringify(pass(snapshot, before).next));
    return { snapshot, before };
  });
  return outcomes.map((outcome) => {
    const last = known.findLast(({ snapshot }) => Date.parse(String(snapshot["observedAt"])) <= Date.parse(outcome.at));
    const others = [outcome, ...outcomes.filter((one) => one !== outcome)];
    const [compared] = last === undefined ? [] : comparedOn(last.snapshot, others, { eviction: last.before });
    if (compared === undefined) throw new Error("no snapshot is that old");
    return compared;
  });
}

interface CapturedEvictions {
  readonly snapshots: readonly (Json & {
    readonly observedAt: string;
    readonly stats: { pods: { podRef: { name: string } }[] };
  })[];
  readonly statuses: Readonly<Record<string, Json & { readonly uid: string; readonly startTime: string }>>;
  readonly events: readonly CapturedEvent[];
  readonly conditions: readonly (Json & { readonly status: string; readonly lastTransitionTime: string })[];
}
const realEviction = (name: "memory" | "disk"): RealEviction =>
  ({ memory: realMemory, disk: realDisk })[name] as unknown as RealEviction;
interface RealEviction {
  readonly kubeletConfiguration: Json;
  readonly pods: readonly Pod[];
  readonly readmission?: readonly { readonly pod: Pod }[];
  readonly admission: readonly { readonly pod: Pod }[];
}
const RUNNING = { phase: "Running", containerStatuses: [{ name: "c", state: { running: {} } }] };

/** A kubelet that was restarted under pressure: its evictions, its refusals, and the node's conditions. */
export function underPressure(name: "memory" | "disk"): Run {
  const { snapshots, statuses, events, conditions } = evictions[name] as unknown as CapturedEvictions;
  const { kubeletConfiguration, pods, readmission = [], admission } = realEviction(name);
  // posted pods were captured whole; other pods contain only the fields that rankings need
  const all = [...pods.map((pod) => ({ pod })), ...readmission, ...admission].map(({ pod }) => pod);
  const stored = new Map(
    all.map(({ metadata, ...pod }) => [
      metadata.name,
      asStored({ metadata, ...pod }, statuses[metadata.name]?.uid ?? ""),
    ]),
  );
  const [first] = snapshots;
  const type = name === "memory" ? "MemoryPressure" : "DiskPressure";
  const nodeAt = (time: string): Json => {
    const last = conditions.findLast(({ lastTransitionTime }) => lastTransitionTime <= time);
    const { metadata, status } = nodeOfCase() as Json & { status: Json };
    return { metadata, status: { ...status, conditions: [{ type, status: last?.status ?? "False" }] } };
  };
  const outcomes = mergedOutcomes([
    ...[...stored].flatMap(([pod, object]) => {
      const status = statuses[pod];
      const ran = (status?.startTime ?? "") < (first?.observedAt ?? "");
      const before = ran ? { ...RUNNING, startTime: status?.startTime } : { phase: "Pending" };
      return podOutcomes({ ...object, status: before }, { ...object, status });
    }),
    ...events.flatMap((one) => {
      const pod = stored.get(one.pod ?? "");
      return pod === undefined ? [] : eventOutcomes(event(one, pod), { pod });
    }),
    ...conditions.flatMap((now) =>
      nodeOutcomes(nodeAt(secondsBefore(now.lastTransitionTime, 1)), { status: { conditions: [{ type, ...now }] } }),
    ),
  ]);
  const taken = snapshots.map((snapshot) => ({
    ...withVersion({ node: nodeAt(snapshot.observedAt) }),
    ...snapshot,
    kubeletConfiguration,
    pods: snapshot.stats.pods.flatMap(({ podRef }) => {
      const pod = stored.get(podRef.name);
      return pod === undefined ? [] : [{ ...pod, status: RUNNING }];
    }),
  }));
  return { name, outcomes, compared: onLast(taken, outcomes) };
}

/** The first and the last restart of a container by a probe; the events do not contain the times between. */
export const endedByProbes = (): readonly Run[] =>
  Object.entries(probed).map(([name, { uid, runs, killing, totals, unhealthy }]) => {
    const pod = { metadata: { name, uid }, spec: realProbes.find((one) => one.name === name)?.spec } as unknown as Pod;
    const probe = killing.message.includes("startup") ? "Startup" : "Liveness";
    const counted = unhealthy
      .filter(({ message }) => message.startsWith(probe))
      .reduce((sum, { count }) => sum + count, 0);
    const failures = ((totals as Record<string, number>)[`${probe} failed`] ?? counted) / killing.count;
    const outcomes = mergedOutcomes(
      [killing.first, killing.last].flatMap((last) => {
        const startedAt = runs.findLast((run) => run < last);
        const status = { phase: "Running", containerStatuses: [{ name: "c", state: { running: { startedAt } } }] };
        return eventOutcomes(event({ ...killing, last }, pod), { pod: { ...pod, status }, failures });
      }),
    );
    return { name, outcomes, compared: comparedOn(withVersion({ observedAt: runs[0], node: nodeOfCase() }), outcomes) };
  });
const nodeOfCase = (): Json => realCases("real-admission")[0]?.snapshot["node"] as Json;

/** One image garbage collection, between the snapshot's list and the next one. */
export function collectedImages(): Run {
  const [atStart, later, last] = realSnapshots();
  const facts = JSON.parse(JSON.stringify(collected(later, collected(atStart).next).next));
  const images = run.images
    .filter(({ id }) => !run.left.includes(id))
    .map(({ id, repoTags }) => ({ id, names: [...repoTags] }));
  const at = "2026-11-21T06:49:24.643Z";
  const outcomes: readonly Outcome[] = [{ kind: "image-gc", at, after: run.at, seenIn: ["image-list"], images }];
  const before = withVersion({ ...last, node: nodeOfCase() });
  return { name: "images", outcomes, compared: comparedOn(before, outcomes, { "image-gc": facts }) };
}
