import type { TestedResource } from "../../model/admission.ts";
import type { Amounts } from "../../model/aggregate.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Pod } from "../../model/pod.ts";
import { isExtendedResource } from "../../model/resource-name.ts";
import { isHugePage } from "../hugepages.ts";
import { unitsOf } from "../resources/pod-units.ts";
import { countedRequests } from "./counted-pods.ts";

/** Resource -> thousandths of a CPU, or whole units. */
export type Units = ReadonlyMap<string, number>;

const FIRST = ["cpu", "memory", "ephemeral-storage"];

/** Counted beside cpu, memory and ephemeral-storage; other names are not looked at. kubernetes 1.36: IsScalarResourceName. */
const isScalar = (name: string): boolean =>
  isExtendedResource(name) ||
  isHugePage(name) ||
  name.includes("kubernetes.io/") ||
  name.startsWith("attachable-volumes-");

/** What a node can give, and what of it is taken. */
export interface NodeRoom {
  /** May be raised to what is allocated already. */
  readonly allocatable: Map<string, number>;
  readonly used: Units;
  readonly pods: number;
}

/** `pods`: those that count on the node. `podLevel`: see `countedRequests`. kubernetes 1.36: NodeInfo. */
export function nodeRoom(allocatable: ResourceList, pods: readonly Pod[], podLevel: boolean): NodeRoom {
  const used = new Map<string, number>();
  for (const pod of pods) {
    for (const [name, amount] of countedRequests(pod, podLevel)) {
      used.set(name, (used.get(name) ?? 0) + unitsOf(name, amount));
    }
  }
  const units = Object.entries(allocatable).map(([name, { amount }]) => [name, unitsOf(name, amount)] as const);
  return { allocatable: new Map(units), used, pods: pods.length };
}

/**
 * Every resource that is tested, in the kubelet's order: the number of pods always, others where they are asked for. Of
 * the other resources the kubelet's own order is that of a Go map; here it is that of their names.
 * kubernetes 1.36: noderesources.Fits.
 */
export function testResources(requests: Amounts, room: NodeRoom): readonly TestedResource[] {
  const tested = (resource: string, requested: number, used: number, capacity: number): TestedResource => ({
    resource,
    requested,
    used,
    capacity,
    insufficient: Math.max(0, requested - (capacity - used)),
  });
  const names = [...requests.keys()].filter((name) => !FIRST.includes(name) && isScalar(name)).sort();
  const asked = [...FIRST, ...names].flatMap((name) => {
    const requested = unitsOf(name, requests.get(name) ?? 0);
    return requested === 0 ? [] : [tested(name, requested, room.used.get(name) ?? 0, room.allocatable.get(name) ?? 0)];
  });
  return [tested("pods", 1, room.pods, room.allocatable.get("pods") ?? 0), ...asked];
}
