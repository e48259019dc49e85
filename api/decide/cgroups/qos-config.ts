import { milliValue, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { bytes, mulDiv } from "../../model/units.ts";
import type { NodePod } from "../pods/node-pods.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { BEST_EFFORT_SHARES, milliCpuToShares } from "../resources/cpu-convert.ts";
import type { Writable } from "./pod-config.ts";

/** The sum of the requests of each QoS tier's pods. */
export interface TierRequests {
  readonly burstableMilliCpu: number;
  /** Bytes. */
  readonly memory: Readonly<Record<"Guaranteed" | "Burstable", number>>;
}

/** kubelet 1.36: setCPUCgroupConfig, getQoSMemoryRequests. */
export function tierRequests(pods: readonly Pick<NodePod, "qos" | "asked">[]): TierRequests {
  let burstableMilliCpu = 0;
  const memory = { Guaranteed: 0, Burstable: 0 };
  for (const { qos, asked } of pods) {
    if (qos === "BestEffort") continue;
    memory[qos] += value(asked.get("memory") ?? ZERO);
    if (qos === "Burstable") burstableMilliCpu += milliValue(asked.get("cpu") ?? ZERO);
  }
  return { burstableMilliCpu, memory };
}

interface TierOptions {
  /** The percentage of qosReserved; undefined: the gate is off, or memory is not set. */
  readonly reservedMemoryPercent: number | undefined;
  /** Allocatable memory without the hard-eviction part, in bytes. */
  readonly allocatableMemory: number;
}
interface TierValues {
  readonly burstable: Writable<CgroupValues>;
  readonly besteffort: Writable<CgroupValues>;
}
type Paths = { readonly burstable: string; readonly besteffort: string };

/**
 * Values of the Burstable and BestEffort tiers; Guaranteed pods have no tier cgroup. kubelet 1.36: QOSContainerManager
 * UpdateCgroups.
 */
export function tierValues(
  requests: TierRequests,
  options: TierOptions,
  at: Paths,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): TierValues {
  const burstable: Writable<CgroupValues> = { cpuShares: milliCpuToShares(requests.burstableMilliCpu) };
  const besteffort: Writable<CgroupValues> = { cpuShares: BEST_EFFORT_SHARES };
  reasons.add("shares_from_burstable_requests", at.burstable, "cpuShares", {
    milliCpu: requests.burstableMilliCpu,
    cpuShares: burstable.cpuShares,
  });
  reasons.add("best_effort", at.besteffort, "cpuShares", { cpuShares: BEST_EFFORT_SHARES });
  const percent = options.reservedMemoryPercent;
  if (percent === undefined || options.allocatableMemory === 0) return { burstable, besteffort };
  // integer division at each step, in this order
  const burstableLimit = options.allocatableMemory - mulDiv(requests.memory.Guaranteed, percent, 100);
  const bestEffortLimit = burstableLimit - mulDiv(requests.memory.Burstable, percent, 100);
  burstable.memory = bytes(burstableLimit);
  besteffort.memory = bytes(bestEffortLimit);
  const numbers = { allocatable: options.allocatableMemory, percent, guaranteed: requests.memory.Guaranteed };
  reasons.add("qos_reserved", at.burstable, "memory", { ...numbers, bytes: burstableLimit });
  reasons.add("qos_reserved", at.besteffort, "memory", {
    ...numbers,
    burstable: requests.memory.Burstable,
    bytes: bestEffortLimit,
  });
  return { burstable, besteffort };
}
