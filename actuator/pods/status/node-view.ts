import { qosClass } from "../../../api/decide/resources/qos.ts";
import { type Fields, fieldsOf } from "../../../api/model/own.ts";
import { MIRROR_ANNOTATION } from "../../../api/model/pod.ts";
import type { Problem } from "../../core/ports.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PassReport } from "../../pass/loop.ts";
import { harmlessCause } from "../../plan/drift.ts";
import type { PodUsage } from "../../stats/usage.ts";
import { passFigures, type SyncFigures } from "../../status/counters.ts";
import type { CgroupRow, NodeStatus, OtherKubeletView, PodRow, SeenEvent } from "../../status/node-status.ts";
import type { RefusedManifest } from "../records/desired-pods.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import { containerRows, listOf, podRow, resourcesIn, textOf } from "./pod-row.ts";

const PHASES: readonly string[] = ["Pending", "Running", "Succeeded", "Failed"];
const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;

/** Pods that others run, as their source tells of them, with their cgroups as the pass found them. */
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
  const told = isObserved(status) ? fieldsOf(status) : {};
  const { priority } = fieldsOf(spec);
  const phase = PHASES.includes(textOf(told["phase"])) ? (told["phase"] as PodRow["phase"]) : "Unknown";
  const decoded = decodedPod(pod);
  const source = textOf(fieldsOf(annotations)["kubernetes.io/config.source"]);
  return {
    namespace: textOf(namespace) || "default",
    name: textOf(name),
    uid,
    state: phase === "Succeeded" || phase === "Failed" ? "terminated" : "active",
    phase,
    reason: textOf(told["reason"]),
    message: textOf(told["message"]),
    qos: decoded === null ? "BestEffort" : (CLASSES.find((name) => name === told["qosClass"]) ?? qosClass(decoded)),
    priority: typeof priority === "number" ? priority : null,
    isStatic: source !== "" && source !== "api",
    ip: textOf(told["podIP"]),
    seenAt: timeOf(creationTimestamp),
    startedAt: timeOf(told["startTime"]),
    containers: containerRows(spec, isObserved(status) ? told : null, cpusets),
    cgroups,
    resources: resourcesIn(pod),
    usage: null,
    refusal: null,
    end: null,
    resize: null,
  };
}

/** A manifest's pod is given `phase: Pending` by whoever reads it, and nobody has looked at it. */
const isObserved = (status: unknown): boolean => Object.keys(fieldsOf(status)).some((field) => field !== "phase");

const timeOf = (value: unknown): string | null => (Number.isNaN(Date.parse(textOf(value))) ? null : textOf(value));

interface NodeViewParts {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly set: PodSet;
  readonly runtimeEndpoint?: string;
  readonly runtime: NodeStatus["runtime"];
  /** The figures of the last sync; null: none has ended. */
  readonly sync: SyncFigures | null;
  readonly pass: PassReport | null;
  readonly usages: ReadonlyMap<string, PodUsage>;
  /** Undefined: no device plugins are served. */
  readonly devices?: NodeStatus["devices"];
  /** Null: no other kubelet is known to use the runtime. */
  readonly otherKubelet?: NodeStatus["otherKubelet"] | null;
  readonly probes?: NodeStatus["probes"];
  /** The daemon's own files that cannot be written. */
  readonly unwritable?: readonly string[];
  readonly problems: readonly Problem[];
  readonly refused: readonly RefusedManifest[];
  readonly events: readonly SeenEvent[];
}

/** The daemon as people see it, made when somebody asks. */
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
    // first, since nothing goes well before it is settled
    problems: [...new Set([...found, ...problems].map(({ from, message }) => `${from}: ${message}`))],
    refusedManifests: refused,
    events,
  };
}

const seenKubelet = ({ since, signs, message }: OtherKubeletView): OtherKubeletView => ({ since, signs, message });

/** By uid, as the files were after the pass. */
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

/** By uid and container. */
function cpusetsOf(pass: PassReport | null): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const pods = new Map<string, Map<string, string>>();
  for (const { pod, container, values } of pass?.cgroups?.cgroups ?? []) {
    if (pod === null || container === null || values.cpusetCpus === undefined) continue;
    const sets = pods.get(pod.uid) ?? new Map<string, string>();
    pods.set(pod.uid, sets.set(container, values.cpusetCpus));
  }
  return pods;
}
