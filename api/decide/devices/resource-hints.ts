import { type Amount, value } from "../../model/amount.ts";
import type { ResourceHints, TopologyHint } from "../topology/hint.ts";
import type { NumaNodes } from "../topology/numa-nodes.ts";
import type { DeviceState } from "./device-state.ts";
import { deviceHints } from "./hints.ts";
import { hasTopology, type Inventories, type Inventory } from "./inventory.ts";

const NONE: ReadonlySet<string> = new Set();

export interface HintSources {
  readonly state: DeviceState;
  readonly inventories: Inventories;
  readonly nodes: NumaNodes;
}
/** kubelet 1.36: devicemanager GetTopologyHints, GetPodTopologyHints. */
export function hintsOf(
  { state, inventories, nodes }: HintSources,
  limits: ReadonlyMap<string, Amount>,
  held: (resource: string) => ReadonlySet<string> | undefined,
  left: (resource: string) => ReadonlySet<string>,
): ResourceHints {
  const hints = new Map<string, readonly TopologyHint[] | null>();
  for (const [resource, amount] of limits) {
    if (!state.isDeviceResource(resource)) continue;
    const inventory = inventories.get(resource);
    const ask = {
      request: value(amount),
      held: held(resource) ?? NONE,
      left: left(resource),
      inUse: state.inUse(resource),
    };
    // where devices are says nothing, so it does not matter
    hints.set(
      resource,
      inventory === undefined || !hasTopology(inventory) ? null : resourceHints(inventory, nodes, ask),
    );
  }
  return hints;
}

interface HintAsk {
  readonly request: number;
  readonly held: ReadonlySet<string>;
  readonly left: ReadonlySet<string>;
  readonly inUse: ReadonlySet<string>;
}
function resourceHints(inventory: Inventory, nodes: NumaNodes, ask: HintAsk): readonly TopologyHint[] {
  const { request, held, left, inUse } = ask;
  // what it holds is what it gets: the same hints again
  if (held.size > 0) return held.size === request ? deviceHints(inventory, held, [], request, nodes) : [];
  const available = inventory.ids.filter((id) => inventory.healthy.has(id) && !inUse.has(id));
  if (new Set([...available, ...left]).size < request) return [];
  return deviceHints(inventory, available, left, request, nodes);
}
