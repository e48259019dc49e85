import type { QuantityList } from "../../../api/model/decision.ts";
import { configuredOf } from "../this-node.ts";
import type { ResizeNode } from "./infeasible.ts";

interface Managed {
  readonly cpuManagerPolicy?: unknown;
  readonly memoryManagerPolicy?: unknown;
  readonly memorySwap?: { readonly swapBehavior?: unknown };
  readonly featureGates?: Readonly<Record<string, unknown>>;
}

/** What of a KubeletConfiguration a resize meets. */
export function nodeOf(configuration: unknown, allocatable: QuantityList, cgroupVersion: 1 | 2): ResizeNode {
  const { cpuManagerPolicy, memoryManagerPolicy, memorySwap, featureGates } = configuredOf(configuration) as Managed;
  const unless = (gate: string, policy: unknown): string =>
    featureGates?.[gate] === true || typeof policy !== "string" ? "" : policy;
  return {
    cpuPolicy: unless("InPlacePodVerticalScalingExclusiveCPUs", cpuManagerPolicy),
    memoryPolicy: unless("InPlacePodVerticalScalingExclusiveMemory", memoryManagerPolicy),
    hasSwap: cgroupVersion === 2 && memorySwap?.swapBehavior === "LimitedSwap",
    allocatable,
  };
}
