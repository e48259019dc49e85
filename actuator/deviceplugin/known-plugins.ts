import { LIMITS } from "../../api/model/limits.ts";
import { givingWay, type IsInUse, roomFor, yielding } from "./fair-share.ts";
import type { PluginFault } from "./fault.ts";
import { afterEvent, isListing, NO_PLUGINS, type PluginEvent, type PluginState, type Plugins } from "./plugins.ts";

/** A snapshot's node has room for them beside its own. */
export const MAX_RESOURCES = LIMITS.deviceResources;

/** Told of a plugin that goes for another, of which pods hold devices. */
export function pushedOut({ resource, endpoint }: PluginState, other: string): PluginFault {
  const message = `it gives way to \`${other}\`, of which pods hold devices: device plugins have ${MAX_RESOURCES} resources already, the most that a node takes`;
  return { resource, endpoint, call: "Register", code: "RESOURCE_EXHAUSTED", message };
}

/** The state of all plugins, within what one snapshot takes. */
export class KnownPlugins {
  readonly #onChange: () => void;
  readonly #isInUse: IsInUse;
  #now = NO_PLUGINS;

  constructor(onChange: () => void, isInUse: IsInUse) {
    this.#onChange = onChange;
    this.#isInUse = isInUse;
  }

  get now(): Plugins {
    return this.#now;
  }
  apply(event: PluginEvent): void {
    const before = this.#now;
    this.#now = afterEvent(before, event);
    if (this.#now !== before) this.#onChange();
  }
  /** Devices that its plugin may list. */
  roomFor(resource: string): number {
    return roomFor(resource, this.#now, this.#isInUse);
  }
  /** The plugins that are to stop for a list that there is `roomFor`. */
  yielding(resource: string, count: number): readonly PluginState[] {
    return yielding(resource, count, this.#now, this.#isInUse);
  }
  /** A list that there is `roomFor`: those of plugins that have stopped give way to it. */
  listed(event: PluginEvent & { readonly kind: "listed" }): void {
    const before = this.#now.get(event.resource);
    const { size = event.devices.length } = event;
    const grows = before === undefined || !isListing(before) || size > (before.size ?? before.devices.length);
    for (const { resource, generation } of grows ? givingWay(event.resource, size, this.#now) : []) {
      this.apply({ kind: "gave-way", resource, generation });
    }
    this.apply(event);
  }

  /**
   * True: there is room for one more resource while so many others register. Resources that are gone for good are forgotten if
   * their room is needed.
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
  /** The one to go for a resource that pods hold devices of: the last that none holds any of; undefined: there is none, or no need. */
  pushedOutBy(resource: string, registering: number): PluginState | undefined {
    if (!this.#isInUse(resource) || this.makesRoom(resource, registering)) return undefined;
    return [...this.#now.values()].findLast((plugin) => !this.#isInUse(plugin.resource));
  }
}
