import { byText } from "../../api/base/order.ts";
import { type DeviceCheckpoint, idsOf, numaOf, type PodDevicesEntry } from "../../api/decide/devices/checkpoint.ts";
import { naturalOrder } from "../../api/decide/devices/natural-order.ts";
import type { Device } from "../../api/model/machine.ts";
import { HEALTHY } from "../deviceplugin/names.ts";
import type { PluginState } from "../deviceplugin/plugins.ts";
import type { DeviceHolder, DeviceRow } from "./node-status.ts";

interface DeviceRowParts {
  readonly states: readonly PluginState[];
  /** The allocations; undefined: no device is held. */
  readonly checkpoint: DeviceCheckpoint | undefined;
  /** NAMESPACE/NAME of a pod that is known, else its uid. */
  readonly nameOf: (uid: string) => string;
}
/** The checkpoint's NUMA node for a device without a known one. */
const NOWHERE = -1;

/**
 * One row per resource that a plugin has registered or that the checkpoint contains, sorted by name. Capacity,
 * allocatable and allocated are those of the `devices` decision. kubelet 1.36: GetCapacity, podDevices.devices.
 */
export function deviceRows({ states, checkpoint, nameOf }: DeviceRowParts): readonly DeviceRow[] {
  const entries = entriesOf(checkpoint);
  const plugins = new Map(states.map((state) => [state.resource, state]));
  const names = new Set([...plugins.keys(), ...entries.keys(), ...(checkpoint?.registered?.keys() ?? [])]);
  return [...names]
    .sort()
    .map((resource) => rowOf(resource, plugins.get(resource), entries.get(resource) ?? [], nameOf));
}

function rowOf(
  resource: string,
  state: PluginState | undefined,
  entries: readonly PodDevicesEntry[],
  nameOf: (uid: string) => string,
): DeviceRow {
  const devices = state?.devices ?? [];
  const held = new Set(entries.flatMap(idsOf));
  const healthy = state?.state === "registered" ? devices.filter(({ health = HEALTHY }) => health === HEALTHY) : [];
  return {
    resource,
    plugin: state?.state ?? "unregistered",
    endpoint: state?.endpoint ?? null,
    capacity: devices.length + (state?.gaveWay ?? 0),
    allocatable: healthy.length,
    allocated: held.size,
    flips: state?.flips ?? 0,
    numa: countsByNuma(devices, held),
    holders: entries
      .map((entry) => holderOf(entry, nameOf))
      .sort((a, b) => byText(a.pod, b.pod) || byText(a.container, b.container) || byText(a.uid, b.uid)),
    pending: entries.filter(({ allocResp }) => allocResp === null).length,
  };
}

const holderOf = (entry: PodDevicesEntry, nameOf: (uid: string) => string): DeviceHolder => ({
  pod: nameOf(entry.podUid),
  uid: entry.podUid,
  container: entry.containerName,
  ids: idsOf(entry).toSorted(naturalOrder),
  numa: numaOf(entry),
  isPending: entry.allocResp === null,
});

function countsByNuma(devices: readonly Device[], held: ReadonlySet<string>): DeviceRow["numa"] {
  const nodes = new Map<number, { devices: number; allocated: number }>();
  for (const { id, numaNodes = [] } of devices) {
    for (const node of numaNodes.length === 0 ? [NOWHERE] : new Set(numaNodes)) {
      const count = nodes.get(node) ?? { devices: 0, allocated: 0 };
      nodes.set(node, { devices: count.devices + 1, allocated: count.allocated + Number(held.has(id)) });
    }
  }
  return [...nodes].sort(([a], [b]) => a - b).map(([node, counts]) => ({ node, ...counts }));
}

/** Groups the entries by resource. */
function entriesOf(checkpoint: DeviceCheckpoint | undefined): ReadonlyMap<string, readonly PodDevicesEntry[]> {
  const entries = new Map<string, PodDevicesEntry[]>();
  for (const entry of checkpoint?.entries ?? []) {
    const known = entries.get(entry.resourceName);
    if (known === undefined) entries.set(entry.resourceName, [entry]);
    else known.push(entry);
  }
  return entries;
}
