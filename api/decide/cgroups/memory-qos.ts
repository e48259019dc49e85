import { value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { Container } from "../../model/pod.ts";
import { bytes } from "../../model/units.ts";
import type { ReasonRecorder } from "../reasons.ts";
import type { QosClass } from "../resources/qos.ts";
import type { Writable } from "./pod-config.ts";
import type { TierRequests } from "./qos-config.ts";

export interface MemoryQos {
  readonly policy: "None" | "TieredReservation";
  readonly throttlingFactor: number;
  /** Bytes; without the hard-eviction part. */
  readonly allocatableMemory: number;
  readonly pageSize: number;
}
type Values = Writable<CgroupValues>;

/** Under TieredReservation Guaranteed memory is never reclaimed (min), that of all others is protected (low). */
function reserve(
  values: Values,
  field: "memoryMin" | "memoryLow",
  amount: number,
  qos: MemoryQos,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  values[field] = bytes(amount);
  reasons.add("memory_reservation", at, field, { policy: qos.policy, bytes: amount });
}

/** Under None both tiers are put back to 0. kubelet 1.36: setMemoryQoS of the QoS container manager. */
export function tierMemoryQos(
  kubepods: Values,
  burstable: Values,
  requests: TierRequests,
  qos: MemoryQos,
  at: readonly [string, string],
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  const { Guaranteed, Burstable } = requests.memory;
  const tiered = qos.policy === "TieredReservation";
  reserve(kubepods, "memoryMin", tiered ? Guaranteed + Burstable : 0, qos, at[0], reasons);
  reserve(burstable, "memoryLow", tiered ? Burstable : 0, qos, at[1], reasons);
}

/** Reserves a request under that policy, also the overhead of a BestEffort pod; true when it did. kubelet 1.36: ResourceConfigForPod with Memory QoS. */
export function podMemoryQos(
  values: Values,
  podQos: QosClass,
  request: number,
  qos: MemoryQos,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): boolean {
  if (qos.policy !== "TieredReservation" || request === 0) return false;
  reserve(values, podQos === "Guaranteed" ? "memoryMin" : "memoryLow", request, qos, at, reasons);
  return true;
}

/** memory.high throttles before the limit kills: floor((request + factor * ((limit or allocatable) - request)) / page) pages. */
export function containerMemoryQos(
  values: Values,
  c: Container,
  podQos: QosClass,
  qos: MemoryQos,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  const request = value(c.resources?.requests?.["memory"]?.amount ?? ZERO);
  const limit = value(c.resources?.limits?.["memory"]?.amount ?? ZERO);
  // one reservation with a request, else both are put back to 0
  if (!podMemoryQos(values, podQos, request, qos, at, reasons)) {
    reserve(values, "memoryMin", 0, qos, at, reasons);
    reserve(values, "memoryLow", 0, qos, at, reasons);
  }
  if (request === limit) return;
  const ceiling = limit === 0 ? qos.allocatableMemory : limit;
  if (ceiling === 0) return;
  const high =
    Math.trunc(Math.floor(request + (ceiling - request) * qos.throttlingFactor) / qos.pageSize) * qos.pageSize;
  if (high <= request) return;
  values.memoryHigh = bytes(high);
  reasons.add("memory_high", at, "memoryHigh", {
    request,
    ceiling,
    factor: qos.throttlingFactor,
    pageSize: qos.pageSize,
    bytes: high,
  });
}
