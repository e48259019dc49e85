import type { Device, DevicePlugin } from "../../api/model/devices.ts";
import { HEALTHY } from "./messages.ts";
import type { Plugins } from "./plugins.ts";

export interface ResourceAmount {
  readonly capacity: number;
  /** Those that are healthy. */
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
 * What the node's status says of each resource: one that is removed stays there with 0. kubelet 1.36: GetCapacity and, for
 * removed ones, MachineInfo.
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
