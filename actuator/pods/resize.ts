import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import type { KnownPod } from "./pod-set.ts";

/** A living pod that is asked for in another form. Null: nothing of it can be changed now. */
export function changePod({ record }: KnownPod, pod: RunnablePod, _nowMs: number): PodRecord | null {
  return { ...record, pod: pod.object };
}
