import type { Amount } from "../../model/amount.ts";
import { type Container, type Pod, podUid } from "../../model/pod.ts";

/** A container's limits in the order of their names. Of extended resources the request is the same, so limits say all. */
export const limitsOf = (container: Container): ReadonlyMap<string, Amount> =>
  new Map(
    Object.entries(container.resources?.limits ?? {})
      .map(([name, quantity]) => [name, quantity.amount] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

/** INVARIANT: every pod that a device manager is asked about has a uid. */
export const uidOf = (pod: Pod): string => podUid(pod) as string;
