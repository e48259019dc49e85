import { err, ok } from "../../../api/base/result.ts";
import type { NamedProvider } from "../../../api/decide/topology/admit.ts";
import { countNodes, type ResourceHints, type TopologyHint } from "../../../api/decide/topology/hint.ts";
import { value } from "../../../api/model/amount.ts";
import type { Container, Pod } from "../../../api/model/pod.ts";
import type { Quantity } from "../../../api/model/quantity.ts";

export interface Counted {
  readonly name: string;
  readonly resource: string;
  /** The total amount and the free amount of each NUMA node; allocations reduce `free`. */
  readonly sizes: readonly number[];
  readonly free: number[];
}

/**
 * A manager of countable resources: it hints at every set of nodes with enough free, prefers the smallest sets that
 * could ever hold the request, and takes from the hinted nodes first, as the CPU manager does.
 */
export function countedProvider({ name, resource, sizes, free }: Counted): NamedProvider {
  const asked = (container: Container): number => amount(container.resources?.limits?.[resource]);
  const hints = (request: number): ResourceHints =>
    request === 0 ? new Map() : new Map([[resource, hintsFor(request, sizes, free)]]);
  return {
    name,
    provider: {
      containerHints: (_pod, container) => hints(asked(container)),
      podHints: (pod) => hints(askedByPod(pod, asked)),
      allocate: (_pod, container, affinity) => {
        const request = asked(container);
        const left = free.reduce((sum, n) => sum + n, 0);
        if (left < request) return err({ message: `not enough ${resource}: requested=${request}, available=${left}` });
        take(request, affinity, free);
        return ok(undefined);
      },
    },
  };
}
const amount = (quantity: Quantity | undefined): number => (quantity === undefined ? 0 : value(quantity.amount));
function askedByPod({ spec }: Pod, asked: (container: Container) => number): number {
  const init = (spec.initContainers ?? []).map(asked);
  return Math.max(
    0,
    ...init,
    spec.containers.map(asked).reduce((a, b) => a + b, 0),
  );
}

function hintsFor(request: number, sizes: readonly number[], free: readonly number[]): readonly TopologyHint[] {
  const masks = Array.from({ length: 2 ** sizes.length - 1 }, (_, i) => i + 1);
  const on = (list: readonly number[], mask: number): number =>
    list.reduce((sum, n, i) => sum + ((mask & (1 << i)) === 0 ? 0 : n), 0);
  const smallest = Math.min(...masks.filter((mask) => on(sizes, mask) >= request).map(countNodes));
  return masks
    .filter((mask) => on(free, mask) >= request)
    .map((mask) => ({ nodes: mask, preferred: countNodes(mask) === smallest }));
}

function take(request: number, { nodes }: TopologyHint, free: number[]): void {
  let left = request;
  const near = (i: number): boolean => nodes !== null && (nodes & (1 << i)) !== 0;
  const order = free.map((_, i) => i).sort((a, b) => Number(near(b)) - Number(near(a)) || a - b);
  for (const i of order) {
    const taken = Math.min(left, free[i] as number);
    free[i] = (free[i] as number) - taken;
    left -= taken;
  }
}
