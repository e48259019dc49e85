import { limitsOf } from "../../../api/decide/devices/limits.ts";
import { value } from "../../../api/model/amount.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { decodedPod } from "../decoded-pod.ts";

/** Container -> extended resource -> how many of its devices; containers that want none are left out. */
export type WantedDevices = ReadonlyMap<string, ReadonlyMap<string, number>>;

const known = new WeakMap<object, WantedDevices>();

/** What a pod's containers want of device plugins, init containers first, in the pod's order. */
export function wantedDevices({ object }: Pick<RunnablePod, "object">): WantedDevices {
  const before = known.get(object);
  if (before !== undefined) return before;
  const spec = decodedPod(object)?.spec;
  const wanted = new Map<string, ReadonlyMap<string, number>>();
  for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
    const amounts = [...limitsOf(container)].map(([name, amount]) => [name, value(amount)] as const);
    const devices = amounts.filter(([name, count]) => count > 0 && isExtendedResource(name));
    if (devices.length > 0) wanted.set(container.name, new Map(devices));
  }
  known.set(object, wanted);
  return wanted;
}

/** The names of what any container of a pod wants, in their order. */
export const wantedResources = (pod: Pick<RunnablePod, "object">): readonly string[] =>
  [...new Set([...wantedDevices(pod).values()].flatMap((amounts) => [...amounts.keys()]))].sort();
