import { unreachable } from "../../api/base/result.ts";
import type { Device, DevicePlugin } from "../../api/model/machine.ts";
import type { EpochMs } from "../../api/model/units.ts";
import { type DevicePluginOptions, HEALTHY, UNHEALTHY } from "./names.ts";

/** A device that changed its health, appeared, or vanished (`to` is null). */
export interface HealthFlip {
  readonly id: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly at: EpochMs;
}
/** The state of one resource and of its plugin. */
export interface PluginState {
  readonly resource: string;
  /** Number of its last registration: higher than that of any earlier registration of any resource. */
  readonly generation: number;
  /** The path of its socket. */
  readonly endpoint: string;
  readonly options: DevicePluginOptions;
  /** `stopped`: its stream has ended; `removed`: that was longer ago than the grace. */
  readonly state: "registered" | "stopped" | "removed";
  /** When the stream first ended after it was stable; absent while registered. */
  readonly stoppedAt?: EpochMs;
  /** True: the plugin has sent a list since it registered. */
  readonly listed: boolean;
  /** The last list in the snapshot's form; all devices are unhealthy once the plugin has stopped. */
  readonly devices: readonly Device[];
  /** The number of devices that the list counts as (`DeviceList.size`), if it is higher than their number. */
  readonly size?: number;
  /** The number of devices in a stopped plugin's list that was dropped for others: `devices` is empty then. */
  readonly gaveWay?: number;
  /** Changes of health since the start, of devices that were listed before and after. */
  readonly flips: number;
  /** The last of all changes, the newest last. */
  readonly history: readonly HealthFlip[];
}
/** Resource -> its plugin, in the order of their first registrations. */
export type Plugins = ReadonlyMap<string, PluginState>;

export type PluginEvent =
  | {
      readonly kind: "registered";
      readonly resource: string;
      readonly generation: number;
      readonly endpoint: string;
      readonly options: DevicePluginOptions;
    }
  | {
      readonly kind: "listed";
      readonly resource: string;
      readonly generation: number;
      readonly devices: readonly Device[];
      /** The devices that it counts as; absent: as it has. */
      readonly size?: number;
      readonly at: EpochMs;
    }
  | {
      readonly kind: "ended";
      readonly resource: string;
      readonly generation: number;
      readonly at: EpochMs;
      /** When a stream first ended after it was stable; absent: this is the first end. */
      readonly since?: EpochMs;
    }
  /** `removed`: the grace period is over. `gave-way`: the list was dropped, only its length stays. `forgotten`: a removed plugin is dropped. */
  | {
      readonly kind: "removed" | "gave-way" | "forgotten";
      readonly resource: string;
      readonly generation: number;
    };

/** Changes that are remembered of each resource. */
const HISTORY = 64;

/**
 * The state of a resource after an event; the same object if nothing changes, undefined if it is forgotten. Events of an
 * outdated generation are ignored: the end of an old stream never affects its replacement, as it may in the kubelet.
 * kubelet 1.36: PluginConnected, genericDeviceUpdateCallback, PluginDisconnected, GetCapacity.
 */
export function stateAfter(before: PluginState | undefined, event: PluginEvent): PluginState | undefined {
  if (event.kind === "registered")
    return before !== undefined && before.generation >= event.generation ? before : registered(before, event);
  if (before === undefined || before.generation !== event.generation) return before;
  switch (event.kind) {
    case "listed":
      return before.state === "registered" ? sized(listed(before, event.devices, event.at), event.size) : before;
    case "ended": {
      if (before.state !== "registered") return before;
      const unhealthy = before.devices.map((device) => ({ ...device, health: UNHEALTHY }));
      return {
        ...listed(before, unhealthy, event.at),
        ...(before.gaveWay === undefined ? {} : { gaveWay: before.gaveWay }),
        listed: before.listed,
        state: "stopped",
        stoppedAt: event.since ?? event.at,
      };
    }
    case "removed":
      return before.state === "stopped" ? { ...withoutGaveWay(before), state: "removed", devices: [] } : before;
    case "gave-way":
      return isListing(before) || before.devices.length === 0
        ? before
        : { ...before, devices: [], gaveWay: before.devices.length };
    case "forgotten":
      return before.state === "removed" ? undefined : before;
    default:
      return unreachable(event);
  }
}
/** Whether the plugin is registered and has sent its list. */
export const isListing = ({ state, listed }: PluginState): boolean => state === "registered" && listed;
const withoutGaveWay = ({ gaveWay: _, ...state }: PluginState): PluginState => state;
/** The state with another size. */
function sized(plugin: PluginState, size = 0): PluginState {
  const { size: before, ...rest } = plugin;
  const now = size > plugin.devices.length ? size : undefined;
  if (now === before) return plugin;
  return now === undefined ? rest : { ...rest, size: now };
}

/**
 * The state after a registration: until the new plugin sends a list, the old devices stay, unhealthy if the last
 * stream had ended.
 */
function registered(before: PluginState | undefined, event: PluginEvent & { kind: "registered" }): PluginState {
  const { resource, generation, endpoint, options } = event;
  const { devices = [], flips = 0, history = [], gaveWay, size } = before ?? {};
  const had = { devices, ...(gaveWay === undefined ? {} : { gaveWay }), ...(size === undefined ? {} : { size }) };
  return { resource, generation, endpoint, options, state: "registered", listed: false, ...had, flips, history };
}

/** Replaces the last list; returns the same state if the lists are equal. */
function listed(before: PluginState, devices: readonly Device[], at: EpochMs): PluginState {
  const { fresh, gone } = differing(before.devices, devices);
  const changes: HealthFlip[] = [];
  let flips = before.flips;
  let same = before.listed && before.devices.length === devices.length;
  for (const device of fresh) {
    const twin = gone.get(device.id);
    gone.delete(device.id);
    const to = device.health ?? HEALTHY;
    const from = twin === undefined ? null : (twin.health ?? HEALTHY);
    if (from !== to) {
      if (from !== null) flips++;
      changes.push({ id: device.id, from, to, at });
    } else if (isSamePlace(twin?.numaNodes, device.numaNodes)) continue;
    same = false;
  }
  if (same) return before;
  for (const { id, health = HEALTHY } of gone.values()) changes.push({ id, from: health, to: null, at });
  const history =
    changes.length === 0 ? before.history : [...before.history, ...changes.slice(-HISTORY)].slice(-HISTORY);
  return { ...withoutGaveWay(before), listed: true, devices, flips, history };
}

/** The added and removed devices; an equal object at the same index is skipped first, since few of thousands change. */
function differing(before: readonly Device[], now: readonly Device[]) {
  const fresh: Device[] = [];
  const gone = new Map<string, Device>();
  const most = Math.max(before.length, now.length);
  for (let i = 0; i < most; i++) {
    const was = before[i];
    const is = now[i];
    if (was === is) continue;
    if (was !== undefined) gone.set(was.id, was);
    if (is !== undefined) fresh.push(is);
  }
  return { fresh, gone };
}

type Nodes = Device["numaNodes"];
const isSamePlace = (a: Nodes, b: Nodes): boolean =>
  a === b || (a !== undefined && b !== undefined && `${a}` === `${b}`);

export interface ResourceAmount {
  readonly capacity: number;
  /** The number of healthy devices. */
  readonly allocatable: number;
}

/** `devices` of a snapshot: those of all resources. */
export const devicesOf = (plugins: Plugins): readonly Device[] =>
  [...plugins.values()].flatMap(({ devices }) => devices);

/** `devicePlugins` of a snapshot, without what they prefer. */
export const devicePluginsOf = (plugins: Plugins): readonly DevicePlugin[] =>
  [...plugins.values()].map(({ resource, state, stoppedAt, options }) => ({
    resource,
    registered: state === "registered",
    ...(stoppedAt === undefined ? {} : { stoppedAt: new Date(stoppedAt).toISOString() }),
    options,
  }));

/**
 * The node status's amount of each resource; a removed resource stays with 0. kubelet 1.36: GetCapacity and, for removed ones,
 * MachineInfo.
 */
export const amountsOf = (plugins: Plugins): ReadonlyMap<string, ResourceAmount> =>
  new Map(
    [...plugins.values()].map(({ resource, devices, gaveWay = 0 }) => [
      resource,
      {
        capacity: devices.length + gaveWay,
        allocatable: devices.filter(({ health = HEALTHY }) => health === HEALTHY).length,
      },
    ]),
  );
