import { type Amount, add, max, ZERO } from "./amount.ts";
import type { ResourceList } from "./fields.ts";
import { isSidecar, type Pod } from "./pod.ts";

/** Resource name -> exact amount. */
export type Amounts = Map<string, Amount>;
type Maybe<T> = T | null | undefined;

export function addList(sum: Amounts, list: Maybe<ResourceList>): void {
  for (const name in list) {
    const amount = (list[name] as { amount: Amount }).amount;
    const before = sum.get(name);
    sum.set(name, before === undefined ? amount : add(before, amount));
  }
}
function raiseTo(sum: Amounts, floor: ReadonlyMap<string, Amount>): void {
  for (const [name, amount] of floor) {
    const before = sum.get(name);
    sum.set(name, before === undefined ? amount : max(before, amount));
  }
}

/**
 * Computes what the containers of a pod need together: the larger of (containers + sidecars) and, for each init
 * container in order, (the init container + the sidecars before it). `seen` receives the values that the kubelet's "is
 * it limited" test looks at: a container alone, or an init container with the sidecars started before it. kubernetes
 * 1.36: AggregateContainerRequests, -Limits.
 */
export function aggregateContainers(
  pod: Pod,
  which: "requests" | "limits",
  seen?: (amountOf: (name: string) => Amount) => void,
): Amounts {
  const sum: Amounts = new Map();
  for (const c of pod.spec.containers) {
    const list = c.resources?.[which];
    addList(sum, list);
    seen?.((name) => list?.[name]?.amount ?? ZERO);
  }
  const init = pod.spec.initContainers;
  if (init === null || init === undefined || init.length === 0) return sum;
  const sidecars: Amounts = new Map();
  const floor: Amounts = new Map();
  for (const c of init) {
    const list = c.resources?.[which];
    let together = sidecars;
    if (isSidecar(c)) {
      addList(sum, list);
      addList(sidecars, list);
    } else {
      together = new Map(sidecars);
      addList(together, list);
    }
    seen?.((name) => together.get(name) ?? ZERO);
    raiseTo(floor, together);
  }
  raiseTo(sum, floor);
  return sum;
}
