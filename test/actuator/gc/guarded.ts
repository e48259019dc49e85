import type { NodeObservation } from "../../../actuator/gc/observe-node.ts";

/** The findings of a guard. */
export const planned = (more: object = {}) => ({ state: "as-planned", stopFirst: false, logPath: null, ...more });
export const surprise = (found: string) => ({ state: "surprise", found });

/** A look that saw a container or a sandbox `x`, made at 7. */
export const lookWith = (more: Partial<NodeObservation> = {}) =>
  ({
    createdAt: new Map([["x", "7"]]),
    sandboxOf: new Map(),
    livingPods: new Set(),
    pods: [],
    ...more,
  }) as Partial<NodeObservation> as NodeObservation;
