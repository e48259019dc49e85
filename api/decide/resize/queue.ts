import { compare, ZERO } from "../../model/amount.ts";
import type { Pod } from "../../model/pod.ts";
import { sortFunc } from "../go/sort-func.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";

/** A pod that is to have other resources than those that are allocated to it. */
export interface PendingResize {
  /** With the resources that are asked for. */
  readonly desired: Pod;
  readonly allocated: Pod;
  /** Since when its status says that it waits, in epoch ms; null: the kubelet has not tried it yet. */
  readonly sinceMs: number | null;
}

/** kubelet 1.36: isResizeIncreasingRequests. */
function takesMore({ desired, allocated }: PendingResize): boolean {
  const [before, after] = [podRequests(allocated), podRequests(desired)];
  return ["cpu", "memory"].some((name) => compare(after.get(name) ?? ZERO, before.get(name) ?? ZERO) > 0);
}

interface Ranked<P> {
  readonly resize: P;
  readonly takesMore: boolean;
  readonly priority: number;
  readonly isGuaranteed: boolean;
  readonly sinceMs: number | null;
}

/** Whether `a` goes before `b`, which stands before it: of two that take no more, too. kubelet 1.36: sortPendingResizes. */
function goesBefore<P>(a: Ranked<P>, b: Ranked<P>): boolean {
  if (!a.takesMore || !b.takesMore) return !a.takesMore;
  if (a.priority !== b.priority) return a.priority > b.priority;
  if (a.isGuaranteed !== b.isGuaranteed) return a.isGuaranteed;
  if (a.sinceMs === null || b.sinceMs === null) return a.sinceMs !== null;
  return a.sinceMs < b.sinceMs;
}

/**
 * The order in which the kubelet tries resizes: those that take no more of CPU and memory, then by priority, Guaranteed pods
 * first, then those that wait the longest. `pushed`: in the order in which the kubelet heard of them. It sorts its queue each time
 * that one joins, by a comparison that calls each of two that take no more the first, and each of two that it has not tried yet the
 * second, so that their order is what Go's sort makes of it. kubelet 1.36: PushPendingResize, sortPendingResizes.
 */
export function queueOf<P extends PendingResize>(pushed: readonly P[]): readonly P[] {
  const queue: Ranked<P>[] = [];
  for (const resize of pushed) {
    const { desired, sinceMs } = resize;
    const priority = desired.spec.priority ?? 0;
    const isGuaranteed = qosClass(desired) === "Guaranteed";
    queue.push({ resize, takesMore: takesMore(resize), priority, isGuaranteed, sinceMs });
    sortFunc(queue, goesBefore);
  }
  return queue.map(({ resize }) => resize);
}
