import type { NodeObservation } from "../../../actuator/gc/observe-node.ts";

/** Results of a guard. */
export const planned = (more: object = {}) => ({ state: "as-planned", stopFirst: false, logPath: null, ...more });
export const surprise = (found: string) => ({ state: "surprise", found });

/** An observation at 7 that contains a container or a sandbox `x`. */
export const lookWith = (more: Partial<NodeObservation> = {}) =>
  ({
    createdAt: new Map([["x", "7"]]),
    sandboxOf: new Map(),
    livingPods: new Set(),
    pods: [],
    ...more,
  }) as Partial<NodeObservation> as NodeObservation;
