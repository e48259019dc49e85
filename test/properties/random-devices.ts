import { err, ok } from "../../api/base/result.ts";
import { type DeviceCheckpoint, writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../api/decide/devices/checkpoint-read.ts";
import {
  type Device,
  type DeviceResource,
  type Inventories,
  inventoriesOf,
} from "../../api/decide/devices/inventory.ts";
import { type DeviceManager, deviceManager } from "../../api/decide/devices/manager.ts";
import type { PreferredAllocation } from "../../api/decide/devices/preferred.ts";
import { numaNodes } from "../../api/decide/topology/hint.ts";
import type { Pod } from "../../api/model/pod.ts";
import { epochMs } from "../../api/model/units.ts";
import { devicePod } from "../decide/devices/devices-kit.ts";
import { BEHAVIOUR } from "../kit/profiles.ts";
import { type Draws, shuffled } from "./draws.ts";

export const RESOURCES = ["example.com/gpu", "example.com/nic", "vendor.io/fpga"] as const;
const NODES = [0, 2, 3];
const START = 1_800_000_000_000;

/** A node whose plugins, pods and kubelet change from step to step; the kubelet's state is only in its file. */
export interface DeviceWorld {
  readonly resources: Map<string, DeviceResource>;
  readonly pods: Map<string, Pod>;
  now: number;
  startedAt: number;
  sourcesReady: boolean;
  /** Each `uid/container` that was running when the kubelet started. */
  running: Set<string>;
  file: string;
  made: number;
}

const randomDevice = (i: number, d: Draws): Device => ({
  id: `dev-${i}`,
  health: d.chance(6) ? "Unhealthy" : "Healthy",
  numaNodes: d.pick<readonly number[] | undefined>([[0], [0], [2], [3], [2, 3], [], undefined, [9]]),
});
function randomResource(resource: string, d: Draws): DeviceResource {
  const placed = !d.chance(3);
  const devices = Array.from({ length: d.below(9) }, (_, i) => randomDevice(i, d));
  return {
    resource,
    devices: placed ? devices : devices.map(({ id, health }) => ({ id, health })),
    plugin: { registered: true, options: { getPreferredAllocationAvailable: d.chance(2) } },
  };
}
export function deviceWorld(d: Draws): DeviceWorld {
  return {
    resources: new Map(RESOURCES.filter(() => !d.chance(5)).map((r) => [r, randomResource(r, d)])),
    pods: new Map(),
    now: START,
    startedAt: START,
    sourcesReady: true,
    running: new Set(),
    file: writeCheckpoint({ entries: null, registered: new Map() }),
    made: 0,
  };
}

export const checkpointOf = (world: DeviceWorld): DeviceCheckpoint => {
  const read = readCheckpoint(world.file);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
};
export const inventoriesNow = (world: DeviceWorld): Inventories =>
  inventoriesOf({
    resources: [...world.resources.values()],
    checkpointed: checkpointOf(world).registered?.keys() ?? [],
    now: epochMs(world.now),
    kubeletStartedAt: epochMs(world.startedAt),
  });
/**
 * A plugin that prefers the last devices, sometimes answers with too few or with wrong ones, and fails for three of
 * many.
 */
const unreliable: PreferredAllocation = ({ available, mustInclude, size }) => {
  if (size === 3 && available.length > 6) return err("busy");
  if (size === 2 && available.length % 3 === 0) return undefined;
  return ok([...mustInclude, ...[...available].reverse().slice(0, size - (available.length % 2)), "no-such-device"]);
};
export function managerNow(world: DeviceWorld): DeviceManager {
  return deviceManager({
    inventories: inventoriesNow(world),
    checkpoint: checkpointOf(world),
    nodes: numaNodes(NODES),
    sourcesReady: world.sourcesReady,
    activePods: new Set(world.pods.keys()),
    runningAtStart: (uid, container) => world.running.has(`${uid}/${container}`),
    prefer: unreliable,
    behaviour: BEHAVIOUR,
  });
}

export function randomDevicePod(world: DeviceWorld, d: Draws): Pod {
  const limits = () => Object.fromEntries(["cpu", ...RESOURCES].filter(() => d.chance(2)).map((r) => [r, d.below(4)]));
  const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, limits()]));
  const init = ["i0", "i1", "i2"].slice(0, d.chance(2) ? d.below(4) : 0);
  return devicePod(`uid-${world.made++}`, {
    init: named(init),
    sidecars: init.filter(() => d.chance(3)),
    containers: named(["c0", "c1"].slice(0, 1 + d.below(2))),
  });
}

/** Something other than a new pod happens on the node; returns the event's name. */
export function happen(world: DeviceWorld, d: Draws): string {
  const names = [...world.resources.keys()];
  const resource = world.resources.get(names.length > 0 ? d.pick(names) : "");
  const plugin = resource?.plugin ?? { registered: false };
  const event = d.pick([
    "gone",
    "gone",
    "gone",
    "health",
    "list",
    "stop",
    "back",
    "wait",
    "restart",
    "reboot",
    "ready",
    "ready",
  ]);
  if (event === "gone" && world.pods.size > 0) world.pods.delete(d.pick([...world.pods.keys()]));
  if (event === "wait") world.now += d.pick([1000, 60_000, 301_000]);
  if (event === "ready") world.sourcesReady = true;
  if (event === "restart" || event === "reboot") restart(world, event === "restart", d);
  if (resource === undefined) return event;
  const set = (change: Partial<DeviceResource>) => world.resources.set(resource.resource, { ...resource, ...change });
  if (event === "health") {
    set({
      devices: shuffled(resource.devices, d).map((x) => ({ ...x, health: d.chance(5) ? "Unhealthy" : "Healthy" })),
    });
  }
  if (event === "list" && plugin.registered) set({ devices: randomResource(resource.resource, d).devices });
  if (event === "stop" && plugin.registered)
    set({ plugin: { ...plugin, registered: false, stoppedAt: epochMs(world.now) } });
  if (event === "back") set({ plugin: { ...plugin, registered: true } });
  return event;
}

/** Restarts the kubelet: plugins must register again, and after a reboot no container is running. */
function restart(world: DeviceWorld, containersRun: boolean, d: Draws): void {
  world.startedAt = world.now;
  world.sourcesReady = false;
  const all = [...world.pods.values()].flatMap((p) => p.spec.containers.map((c) => `${p.metadata.uid}/${c.name}`));
  world.running = new Set(containersRun ? all : []);
  for (const [name, r] of world.resources) {
    const options = r.plugin?.options;
    world.resources.set(name, { ...r, plugin: { registered: d.chance(2), options } });
  }
}
