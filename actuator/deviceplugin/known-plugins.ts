import { LIMITS } from "../../api/base/limits.ts";
import type { PluginFault } from "./fault.ts";
import { isListing, type PluginEvent, type PluginState, type Plugins, stateAfter } from "./plugins.ts";

/** A snapshot's node has room for these beside its own resources. */
export const MAX_RESOURCES = LIMITS.deviceResources;

/** The fault of a plugin that is displaced by another although pods hold its devices. */
export function displacedFault({ resource, endpoint }: PluginState, other: string): PluginFault {
  const message = `it is replaced by \`${other}\`, of which pods hold devices: device plugins have ${MAX_RESOURCES} resources already, the most that a node takes`;
  return { resource, endpoint, call: "Register", code: "RESOURCE_EXHAUSTED", message };
}

/** The state of all plugins, within the limits of one snapshot. */
export class KnownPlugins {
  readonly #onChange: () => void;
  readonly #isInUse: IsInUse;
  readonly #now = new Map<string, PluginState>();

  constructor(onChange: () => void, isInUse: IsInUse) {
    this.#onChange = onChange;
    this.#isInUse = isInUse;
  }

  get now(): Plugins {
    return this.#now;
  }
  apply(event: PluginEvent): void {
    const before = this.#now.get(event.resource);
    const after = stateAfter(before, event);
    if (after === before) return;
    if (after === undefined) this.#now.delete(event.resource);
    else this.#now.set(event.resource, after);
    this.#onChange();
  }
  /** Devices that its plugin may list. */
  freeSlots(resource: string): number {
    return listSizeLimit(resource, this.#now, this.#isInUse);
  }
  /** The plugins that are to stop for a list that fits (`listSizeLimit`). */
  stoppedFor(resource: string, count: number): readonly PluginState[] {
    return stoppedFor(resource, count, this.#now, this.#isInUse);
  }
  /** Stores a list that fits (`listSizeLimit`): lists of stopped plugins are dropped for it. */
  listed(event: PluginEvent & { readonly kind: "listed" }): void {
    const before = this.#now.get(event.resource);
    const { size = event.devices.length } = event;
    const grows = before === undefined || !isListing(before) || size > (before.size ?? before.devices.length);
    for (const { resource, generation } of grows ? droppedFor(event.resource, size, this.#now) : []) {
      this.apply({ kind: "gave-way", resource, generation });
    }
    this.apply(event);
  }

  /**
   * Whether there is room for one more resource while `registering` others register. Removed resources are forgotten
   * if their room is needed.
   */
  makesRoom(resource: string, registering: number): boolean {
    if (this.#now.has(resource)) return true;
    const isFull = (): boolean => this.#now.size + registering >= MAX_RESOURCES;
    for (const { resource: gone, state } of this.#now.values()) {
      if (!isFull()) break;
      if (state === "removed") this.forget(gone);
    }
    return !isFull();
  }
  /** Forgets a resource that was removed. */
  forget(resource: string): void {
    const generation = this.#now.get(resource)?.generation;
    if (generation !== undefined) this.apply({ kind: "forgotten", resource, generation });
  }
  /** The plugin to displace for a resource whose devices pods hold: the last one whose devices no pod holds; undefined: none, or not needed. */
  displacedBy(resource: string, registering: number): PluginState | undefined {
    if (!this.#isInUse(resource) || this.makesRoom(resource, registering)) return undefined;
    return [...this.#now.values()].findLast((plugin) => !this.#isInUse(plugin.resource));
  }
}

/** Whether a pod holds devices of the resource. */
export type IsInUse = (resource: string) => boolean;

interface Claim {
  readonly plugin: PluginState;
  readonly count: number;
  /** True: its list is at most half of what the plugins before it left. */
  readonly isWithin: boolean;
}

/**
 * The maximum list size (as `DeviceList.size` counts) for the plugin of a resource, since all lists together must
 * fit into one snapshot. Plugins whose devices pods hold come first, then the earlier registered. Each plugin keeps
 * half of what those before it left, so many small plugins cannot displace anyone, and there is always room for one
 * more. Beyond its half a plugin may use free room until another needs it; then the last plugin's list is dropped.
 */
export function listSizeLimit(resource: string, plugins: Plugins, isInUse: IsInUse): number {
  let kept = LIMITS.devices;
  let half = 0;
  // its part beyond the half is dropped before everything that is counted here
  let beyond = LIMITS.devices;
  let isBefore = true;
  for (const plugin of inOrder(resource, plugins, isInUse)) {
    const most = Math.floor(kept / 2);
    if (plugin.resource === resource) {
      half = most;
      kept -= most;
      isBefore = false;
      continue;
    }
    const count = sizeOf(plugin);
    if (isBefore || count <= most) beyond -= count;
    kept -= Math.min(count, most);
  }
  return Math.max(half, beyond);
}

/** The plugins that are to stop for a list that counts as `count` devices of a resource, within its `listSizeLimit`. */
export function stoppedFor(
  resource: string,
  count: number,
  plugins: Plugins,
  isInUse: IsInUse,
): readonly PluginState[] {
  const own = plugins.get(resource);
  if (own !== undefined && isListing(own) && count <= sizeOf(own)) return [];
  const claims = claimsOf(resource, count, plugins, isInUse);
  let over = claims.reduce((sum, claim) => sum + claim.count, 0) - LIMITS.devices;
  const stop: PluginState[] = [];
  for (const { plugin, count: listed, isWithin } of claims.toReversed()) {
    if (over <= 0) break;
    if (isWithin || plugin.resource === resource) continue;
    stop.push(plugin);
    over -= listed;
  }
  return stop;
}

/** The fault of a plugin that is stopped because of another's list. */
export function stoppedFault({ resource, endpoint, devices }: PluginState, other: string, count: number): PluginFault {
  const message = `it lists ${devices.length} devices, and \`${other}\` lists ${count} now: all plugins together may list ${LIMITS.devices}, of which each is kept half of what those that are in use or came before it leave`;
  return { resource, endpoint, call: "ListAndWatch", code: "TOO_MANY_DEVICES", message };
}

/** Plugins whose lists are dropped, the longest first, so that all lists fit into one snapshot. */
export function droppedFor(resource: string, count: number, plugins: Plugins): readonly PluginState[] {
  let over = count - LIMITS.devices;
  for (const plugin of plugins.values()) if (plugin.resource !== resource) over += sizeOf(plugin);
  if (over <= 0) return [];
  const stale = [...plugins.values()].filter((plugin) => plugin.resource !== resource && !isListing(plugin));
  stale.sort((a, b) => sizeOf(b) - sizeOf(a));
  return stale.filter((plugin) => {
    if (over <= 0 || sizeOf(plugin) === 0) return false;
    over -= sizeOf(plugin);
    return true;
  });
}

/** The plugins including the asking one, in the order of precedence. */
function claimsOf(resource: string, count: number, plugins: Plugins, isInUse: IsInUse): readonly Claim[] {
  let kept = LIMITS.devices;
  return inOrder(resource, plugins, isInUse).map((plugin) => {
    const listed = plugin.resource === resource ? count : sizeOf(plugin);
    const most = Math.floor(kept / 2);
    kept -= Math.min(listed, most);
    return { plugin, count: listed, isWithin: listed <= most };
  });
}
function inOrder(resource: string, plugins: Plugins, isInUse: IsInUse): readonly PluginState[] {
  const inUse: PluginState[] = [];
  const others: PluginState[] = [];
  for (const plugin of plugins.values())
    if (plugin.resource === resource || isListing(plugin)) (isInUse(plugin.resource) ? inUse : others).push(plugin);
  return inUse.concat(others);
}
/** A list that was dropped counts as 0. */
const sizeOf = ({ devices, size = 0 }: PluginState): number =>
  devices.length === 0 ? 0 : Math.max(devices.length, size);
