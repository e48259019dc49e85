import { type DeviceResource, inventoriesOf, type PluginOptions } from "../../../api/decide/devices/inventory.ts";
import { type DeviceManager, type DeviceManagerInput, deviceManager } from "../../../api/decide/devices/manager.ts";
import { ANY_NODE, numaNodes, type TopologyHint } from "../../../api/decide/topology/hint.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import { epochMs } from "../../../api/model/units.ts";
import { container, sidecar } from "../../kit/containers.ts";
import { decodedPod, namedPod } from "../../kit/pods.ts";
import { BEHAVIOUR } from "../../kit/profiles.ts";

export const GPU = "example.com/gpu";
export const NIC = "example.com/nic";
export const NOW = epochMs(1_800_000_000_000);

/** `gpu-0: 0` is a healthy device on NUMA node 0; null: without topology; `-gpu-0` is an unhealthy device. */
export function resource(
  name: string,
  devices: Readonly<Record<string, readonly number[] | null>>,
  options: PluginOptions = {},
): DeviceResource {
  return {
    resource: name,
    devices: Object.entries(devices).map(([id, numaNodes]) => ({
      id: id.replace(/^-/, ""),
      health: id.startsWith("-") ? "Unhealthy" : "Healthy",
      ...(numaNodes !== null && { numaNodes }),
    })),
    plugin: { registered: true, options },
  };
}
/** `count` devices without topology: `a-0`, `a-1`. */
export const plain = (name: string, count: number, options: PluginOptions = {}): DeviceResource =>
  resource(name, Object.fromEntries(Array.from({ length: count }, (_, i) => [`a-${i}`, null])), options);

type Limits = Readonly<Record<string, number | string>>;
export interface PodShape {
  readonly init?: Readonly<Record<string, Limits>>;
  readonly sidecars?: readonly string[];
  readonly containers: Readonly<Record<string, Limits>>;
}
export function devicePod(uid: string, { init = {}, sidecars = [], containers }: PodShape): Pod {
  const list = (of: Readonly<Record<string, Limits>>) =>
    Object.entries(of).map(([name, counts]) => {
      const limits = Object.fromEntries(Object.entries(counts).map(([k, v]) => [k, `${v}`]));
      return sidecars.includes(name) ? sidecar(name, undefined, limits) : container(name, undefined, limits);
    });
  return decodedPod(namedPod(uid, list(containers), { initContainers: list(init) }));
}

export interface Scene extends Partial<Omit<DeviceManagerInput, "inventories" | "nodes">> {
  readonly resources: readonly DeviceResource[];
  readonly numaNodes?: readonly number[];
}
export function managerOf({ resources, numaNodes: ids = [0, 1], ...rest }: Scene): DeviceManager {
  return deviceManager({
    inventories: inventoriesOf({
      resources,
      checkpointed: rest.checkpoint?.registered?.keys() ?? [],
      now: NOW,
      kubeletStartedAt: undefined,
    }),
    checkpoint: undefined,
    nodes: numaNodes(ids),
    sourcesReady: true,
    activePods: new Set(),
    runningAtStart: () => false,
    prefer: () => undefined,
    behaviour: BEHAVIOUR,
    ...rest,
  });
}

/**
 * Allocates devices to every container of a pod, as the kubelet does at admission; returns the first error's message.
 */
export function admit(manager: DeviceManager, pod: Pod, affinity: TopologyHint = ANY_NODE): string | undefined {
  for (const container of containersOf(pod)) {
    const allocated = manager.allocate(pod, container, affinity);
    if (!allocated.ok) return allocated.error.message;
  }
  return undefined;
}
/** The ids of the resource that each `pod/container` holds. */
export function held(manager: DeviceManager, resource: string): Record<string, readonly string[]> {
  const entries: [string, readonly string[]][] = [];
  for (const [uid, containers] of manager.state.pods) {
    for (const [name, resources] of containers) {
      const ids = resources.get(resource)?.ids;
      if (ids !== undefined) entries.push([`${uid}/${name}`, [...ids]]);
    }
  }
  return Object.fromEntries(entries);
}
