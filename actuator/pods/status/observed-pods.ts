import { qosClass } from "../../../api/decide/resources/qos.ts";
import { MIRROR_ANNOTATION } from "../../../api/model/pod.ts";
import type { PassReport } from "../../pass/loop.ts";
import type { PodRow } from "../../status/node-status.ts";
import { decodedPod } from "../admission/decoded-pod.ts";
import { cgroupRows, cpusetsOf } from "./node-view.ts";
import { containerRows, type Fields, fieldsOf, listOf, resourcesIn, textOf } from "./pod-row.ts";

const PHASES: readonly string[] = ["Pending", "Running", "Succeeded", "Failed"];
const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;

/** Pods that others run, as their source tells of them, with their cgroups as the pass found them. */
export function observedPods(report: PassReport): readonly PodRow[] {
  const cgroups = cgroupRows(report);
  const cpusets = cpusetsOf(report);
  return listOf(fieldsOf(report.snapshot)["pods"]).map((pod) => {
    const uid = uidOf(pod);
    return podRow(pod, uid, { cgroups: cgroups.get(uid) ?? [], cpusets: cpusets.get(uid) ?? new Map() });
  });
}

function uidOf({ metadata }: Fields): string {
  const { uid, annotations } = fieldsOf(metadata);
  return textOf(fieldsOf(annotations)[MIRROR_ANNOTATION]) || textOf(uid);
}

function podRow(
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
    state: phase === "Succeeded" || phase === "Failed" ? "ended" : "lives",
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
