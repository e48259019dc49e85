import { compare, fromUnits } from "../../model/amount.ts";
import type { StarvedResource } from "../../model/eviction.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { canonicalText, type Quantity } from "../../model/quantity.ts";
import type { PodStats } from "../../model/stats.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { Observation } from "./observe.ts";
import { SIGNALS } from "./signals.ts";
import { type Threshold, thresholdQuantity } from "./threshold.ts";

export interface EvictionMessage {
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}
const bytesText = (bytes: number): string => canonicalText(fromUnits(bytes), "BinarySI");
const quantityText = (q: Quantity | undefined): string => (q === undefined ? "0" : canonicalText(q.amount, q.format));

/** Why a pod goes, to the byte, and what the event says beside it. kubelet 1.36: evictionMessage. */
export function evictionMessage(
  threshold: Threshold,
  { available, capacity }: Observation,
  pod: Pod,
  stats: PodStats | undefined,
): EvictionMessage {
  const { resource, format } = SIGNALS[threshold.signal];
  const quantity = thresholdQuantity(threshold.value, fromUnits(capacity));
  const left = canonicalText(fromUnits(available), format);
  let message = `The node was low on resource: ${resource}. Threshold quantity: ${quantityText(quantity)}, available: ${left}. `;
  // the kubelet says nothing of a pod that it knows nothing of, not even what was starved
  if (stats === undefined) return { message, annotations: {} };
  const annotations: Record<string, string> = {};
  const podRequest = pod.spec.resources?.requests?.["memory"];
  if (resource === "memory" && isPodLevelResourcesSet(pod) && podRequest !== undefined && stats.memory !== undefined) {
    const usage = bytesText(stats.memory.workingSetBytes ?? 0);
    message += `Pod ${pod.metadata.name} was using ${usage}, request is ${quantityText(podRequest)}, has larger consumption of memory. `;
    annotations["offending_pod"] = pod.metadata.name;
    annotations["offending_pod_usage"] = usage;
  }
  const offenders = offendingContainers(pod, stats, resource);
  for (const { name, usage, request } of offenders) {
    message += `Container ${name} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `;
  }
  annotations["offending_containers"] = offenders.map((o) => o.name).join(",");
  annotations["offending_containers_usage"] = offenders.map((o) => o.usage).join(",");
  annotations["starved_resource"] = resource;
  return { message, annotations };
}

interface Offender {
  readonly name: string;
  readonly usage: string;
  readonly request: string;
}
/** In the order of the stats. Inodes and process ids are not counted by container. */
function offendingContainers(pod: Pod, stats: PodStats, resource: StarvedResource): readonly Offender[] {
  const byName = new Map<string, Container>();
  for (const c of containersOf(pod)) byName.set(c.name, c);
  return (stats.containers ?? []).flatMap((s) => {
    const container = byName.get(s.name);
    const usage = usageOf(s, resource);
    if (container === undefined || usage === undefined) return [];
    const request = container.resources?.requests?.[resource];
    if (compare(fromUnits(usage), request?.amount ?? 0) <= 0) return [];
    return [{ name: s.name, usage: bytesText(usage), request: quantityText(request) }];
  });
}
function usageOf(s: NonNullable<PodStats["containers"]>[number], resource: StarvedResource): number | undefined {
  if (resource === "memory") return s.memory?.workingSetBytes;
  const rootfs = s.rootfs?.usedBytes;
  const logs = s.logs?.usedBytes;
  return resource === "ephemeral-storage" && rootfs !== undefined && logs !== undefined ? rootfs + logs : undefined;
}
