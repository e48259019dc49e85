import { value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { type Bytes, bytes } from "../../model/units.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { type NodeClaims, nodeClaimsOfContainer, reportClaimed } from "../resources/node-claims.ts";
import { claimedParts, isPodLevelResourcesSet, podLimits, podRequests } from "../resources/pod-resources.ts";
import type { QosClass } from "../resources/qos.ts";
import { podMemoryLimit, type Writable } from "./pod-config.ts";
import type { TierRequests } from "./qos-config.ts";

export interface MemoryQos {
  /** `Requests`: memory.min protects every request. `Off`: the gate is off, and values set earlier are reset. */
  readonly policy: "None" | "TieredReservation" | "Requests" | "Off";
  /** The throttling factor; absent: memory.high is not set. */
  readonly throttlingFactor: number | undefined;
  /** Bytes; without the hard-eviction part. */
  readonly allocatableMemory: number;
  readonly pageSize: number;
  readonly behaviour: Behaviour;
  /** The claims' node resources, from `cgroupClaimsOf`. */
  readonly claims: NodeClaims;
}
type Values = Writable<CgroupValues>;
type Recorder = ReasonRecorder<ReasonCode<"cgroups">>;
/** The kernel's "max" for memory.high. */
const NO_HIGH: Bytes = bytes(-1);

/**
 * Under TieredReservation, Guaranteed memory is never reclaimed (memory.min), and all other memory is protected
 * (memory.low).
 */
function reserve(
  values: Values,
  field: "memoryMin" | "memoryLow",
  amount: number,
  qos: MemoryQos,
  at: string,
  reasons: Recorder,
): void {
  values[field] = bytes(amount);
  reasons.add("memory_reservation", at, field, { policy: qos.policy, bytes: amount });
}

/**
 * The values of a QoS tier; an unprotected tier is reset to 0. kubelet 1.36: setMemoryQoS of the QoS container
 * manager.
 */
export function tierMemoryQos(
  kubepods: Values,
  burstable: Values,
  requests: TierRequests,
  qos: MemoryQos,
  at: readonly [string, string],
  reasons: Recorder,
): void {
  const { Guaranteed, Burstable } = requests.memory;
  if (qos.policy === "Requests") {
    if (Burstable > 0) reserve(burstable, "memoryMin", Burstable, qos, at[1], reasons);
    if (Guaranteed + Burstable > 0) reserve(kubepods, "memoryMin", Guaranteed + Burstable, qos, at[0], reasons);
    return;
  }
  const tiered = qos.policy === "TieredReservation";
  reserve(kubepods, "memoryMin", tiered ? Guaranteed + Burstable : 0, qos, at[0], reasons);
  if (qos.behaviour.memoryQosOfPods) reserve(kubepods, "memoryLow", tiered ? Burstable : 0, qos, at[0], reasons);
  reserve(burstable, "memoryLow", tiered ? Burstable : 0, qos, at[1], reasons);
}

/**
 * Reserves a request if the policy does (also the overhead of a BestEffort pod); returns whether it did. kubelet 1.36:
 * ResourceConfigForPod with Memory QoS.
 */
function reserveRequest(
  values: Values,
  podQos: QosClass,
  request: number,
  qos: MemoryQos,
  at: string,
  reasons: Recorder,
): boolean {
  const isReserved = qos.policy === "TieredReservation" || qos.policy === "Requests";
  if (!isReserved || request === 0) return false;
  const isKept = qos.policy === "Requests" || podQos === "Guaranteed";
  reserve(values, isKept ? "memoryMin" : "memoryLow", request, qos, at, reasons);
  return true;
}

/** A pod's own reservation, and its memory.high. `request`: bytes. kubelet 1.37: ApplyPodLevelMemoryHigh. */
export function podMemoryQos(
  values: Values,
  pod: Pod,
  podQos: QosClass,
  request: number,
  qos: MemoryQos,
  at: string,
  reasons: Recorder,
): void {
  if (qos.policy === "Off") return;
  if (reserveRequest(values, podQos, request, qos, at, reasons)) {
    const field = values.memoryMin === undefined ? "memoryLow" : "memoryMin";
    reportClaimed(reasons, at, field, "memory", claimedParts(pod, qos.claims)?.requests.get("memory"));
  }
  if (!qos.behaviour.memoryQosOfPods || !isPodLevelResourcesSet(pod)) return;
  if (podMemoryLimit(pod, qos) === null) return;
  // for this value the kubelet ignores what claims give
  const asked = qos.claims === null ? request : value(podRequests(pod).get("memory") ?? ZERO);
  const limit = value(podLimits(pod).get("memory") ?? ZERO);
  if (limit === 0 || (asked === limit && asked !== 0)) return;
  throttle(values, asked, limit, qos, at, reasons);
}

/** Sets memory.high, which throttles a container before the limit kills it. */
export function containerMemoryQos(
  values: Values,
  pod: Pod,
  c: Container,
  podQos: QosClass,
  qos: MemoryQos,
  at: string,
  reasons: Recorder,
): void {
  if (qos.policy === "Off") {
    values.memoryHigh = NO_HIGH;
    reasons.add("memory_qos_off", at, "memoryHigh");
    return;
  }
  const request = value(c.resources?.requests?.["memory"]?.amount ?? ZERO);
  const limit = value(c.resources?.limits?.["memory"]?.amount ?? ZERO);
  // a container has one reservation or, without a request, both values reset to 0
  if (!reserveRequest(values, podQos, request, qos, at, reasons) && qos.policy !== "Requests") {
    reserve(values, "memoryMin", 0, qos, at, reasons);
    reserve(values, "memoryLow", 0, qos, at, reasons);
  }
  const { memoryQosOfPods } = qos.behaviour;
  const isUnbounded = memoryQosOfPods && request === 0;
  if (request === limit && !isUnbounded) return;
  if (memoryQosOfPods && limit === 0 && isLimitedAsAWhole(pod)) return;
  const claimed = nodeClaimsOfContainer(pod, c.name, qos.claims).get("memory") ?? ZERO;
  throttle(values, request, limit === 0 ? qos.allocatableMemory : limit + value(claimed), qos, at, reasons);
  if (limit !== 0 && values.memoryHigh !== undefined) reportClaimed(reasons, at, "memoryHigh", "memory", claimed);
}
const isLimitedAsAWhole = (pod: Pod): boolean => value(pod.spec.resources?.limits?.["memory"]?.amount ?? ZERO) !== 0;

/** Sets memory.high to floor((request + factor * (ceiling - request)) / page) pages, where that is above the request. */
function throttle(
  values: Values,
  request: number,
  ceiling: number,
  { throttlingFactor: factor, pageSize }: MemoryQos,
  at: string,
  reasons: Recorder,
): void {
  if (factor === undefined || ceiling === 0) return;
  const high = Math.trunc(Math.floor(request + (ceiling - request) * factor) / pageSize) * pageSize;
  if (high <= request) return;
  values.memoryHigh = bytes(high);
  reasons.add("memory_high", at, "memoryHigh", { request, ceiling, factor, pageSize, bytes: high });
}
