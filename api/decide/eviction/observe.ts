import { add, compare, fromUnits } from "../../model/amount.ts";
import type { EvictionSignal } from "../../model/eviction.ts";
import { type EpochMs, epochMs, type Stats } from "../../model/units.ts";
import { type Threshold, thresholdQuantity } from "./threshold.ts";

/** A Summary's values for one signal, in bytes, inodes or process ids. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
  /** When the stats were taken; null: not given, and they count as new. */
  readonly atMs: EpochMs | null;
}
export type Observations = ReadonlyMap<EvictionSignal, Observation>;

const timeOf = (time: string | undefined): EpochMs | null =>
  time === undefined ? null : epochMs(Math.trunc(Date.parse(time)));

/** The observed signals; a signal without an amount or a capacity is left out. kubelet 1.36: makeSignalObservations. */
export function observe(stats: Stats | undefined): Observations {
  const seen = new Map<EvictionSignal, Observation>();
  const node = stats?.node;
  const put = (
    signal: EvictionSignal,
    available: number | undefined,
    capacity: number | undefined,
    time: string | undefined,
  ): void => {
    if (available !== undefined && capacity !== undefined)
      seen.set(signal, { available, capacity, atMs: timeOf(time) });
  };
  const pods = node?.systemContainers?.find((c) => c.name === "pods")?.memory;
  for (const [signal, memory] of [
    ["allocatableMemory.available", pods],
    ["memory.available", node?.memory],
  ] as const) {
    const { availableBytes, workingSetBytes, time } = memory ?? {};
    // the kubelet computes the memory capacity as available + working set
    if (workingSetBytes !== undefined) put(signal, availableBytes, (availableBytes ?? 0) + workingSetBytes, time);
  }
  for (const [name, fs] of [
    ["nodefs", node?.fs],
    ["imagefs", node?.runtime?.imageFs],
    ["containerfs", node?.runtime?.containerFs],
  ] as const) {
    put(`${name}.available`, fs?.availableBytes, fs?.capacityBytes, fs?.time);
    put(`${name}.inodesFree`, fs?.inodesFree, fs?.inodes, fs?.time);
  }
  const { maxpid, curproc, time } = node?.rlimit ?? {};
  if (curproc !== undefined) put("pid.available", maxpid === undefined ? undefined : maxpid - curproc, maxpid, time);
  return seen;
}

/**
 * Checks that strictly less is available than the threshold, with its minimum reclaim added if asked. kubelet 1.36:
 * thresholdsMet.
 */
export function isMet(t: Threshold, seen: Observations, withReclaim: boolean): boolean {
  const observed = seen.get(t.signal);
  if (observed === undefined) return false;
  const goal = withReclaim ? reclaimGoal(t, observed) : goalOf(t, observed);
  return compare(goal, fromUnits(observed.available)) > 0;
}
const goalOf = (t: Threshold, { capacity }: Observation) => thresholdQuantity(t.value, fromUnits(capacity)).amount;

/** Returns the amount that must be available before a met threshold counts as resolved. */
export function reclaimGoal(t: Threshold, observed: Observation) {
  const goal = goalOf(t, observed);
  if (t.minReclaim === undefined) return goal;
  return add(goal, thresholdQuantity(t.minReclaim, fromUnits(observed.capacity)).amount);
}
