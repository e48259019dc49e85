import { podLimits, podRequests } from "../../api/decide/resources/pod-resources.ts";
import { type Amount, milliValue, value } from "../../api/model/amount.ts";
import { pod as podSchema } from "../../api/model/pod.ts";
import { withDefaultRequests } from "../../api/model/pod-defaults.ts";
import type { PodContainer, RunnablePod } from "../lifecycle/pod.ts";
import type { ContainerStatus, PodStatus } from "../lifecycle/status/status.ts";
import type { CgroupRow, ContainerRow, PodResources, PodRow, PodUsage } from "../status/node-status.ts";
import type { KnownPod } from "./pod-set.ts";

export interface RowParts {
  readonly known: KnownPod;
  readonly status: PodStatus;
  readonly cgroups: readonly CgroupRow[];
  /** Container's name -> its CPUs as decided. */
  readonly cpusets: ReadonlyMap<string, string>;
  readonly usage: PodUsage | null;
}

/** A pod as people see it. */
export function podRow({ known, status, cgroups, cpusets, usage }: RowParts): PodRow {
  const { uid, pod, record } = known;
  const containers = containerRows(pod, status, cpusets);
  const held = containers.find(({ state, reason }) => state === "waiting" && reason !== "");
  const why = status.reason ? status : record.refusal !== null ? record.refusal : held;
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid,
    state: record.state,
    phase: status.phase,
    reason: why?.reason ?? "",
    message: why?.message ?? "",
    qos: status.qosClass,
    priority: pod.spec.priority,
    isStatic: pod.isStatic,
    ip: status.podIP ?? "",
    seenAt: new Date(record.seenAtMs).toISOString(),
    startedAt: status.startTime ?? null,
    containers,
    cgroups,
    resources: resourcesOf(pod),
    usage,
    refusal: record.refusal,
    end: record.end,
    resize: record.resize,
  };
}

function containerRows(
  pod: RunnablePod,
  status: PodStatus,
  cpusets: ReadonlyMap<string, string>,
): readonly ContainerRow[] {
  const statuses = new Map(
    [...(status.initContainerStatuses ?? []), ...status.containerStatuses].map((s) => [s.name, s] as const),
  );
  const rowOf = (container: PodContainer, kind: ContainerRow["kind"]): ContainerRow =>
    containerRow(container, kind, statuses.get(container.name), cpusets.get(container.name) ?? null);
  return [
    ...pod.spec.initContainers.map((c) => rowOf(c, c.isSidecar ? "sidecar" : "init")),
    ...pod.spec.containers.map((c) => rowOf(c, "container")),
  ];
}

function containerRow(
  { name, image }: PodContainer,
  kind: ContainerRow["kind"],
  status: ContainerStatus | undefined,
  cpuset: string | null,
): ContainerRow {
  const { waiting, running, terminated } = status?.state ?? {};
  const told = terminated ?? waiting;
  return {
    name,
    kind,
    id: status?.containerID?.replace(/^[a-z-]+:\/\//, "") ?? null,
    state: running !== undefined ? "running" : terminated !== undefined ? "terminated" : "waiting",
    reason: told?.reason ?? "",
    message: told?.message ?? "",
    exitCode: terminated?.exitCode ?? null,
    restarts: status?.restartCount ?? 0,
    ready: status?.ready ?? false,
    image,
    cpuset,
  };
}

const known = new WeakMap<object, PodResources>();
function resourcesOf(pod: RunnablePod): PodResources {
  const before = known.get(pod.object);
  if (before !== undefined) return before;
  const { status: _status, ...object } = pod.object;
  const found = resourcesIn(object);
  known.set(pod.object, found);
  return found;
}
/** Of a pod's object without its status. */
export function resourcesIn(object: object): PodResources {
  const parsed = podSchema.safeParse(object);
  const none = { cpuRequestMilli: null, cpuLimitMilli: null, memoryRequestBytes: null, memoryLimitBytes: null };
  if (!parsed.success) return none;
  const decoded = withDefaultRequests(parsed.data);
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
