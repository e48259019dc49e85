import { type Fields, fieldsOf } from "../../../api/base/own.ts";
import type { ClaimHealth } from "../../../api/decide/dra/health.ts";
import { podLimits, podRequests } from "../../../api/decide/resources/pod-resources.ts";
import { qosClass } from "../../../api/decide/resources/qos.ts";
import { type Amount, milliValue, value } from "../../../api/model/amount.ts";
import { MIRROR_ANNOTATION } from "../../../api/model/pod.ts";
import type { Problem } from "../../core/interfaces.ts";
import { classOf, decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PodStatus } from "../../lifecycle/status/status.ts";
import type { PassReport } from "../../pass/loop.ts";
import { harmlessCause } from "../../plan/drift.ts";
import type { PodUsage } from "../../stats/usage.ts";
import { passFigures, type SyncFigures } from "../../status/counters.ts";
import type {
  CgroupRow,
  ContainerEnd,
  ContainerRow,
  NodeStatus,
  OtherKubeletView,
  PodResources,
  PodRow,
  SeenEvent,
} from "../../status/node-status.ts";
import type { RefusedManifest } from "../records/desired-pods.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";

const PHASES: readonly string[] = ["Pending", "Running", "Succeeded", "Failed"];
const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;

/** Pods that another kubelet runs, as their source lists them, with their cgroups as the last pass found them. */
export function observedPods(report: PassReport): readonly PodRow[] {
  const cgroups = cgroupRows(report);
  const cpusets = cpusetsOf(report);
  return listOf(fieldsOf(report.snapshot)["pods"]).map((pod) => {
    const uid = uidOf(pod);
    return observedRow(pod, uid, { cgroups: cgroups.get(uid) ?? [], cpusets: cpusets.get(uid) ?? new Map() });
  });
}

function uidOf({ metadata }: Fields): string {
  const { uid, annotations } = fieldsOf(metadata);
  return textOf(fieldsOf(annotations)[MIRROR_ANNOTATION]) || textOf(uid);
}

function observedRow(
  pod: Fields,
  uid: string,
  { cgroups, cpusets }: Pick<PodRow, "cgroups"> & { readonly cpusets: ReadonlyMap<string, string> },
): PodRow {
  const { metadata, spec, status } = pod;
  const { namespace, name, creationTimestamp, annotations } = fieldsOf(metadata);
  const observed = isObserved(status) ? fieldsOf(status) : {};
  const { priority } = fieldsOf(spec);
  const phase = PHASES.includes(textOf(observed["phase"])) ? (observed["phase"] as PodRow["phase"]) : "Unknown";
  const decoded = decodedPod(pod);
  const source = textOf(fieldsOf(annotations)["kubernetes.io/config.source"]);
  return {
    namespace: textOf(namespace) || "default",
    name: textOf(name),
    uid,
    state: phase === "Succeeded" || phase === "Failed" ? "terminated" : "active",
    phase,
    reason: textOf(observed["reason"]),
    message: textOf(observed["message"]),
    qos: decoded === null ? "BestEffort" : (CLASSES.find((name) => name === observed["qosClass"]) ?? qosClass(decoded)),
    priority: typeof priority === "number" ? priority : null,
    isStatic: source !== "" && source !== "api",
    ip: textOf(observed["podIP"]),
    seenAt: timeOf(creationTimestamp),
    startedAt: timeOf(observed["startTime"]),
    containers: containerRows(spec, isObserved(status) ? observed : null, cpusets),
    cgroups,
    resources: resourcesIn(pod),
    usage: null,
    refusal: null,
    end: null,
    resize: null,
  };
}

/** True if a status was observed: manifest readers set only `phase: Pending`. */
const isObserved = (status: unknown): boolean => Object.keys(fieldsOf(status)).some((field) => field !== "phase");

const timeOf = (value: unknown): string | null => (Number.isNaN(Date.parse(textOf(value))) ? null : textOf(value));

interface NodeViewParts {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly set: PodSet;
  readonly runtimeEndpoint?: string;
  readonly runtime: NodeStatus["runtime"];
  /** The figures of the last sync; null: no sync has ended. */
  readonly sync: SyncFigures | null;
  readonly pass: PassReport | null;
  readonly usages: ReadonlyMap<string, PodUsage>;
  /** The device rows; undefined: no device plugins are served. */
  readonly devices?: NodeStatus["devices"];
  /** Another kubelet; null: none is known to use the runtime. */
  readonly otherKubelet?: NodeStatus["otherKubelet"] | null;
  readonly probes?: NodeStatus["probes"];
  /** The daemon's own files that cannot be written. */
  readonly unwritable?: readonly string[];
  readonly problems: readonly Problem[];
  readonly refused: readonly RefusedManifest[];
  readonly events: readonly SeenEvent[];
}

/** The daemon's status for people, computed on request. */
export function nodeView(parts: NodeViewParts): NodeStatus {
  const { nowMs, nodeName, set, runtime, sync, pass, usages, devices, probes, unwritable, problems, refused, events } =
    parts;
  const { otherKubelet, runtimeEndpoint } = parts;
  const found = otherKubelet ? [{ from: "pods", message: otherKubelet.message }] : [];
  const cgroups = cgroupRows(pass);
  const cpusets = cpusetsOf(pass);
  const isUnheard = ({ record: { state } }: KnownPod): boolean =>
    set.runtimePods === null && (state === "active" || state === "terminating");
  const pods = [...set.all()].map((known) =>
    podRow({
      known,
      status: isUnheard(known) ? null : set.statusOf(known, nowMs),
      cgroups: cgroups.get(known.uid) ?? [],
      cpusets: cpusets.get(known.uid) ?? new Map(),
      usage: usages.get(known.uid) ?? null,
    }),
  );
  return {
    at: new Date(nowMs).toISOString(),
    nodeName,
    pid: process.pid,
    mode: "enforce",
    runtimeEndpoint,
    runtime,
    pass: sync === null ? null : { ...sync, ...passFigures(pass) },
    pods,
    ...(otherKubelet && { otherKubelet: seenKubelet(otherKubelet) }),
    devices,
    probes,
    unwritable,
    // first, since nothing else works before it is settled
    problems: [...new Set([...found, ...problems].map(({ from, message }) => `${from}: ${message}`))],
    refusedManifests: refused,
    events,
  };
}

const seenKubelet = ({ since, signs, message }: OtherKubeletView): OtherKubeletView => ({ since, signs, message });

/** The cgroup rows by uid, after the pass. */
export function cgroupRows(pass: PassReport | null): ReadonlyMap<string, readonly CgroupRow[]> {
  const rows = new Map<string, CgroupRow[]>();
  if (pass?.cgroups === null || pass === null) return rows;
  const { differs } = pass;
  const differing = new Map(differs?.map((one) => [`${one.path} ${one.file}`, one] as const));
  const faults = faultsByFile(pass);
  for (const { pod, level, containerId, path, files } of pass.cgroups.cgroups) {
    if (pod === null || (level === "container" && containerId === null)) continue;
    const row = files.map(({ path: file, value }) => {
      const one = differing.get(`${path} ${file}`);
      const actual = differs === null ? null : one === undefined ? value : one.actual;
      return { file, wanted: value, actual, harmless: one && harmlessCause(one), fault: faults.get(`${path} ${file}`) };
    });
    rows.set(pod.uid, [...(rows.get(pod.uid) ?? []), { path, files: row }]);
  }
  return rows;
}

function faultsByFile({ applied }: PassReport): ReadonlyMap<string, string> {
  const faults = new Map<string, string>();
  for (const { step, status, message } of applied?.results ?? [])
    if (step.op === "write" && status === "failed") faults.set(`${step.path} ${step.file}`, message);
  return faults;
}

/** The CPU sets by uid and container. */
function cpusetsOf(pass: PassReport | null): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const pods = new Map<string, Map<string, string>>();
  for (const { pod, container, values } of pass?.cgroups?.cgroups ?? []) {
    if (pod === null || container === null || values.cpusetCpus === undefined) continue;
    const sets = pods.get(pod.uid) ?? new Map<string, string>();
    pods.set(pod.uid, sets.set(container, values.cpusetCpus));
  }
  return pods;
}

interface RowParts {
  readonly known: KnownPod;
  /** The status; null: not known. */
  readonly status: PodStatus | null;
  readonly cgroups: readonly CgroupRow[];
  /** Container name -> its decided CPUs. */
  readonly cpusets: ReadonlyMap<string, string>;
  readonly usage: PodUsage | null;
}

/** Container states before the first observation: states that an earlier daemon saw are not shown as current. */
const NOT_SEEN = {
  reason: "NotSeen",
  message: "not seen since the daemon started: the runtime does not answer",
};

/** The row of a pod for people. */
export function podRow({ known, status, cgroups, cpusets, usage }: RowParts): PodRow {
  const { uid, pod, record } = known;
  const containers = containerRows(pod.object["spec"], status, cpusets);
  const held = containers.find(({ state, reason }) => state === "waiting" && reason !== "");
  // if all its containers succeeded, its status does not say that it was ended by order
  const ordered = record.state === "terminated" && record.end?.reason ? record.end : null;
  const why = status === null ? NOT_SEEN : status.reason ? status : (record.refusal ?? ordered ?? held);
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid,
    state: record.state,
    phase: status?.phase ?? "Unknown",
    reason: why?.reason ?? "",
    message: why?.message ?? "",
    qos: status?.qosClass ?? classOf(pod),
    priority: pod.spec.priority,
    isStatic: pod.isStatic,
    ip: status?.podIP ?? "",
    seenAt: new Date(record.seenAtMs).toISOString(),
    startedAt: status?.startTime ?? null,
    containers,
    cgroups,
    resources: resourcesIn(pod.object),
    usage,
    refusal: record.refusal,
    end: record.end,
    resize: record.resize,
    ...(record.stoppedByOthers !== undefined && { stoppedByOthers: record.stoppedByOthers }),
  };
}

/** Reads the resources of a pod's object. */
function resourcesIn(object: Readonly<Record<string, unknown>>): PodResources {
  const decoded = decodedPod(object);
  const none = { cpuRequestMilli: null, cpuLimitMilli: null, memoryRequestBytes: null, memoryLimitBytes: null };
  if (decoded === null) return none;
  const [requests, limits] = [podRequests(decoded), podLimits(decoded)];
  return {
    cpuRequestMilli: numberOrNull(requests.get("cpu"), milliValue),
    cpuLimitMilli: numberOrNull(limits.get("cpu"), milliValue),
    memoryRequestBytes: numberOrNull(requests.get("memory"), value),
    memoryLimitBytes: numberOrNull(limits.get("memory"), value),
  };
}
const numberOrNull = (amount: Amount | undefined, as: (amount: Amount) => number): number | null =>
  amount === undefined ? null : as(amount);

/**
 * Builds the rows of a v1.PodSpec and a v1.PodStatus, init containers first; a null status was never observed.
 * `cpusets`: container name -> its decided CPUs.
 */
export function containerRows(
  spec: unknown,
  status: unknown,
  cpusets: ReadonlyMap<string, string>,
): readonly ContainerRow[] {
  const { initContainers, containers } = fieldsOf(spec);
  const { initContainerStatuses, containerStatuses } = fieldsOf(status);
  const statuses = new Map([...listOf(initContainerStatuses), ...listOf(containerStatuses)].map((s) => [s["name"], s]));
  const rowOf = (container: Fields, kind: ContainerRow["kind"]): ContainerRow =>
    containerRow(container, kind, status === null ? null : (statuses.get(container["name"]) ?? {}), cpusets);
  return [
    ...listOf(initContainers).map((c) => rowOf(c, c["restartPolicy"] === "Always" ? "sidecar" : "init")),
    ...listOf(containers).map((c) => rowOf(c, "container")),
  ];
}

function containerRow(
  { name, image }: Fields,
  kind: ContainerRow["kind"],
  seen: Fields | null,
  cpusets: ReadonlyMap<string, string>,
): ContainerRow {
  const status = seen ?? {};
  const { terminated, waiting } = fieldsOf(status["state"]);
  const state = fieldsOf(terminated ?? waiting);
  const { restartCount, containerID, allocatedResourcesStatus } = status;
  return {
    name: textOf(name),
    kind,
    id: textOf(containerID).replace(/^[a-z-]+:\/\//, "") || null,
    state: seen === null ? "unknown" : stateOf(fieldsOf(status["state"])),
    reason: textOf(state["reason"]),
    message: textOf(state["message"]),
    exitCode: typeof state["exitCode"] === "number" ? state["exitCode"] : null,
    lastState: endOf(fieldsOf(status["lastState"])["terminated"]),
    restarts: typeof restartCount === "number" ? restartCount : 0,
    ready: status["ready"] === true,
    started: status["started"] === true,
    image: textOf(image),
    cpuset: cpusets.get(textOf(name)) ?? null,
    // in this daemon's own form
    ...(allocatedResourcesStatus !== undefined && {
      allocatedResourcesStatus: allocatedResourcesStatus as readonly ClaimHealth[],
    }),
  };
}

const stateOf = ({ running, terminated }: Fields): ContainerRow["state"] =>
  running !== undefined ? "running" : terminated !== undefined ? "terminated" : "waiting";

function endOf(terminated: unknown): ContainerEnd | null {
  const { exitCode, reason, message, finishedAt } = fieldsOf(terminated);
  if (typeof exitCode !== "number") return null;
  const at = textOf(finishedAt);
  return {
    exitCode,
    reason: textOf(reason),
    message: textOf(message),
    // a runtime that does not know the time reports the epoch
    finishedAt: Date.parse(at) > 0 ? at : null,
  };
}

export const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
