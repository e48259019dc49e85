import { qosClass } from "../../api/decide/resources/qos.ts";
import { MIRROR_ANNOTATION, pod as podSchema } from "../../api/model/pod.ts";
import { withDefaultRequests } from "../../api/model/pod-defaults.ts";
import type { PassReport } from "../loop.ts";
import type { ContainerRow, PodRow } from "../status/node-status.ts";
import { cgroupRows, cpusetsOf } from "./node-view.ts";
import { resourcesIn } from "./pod-row.ts";

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const PHASES: readonly string[] = ["Pending", "Running", "Succeeded", "Failed"];

/** Pods that others run, as their source tells of them, with their cgroups as the pass found them. */
export function observedPods(report: PassReport): readonly PodRow[] {
  const cgroups = cgroupRows(report);
  const cpusets = cpusetsOf(report);
  return listOf(fieldsOf(report.snapshot)["pods"]).map((pod) => {
    const uid = uidOf(pod);
    return podRow(pod, uid, report.at, { cgroups: cgroups.get(uid) ?? [], cpusets: cpusets.get(uid) ?? new Map() });
  });
}

function uidOf({ metadata }: Fields): string {
  const { uid, annotations } = fieldsOf(metadata);
  return textOf(fieldsOf(annotations)[MIRROR_ANNOTATION]) || textOf(uid);
}

function podRow(
  { metadata, spec, status }: Fields,
  uid: string,
  at: string,
  { cgroups, cpusets }: Pick<PodRow, "cgroups"> & { readonly cpusets: ReadonlyMap<string, string> },
): PodRow {
  const { namespace, name, creationTimestamp, annotations } = fieldsOf(metadata);
  const told = fieldsOf(status);
  const { priority } = fieldsOf(spec);
  const phase = PHASES.includes(textOf(told["phase"])) ? (told["phase"] as PodRow["phase"]) : "Unknown";
  const decoded = podSchema.safeParse({ metadata, spec, status: { qosClass: told["qosClass"] } });
  const source = textOf(fieldsOf(annotations)["kubernetes.io/config.source"]);
  return {
    namespace: textOf(namespace) || "default",
    name: textOf(name),
    uid,
    state: phase === "Succeeded" || phase === "Failed" ? "ended" : "lives",
    phase,
    reason: textOf(told["reason"]),
    message: textOf(told["message"]),
    qos: decoded.success ? qosClass(withDefaultRequests(decoded.data)) : "BestEffort",
    priority: typeof priority === "number" ? priority : null,
    isStatic: source !== "" && source !== "api",
    ip: textOf(told["podIP"]),
    seenAt: timeOf(creationTimestamp) ?? at,
    startedAt: timeOf(told["startTime"]),
    containers: containersOf(fieldsOf(spec), told, cpusets),
    cgroups,
    resources: resourcesIn({ metadata, spec }),
    usage: null,
    refusal: null,
    end: null,
    resize: null,
  };
}

const timeOf = (value: unknown): string | null => (Number.isNaN(Date.parse(textOf(value))) ? null : textOf(value));

function containersOf(spec: Fields, status: Fields, cpusets: ReadonlyMap<string, string>): readonly ContainerRow[] {
  const statuses = new Map(
    [...listOf(status["initContainerStatuses"]), ...listOf(status["containerStatuses"])].map((s) => [s["name"], s]),
  );
  const rowOf = (container: Fields, kind: ContainerRow["kind"]): ContainerRow =>
    containerRow(container, kind, statuses.get(container["name"]) ?? {}, cpusets);
  return [
    ...listOf(spec["initContainers"]).map((c) => rowOf(c, c["restartPolicy"] === "Always" ? "sidecar" : "init")),
    ...listOf(spec["containers"]).map((c) => rowOf(c, "container")),
  ];
}

function containerRow(
  { name, image }: Fields,
  kind: ContainerRow["kind"],
  status: Fields,
  cpusets: ReadonlyMap<string, string>,
): ContainerRow {
  const { running, terminated, waiting } = fieldsOf(status["state"]);
  const told = fieldsOf(terminated ?? waiting);
  const { restartCount, containerID } = status;
  return {
    name: textOf(name),
    kind,
    id: textOf(containerID).replace(/^[a-z-]+:\/\//, "") || null,
    state: running !== undefined ? "running" : terminated !== undefined ? "terminated" : "waiting",
    reason: textOf(told["reason"]),
    message: textOf(told["message"]),
    exitCode: typeof told["exitCode"] === "number" ? told["exitCode"] : null,
    restarts: typeof restartCount === "number" ? restartCount : 0,
    ready: status["ready"] === true,
    image: textOf(image),
    cpuset: cpusets.get(textOf(name)) ?? null,
  };
}
