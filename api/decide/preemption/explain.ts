import type { PodRef } from "../../model/managers.ts";
import type { Preemption } from "../../model/preemption.ts";
import type { Reasons } from "../reasons.ts";

const nameOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;

/** Why each victim was taken, in the order of the choices. */
export function explainVictims({ critical, candidates, rounds, better }: Preemption, reasons: Reasons): void {
  if (!critical) {
    reasons.add("not_critical", "preemption", "preempt");
    return;
  }
  reasons.add("candidates", "preemption", "preempt", { candidates });
  for (const { qos, picks, candidates: tier } of rounds) {
    for (const [i, { chosen, distance, tied, open }] of picks.entries()) {
      const needed = open.map(({ resource, quantity }) => `${resource} ${quantity}`).join(", ");
      reasons.add("nearest", nameOf(chosen), "preempt", { qos, open: needed, distance, among: tier.length - i });
      if (tied.length > 0) reasons.add("tied", nameOf(chosen), "preempt", { tied: tied.map(nameOf).join(" ") });
    }
  }
  const cut = better !== null && !(better.exact.fewestPods && better.exact.leastRequests);
  if (cut) reasons.add("search_cut_short", "preemption", "better", { bound: better.bound });
}
