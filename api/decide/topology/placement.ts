import type { Hint, Placement } from "../../model/managers.ts";
import type { Turn } from "./admit.ts";
import type { TopologyHint } from "./hint.ts";
import { idsOf, type NumaNodes } from "./numa-nodes.ts";

/** A turn as a decision shows it: masks become lists of node ids. */
export function placementOf(numa: NumaNodes, { container, hints, merged, admitted }: Turn): Placement {
  const show = (hint: TopologyHint): Hint => ({
    numaNodes: hint.nodes === null ? null : idsOf(numa, hint.nodes),
    preferred: hint.preferred,
  });
  const lists = hints.flatMap((provider) => [...provider]);
  return {
    container,
    hints: Object.fromEntries(lists.map(([resource, list]) => [resource, list?.map(show) ?? null])),
    merged: show(merged),
    admitted,
  };
}
