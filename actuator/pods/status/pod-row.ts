import type { ClaimHealth } from "../../../api/decide/dra/health.ts";
import { podLimits, podRequests } from "../../../api/decide/resources/pod-resources.ts";
import { type Amount, milliValue, value } from "../../../api/model/amount.ts";
import { type Fields, fieldsOf } from "../../../api/model/own.ts";
import { classOf, decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PodStatus } from "../../lifecycle/status/status.ts";
import type { PodUsage } from "../../stats/usage.ts";
import type { CgroupRow, ContainerEnd, ContainerRow, PodResources, PodRow } from "../../status/node-status.ts";
import type { KnownPod } from "../records/pod-set.ts";

interface RowParts {
  readonly known: KnownPod;
  /** Null: not known. */
  readonly status: PodStatus | null;
  readonly cgroups: readonly CgroupRow[];
  /** Container's name -> its CPUs as decided. */
  readonly cpusets: ReadonlyMap<string, string>;
  readonly usage: PodUsage | null;
}

/** State of the containers of a pod that may run: what an earlier daemon saw of it is not told as if it were so now. */
const NOT_SEEN = {
  reason: "NotSeen",
  message: "not seen since the daemon started: the runtime does not answer",
};

/** A pod as people see it. */
export function podRow({ known, status, cgroups, cpusets, usage }: RowParts): PodRow {
  const { uid, pod, record } = known;
  const containers = containerRows(pod.object["spec"], status, cpusets);
  const held = containers.find(({ state, reason }) => state === "waiting" && reason !== "");
  // where all its containers ended well, its status does not say that it had to go
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
export function resourcesIn(object: Readonly<Record<string, unknown>>): PodResources {
  const decoded = decodedPod(object);
  const none = { cpuRequestMilli: null, cpuLimitMilli: null, memoryRequestBytes: null, memoryLimitBytes: null };
  if (decoded === null) return none;
  const [requests, limits] = [podRequests(decoded), podLimits(decoded)];
  return {
    cpuRequestMilli: told(requests.get("cpu"), milliValue),
    cpuLimitMilli: told(limits.get("cpu"), milliValue),
    memoryRequestBytes: told(requests.get("memory"), value),
    memoryLimitBytes: told(limits.get("memory"), value),
  };
}
const told = (amount: Amount | undefined, as: (amount: Amount) => number): number | null =>
  amount === undefined ? null : as(amount);

/**
 * Builds the rows of a v1.PodSpec and a v1.PodStatus, init containers first; a null status is one that nobody has seen.
 * `cpusets`: container's name -> its CPUs as decided.
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
  const told = fieldsOf(terminated ?? waiting);
  const { restartCount, containerID, allocatedResourcesStatus } = status;
  return {
    name: textOf(name),
    kind,
    id: textOf(containerID).replace(/^[a-z-]+:\/\//, "") || null,
    state: seen === null ? "unknown" : stateOf(fieldsOf(status["state"])),
    reason: textOf(told["reason"]),
    message: textOf(told["message"]),
    exitCode: typeof told["exitCode"] === "number" ? told["exitCode"] : null,
    lastState: endOf(fieldsOf(status["lastState"])["terminated"]),
    restarts: typeof restartCount === "number" ? restartCount : 0,
    ready: status["ready"] === true,
    started: status["started"] === true,
    image: textOf(image),
    cpuset: cpusets.get(textOf(name)) ?? null,
    // as this daemon made it
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
    // a runtime that does not know tells the beginning of time
    finishedAt: Date.parse(at) > 0 ? at : null,
  };
}

export const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
