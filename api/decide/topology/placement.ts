import type { Hint, Placement } from "../../model/managers.ts";
import type { HintMerge } from "./admit.ts";
import { idsOf, type NumaNodes, type TopologyHint } from "./hint.ts";

/** The maximum number of hints listed for one resource: all sets of eight nodes. */
const MAX_LISTED = 255;
/** Shortens a longer list, the preferred hints first. */
const told = (list: readonly TopologyHint[]): readonly TopologyHint[] =>
  list.length <= MAX_LISTED
    ? list
    : [...list.filter((h) => h.preferred), ...list.filter((h) => !h.preferred)].slice(0, MAX_LISTED);

/** A turn as a decision shows it: masks become lists of node ids. */
export function placementOf(numa: NumaNodes, { container, hints, merged, admitted }: HintMerge): Placement {
  const show = (hint: TopologyHint): Hint => ({
    numaNodes: hint.nodes === null ? null : idsOf(numa, hint.nodes),
    preferred: hint.preferred,
  });
  const lists = hints.flatMap((provider) => [...provider]);
  const long = lists.flatMap(([resource, list]) => (list !== null && list.length > MAX_LISTED ? [resource] : []));
  return {
    container,
    hints: Object.fromEntries(lists.map(([resource, list]) => [resource, list === null ? null : told(list).map(show)])),
    cutShort: long,
    merged: show(merged),
    admitted,
  };
}
