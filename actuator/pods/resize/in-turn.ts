import { podRequests } from "../../../api/decide/resources/pod-resources.ts";
import { compare, ZERO } from "../../../api/model/amount.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { QosClass } from "../../lifecycle/status/status.ts";
import { decodedPod } from "../decoded-pod.ts";
import type { KnownPod } from "../pod-set.ts";

/** A pod that is asked for with other resources than it has. */
export interface Wanted {
  readonly known: KnownPod;
  readonly pod: RunnablePod;
}

/**
 * In the order in which they are asked about: what takes no more first, then by priority, then Guaranteed ones, then those
 * that wait the longest. kubelet 1.36: sortPendingResizes.
 */
export function resizesInTurn(wanted: readonly Wanted[], classOf: (pod: RunnablePod) => QosClass): readonly Wanted[] {
  const ranked = wanted.map((one) => ({
    one,
    rank: [
      takesMore(one) ? 1 : 0,
      -(one.pod.spec.priority ?? 0),
      classOf(one.known.pod) === "Guaranteed" ? 0 : 1,
      one.known.record.resize?.sinceMs ?? Number.MAX_SAFE_INTEGER,
    ],
  }));
  const first = (a: readonly number[], b: readonly number[]): number =>
    a.map((n, i) => n - (b[i] as number)).find((difference) => difference !== 0) ?? 0;
  return ranked.toSorted((a, b) => first(a.rank, b.rank)).map(({ one }) => one);
}

/** kubelet 1.36: isResizeIncreasingRequests. */
function takesMore({ known, pod }: Wanted): boolean {
  const [now, then] = [decodedPod(known.record.pod), decodedPod(pod.object)];
  if (now === null || then === null) return true;
  const [before, after] = [podRequests(now), podRequests(then)];
  return ["cpu", "memory"].some((name) => compare(after.get(name) ?? ZERO, before.get(name) ?? ZERO) > 0);
}
