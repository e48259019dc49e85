import {
  EVICTION_SIGNALS,
  type EvictionSignal,
  type PressureCondition,
  type StarvedResource,
} from "../../model/eviction.ts";
import type { QuantityFormat } from "../../model/quantity.ts";

export interface SignalFacts {
  readonly resource: StarvedResource;
  readonly condition: PressureCondition;
  /** How amounts of it are written. */
  readonly format: QuantityFormat;
  /** Where a Summary holds it. */
  readonly stats: string;
}
const memory = (stats: string): SignalFacts => ({
  resource: "memory",
  condition: "MemoryPressure",
  format: "BinarySI",
  stats,
});
const disk = (stats: string): SignalFacts => ({
  resource: "ephemeral-storage",
  condition: "DiskPressure",
  format: "BinarySI",
  stats,
});
const inodes = (stats: string): SignalFacts => ({
  resource: "inodes",
  condition: "DiskPressure",
  format: "DecimalSI",
  stats,
});

/** kubelet 1.36: signalToNodeCondition, signalToResource. */
export const SIGNALS: Readonly<Record<EvictionSignal, SignalFacts>> = {
  "allocatableMemory.available": memory("stats.node.systemContainers"),
  "memory.available": memory("stats.node.memory"),
  "nodefs.available": disk("stats.node.fs"),
  "nodefs.inodesFree": inodes("stats.node.fs"),
  "imagefs.available": disk("stats.node.runtime.imageFs"),
  "imagefs.inodesFree": inodes("stats.node.runtime.imageFs"),
  "containerfs.available": disk("stats.node.runtime.containerFs"),
  "containerfs.inodesFree": inodes("stats.node.runtime.containerFs"),
  "pid.available": { resource: "pids", condition: "PIDPressure", format: "DecimalSI", stats: "stats.node.rlimit" },
};
export const isSignal = (s: string): s is EvictionSignal => (EVICTION_SIGNALS as readonly string[]).includes(s);
/** The place of a signal among others where the kubelet has no order: memory is first there too. */
export const signalOrder = (s: EvictionSignal): number => EVICTION_SIGNALS.indexOf(s);
