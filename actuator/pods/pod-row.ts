import { podLimits, podRequests } from "../../api/decide/resources/pod-resources.ts";
import { type Amount, milliValue, value } from "../../api/model/amount.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import type { CgroupRow, PodResources, PodRow, PodUsage } from "../status/node-status.ts";
import { containerRows } from "./container-rows.ts";
import { classOf, decodedPod } from "./decoded-pod.ts";
import type { KnownPod } from "./pod-set.ts";

export interface RowParts {
  readonly known: KnownPod;
  /** Null: not known. */
  readonly status: PodStatus | null;
  readonly cgroups: readonly CgroupRow[];
  /** Container's name -> its CPUs as decided. */
  readonly cpusets: ReadonlyMap<string, string>;
  readonly usage: PodUsage | null;
}

/** Of a pod that may run: what a daemon before this one saw of it is not told as if it were so now. */
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
  const ordered = record.state === "ended" && record.end?.reason ? record.end : null;
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
  };
}

/** Of a pod's object. */
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
