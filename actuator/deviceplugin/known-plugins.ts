import { LIMITS } from "../../api/model/limits.ts";
import { givingWay } from "./fair-share.ts";
import { afterEvent, NO_PLUGINS, type PluginEvent, type Plugins } from "./plugins.ts";

/** A snapshot's node has room for them beside its own. */
export const MOST_RESOURCES = LIMITS.deviceResources;

/** What is known of all plugins now, within what one snapshot takes. */
export class KnownPlugins {
  readonly #onChange: () => void;
  #now = NO_PLUGINS;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get now(): Plugins {
    return this.#now;
  }
  apply(event: PluginEvent): void {
    const before = this.#now;
    this.#now = afterEvent(before, event);
    if (this.#now !== before) this.#onChange();
  }
  /** A list that there is `roomFor`: those of plugins that have stopped give way to it. */
  listed(event: PluginEvent & { readonly kind: "listed" }): void {
    for (const { resource, generation } of givingWay(event.resource, event.devices.length, this.#now)) {
      this.apply({ kind: "gave-way", resource, generation });
    }
    this.apply(event);
  }

  /**
   * Whether there is room for a resource while so many others register. Nothing is kept any more of such as are gone for
   * good, where it needs theirs.
   */
  makesRoom(resource: string, registering: number): boolean {
    if (this.#now.has(resource)) return true;
    const isFull = (): boolean => this.#now.size + registering >= MOST_RESOURCES;
    for (const { resource: gone, generation, state } of this.#now.values()) {
      if (!isFull()) break;
      if (state === "removed") this.apply({ kind: "forgotten", resource: gone, generation });
    }
    return !isFull();
  }
}
