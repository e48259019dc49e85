import { LIMITS } from "../../api/model/limits.ts";
import type { PluginFault } from "./fault.ts";
import { isListing, type PluginState, type Plugins } from "./plugins.ts";

/**
 * Devices that the plugin of a resource may list, where all plugins that list together may have as many as one snapshot
 * takes. Of n plugins one that lists an n-th of that is always taken: where it is too much, another lists more, and that
 * one gives way (`greedier`). What a plugin listed that has stopped counts against nobody.
 */
export function roomFor(resource: string, plugins: Plugins): number {
  const others = othersOf(resource, plugins);
  const greediest = Math.max(0, ...others.map(sizeOf));
  return Math.max(LIMITS.devices - sumOf(others), greediest - 1);
}

/** The plugin that is to stop for `count` devices of a resource, within its `roomFor`; undefined: all fit. */
export function greedier(resource: string, count: number, plugins: Plugins): PluginState | undefined {
  const others = othersOf(resource, plugins);
  if (sumOf(others) + count <= LIMITS.devices) return undefined;
  return others.reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a));
}

/** Told of a plugin that stops for another's list. */
export function greedyFault({ resource, endpoint, devices }: PluginState, other: string, count: number): PluginFault {
  const message = `it lists ${devices.length} devices, and no other plugin lists more: all plugins together may list ${LIMITS.devices}, and \`${other}\` lists ${count} now`;
  return { resource, endpoint, call: "ListAndWatch", code: "TOO_MANY_DEVICES", message };
}

/** Those that have stopped and whose lists give way, the longest lists first, so that all lists are one snapshot's. */
export function givingWay(resource: string, count: number, plugins: Plugins): readonly PluginState[] {
  const others = [...plugins.values()].filter((plugin) => plugin.resource !== resource);
  const stale = others.filter((plugin) => !isListing(plugin)).sort((a, b) => sizeOf(b) - sizeOf(a));
  let over = sumOf(others) + count - LIMITS.devices;
  return stale.filter((plugin) => {
    if (over <= 0 || sizeOf(plugin) === 0) return false;
    over -= sizeOf(plugin);
    return true;
  });
}

const sizeOf = ({ devices }: PluginState): number => devices.length;
const sumOf = (plugins: readonly PluginState[]): number => plugins.reduce((sum, plugin) => sum + sizeOf(plugin), 0);
const othersOf = (resource: string, plugins: Plugins): readonly PluginState[] =>
  [...plugins.values()].filter((plugin) => plugin.resource !== resource && isListing(plugin));
