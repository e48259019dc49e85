import { compare, isZero, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/decision.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { bytes } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";
import { isCriticalPod } from "../resources/critical.ts";
import type { QosClass } from "../resources/qos.ts";
import type { Writable } from "./pod-config.ts";

type Values = Writable<CgroupValues>;

export interface Swap {
  readonly limited: boolean;
  readonly nodeMemory: number;
  readonly swapCapacity: number;
}

/**
 * Swap of a container. LimitedSwap gives Burstable containers a share by their memory request; everything else gets none.
 * kubelet 1.36: configureContainerSwapResources.
 */
export function containerSwap(
  values: Values,
  pod: Pod,
  c: Container,
  podQos: QosClass,
  version: 1 | 2,
  swap: Swap,
  at: string,
  reasons: Reasons,
): void {
  if (version === 1) {
    if (values.memory === undefined) return;
    values.memorySwap = values.memory;
    reasons.add("no_swap", at, "memorySwap", { because: "memory plus swap equals the memory limit" });
    return;
  }
  const request = c.resources?.requests?.["memory"]?.amount ?? ZERO;
  const limit = c.resources?.limits?.["memory"]?.amount ?? ZERO;
  const because =
    noSwapBecause(swap.limited, pod, podQos, isZero(request), compare(request, limit) === 0) ??
    (value(request) > swap.nodeMemory ? "memory request above the node's memory" : undefined);
  if (because !== undefined) {
    values.memorySwap = bytes(0);
    reasons.add("no_swap", at, "memorySwap", { because });
    return;
  }
  values.memorySwap = bytes(Math.trunc((value(request) / swap.nodeMemory) * swap.swapCapacity));
  reasons.add("limited_swap", at, "memorySwap", {
    request: value(request),
    nodeMemory: swap.nodeMemory,
    swapCapacity: swap.swapCapacity,
  });
}

function noSwapBecause(
  limited: boolean,
  pod: Pod,
  qos: QosClass,
  noRequest: boolean,
  equal: boolean,
): string | undefined {
  if (!limited) return "swapBehavior is not LimitedSwap";
  if (isCriticalPod(pod)) return "critical pod";
  if (qos !== "Burstable") return `${qos} pod`;
  if (noRequest) return "no memory request";
  return equal ? "memory request equals the limit" : undefined;
}
