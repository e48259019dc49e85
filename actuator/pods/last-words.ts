import type { RuntimeContainer, RuntimePod } from "../lifecycle/runtime-pod.ts";
import { type PodRoots, placesOf } from "./places.ts";
import type { CompleteContainer } from "./pod-set.ts";
import { withLastWords } from "./termination-message.ts";

/** Containers with what they left behind when they ended, read once each. */
export function lastWords(roots: PodRoots): CompleteContainer {
  const known = new WeakMap<RuntimeContainer, RuntimeContainer>();
  return (pod: RuntimePod, container: RuntimeContainer): RuntimeContainer => {
    if (container.state !== "exited") return container;
    const before = known.get(container);
    if (before !== undefined) return before;
    const places = placesOf(roots, pod);
    const complete = places.ok ? withLastWords(container, places.value) : container;
    known.set(container, complete);
    return complete;
  };
}
