import { STOP_GRACE_MS } from "../../api/decide/devices/inventory.ts";
import { LIMITS } from "../../api/model/limits.ts";
import { err, ok } from "../../api/model/result.ts";
import type { EpochMs } from "../../api/model/units.ts";
import { type Endpoint, openEndpoint, type PluginTimeouts } from "./endpoint.ts";
import type { Answered, PluginFault } from "./fault.ts";
import { LookLoad } from "./look-load.ts";
import { afterEvent, NO_PLUGINS, type PluginEvent, type Plugins } from "./plugins.ts";
import { Reconnects } from "./reconnects.ts";

export interface FleetOptions {
  readonly timeouts: PluginTimeouts;
  /** From the end of a stream until its resource has no devices any more. */
  readonly graceMs?: number;
  readonly now: () => EpochMs;
  readonly onChange: () => void;
  readonly onFault: (fault: PluginFault) => void;
}
interface Live {
  readonly generation: number;
  readonly endpoint: Endpoint;
}

/** Resources that a node may have: a snapshot takes no more. */
const MOST_RESOURCES = 1024;
const MOST_REGISTERING = 128;

/** The plugins that are connected, and what is known of all: each by its generation, so that no end is another's. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #live = new Map<string, Live>();
  /** Resource -> the generation of the last registration that its plugin made itself. */
  readonly #origins = new Map<string, number>();
  readonly #registering = new Set<{ readonly resource: string }>();
  readonly #graces = new Map<string, NodeJS.Timeout>();
  readonly #reconnects = new Reconnects((resource, path) => this.#reconnect(resource, path));
  readonly #load = new LookLoad();
  readonly #life = new AbortController();
  #plugins = NO_PLUGINS;
  #lastGeneration = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  get plugins(): Plugins {
    return this.#plugins;
  }
  /** Undefined: no plugin has the resource now. */
  endpointOf(resource: string): Endpoint | undefined {
    return this.#live.get(resource)?.endpoint;
  }

  /**
   * Dials a plugin and listens to it; of two for one resource the one that registered last stays, whichever answers
   * first. A plugin that cannot be dialed leaves the one before as it is. The value is its generation.
   */
  async register(resource: string, socketPath: string): Answered<number> {
    const generation = ++this.#lastGeneration;
    const fault = (code: string, message: string) =>
      err({ resource, endpoint: socketPath, call: "Register", code, message });
    const under = this.#registering.size;
    if (!this.#plugins.has(resource) && this.#plugins.size + under >= MOST_RESOURCES) {
      return fault("RESOURCE_EXHAUSTED", `the node has ${MOST_RESOURCES} resources of device plugins already`);
    }
    if (under >= MOST_REGISTERING) {
      return fault("RESOURCE_EXHAUSTED", `${MOST_REGISTERING} plugins are registering already`);
    }
    const registration = { resource };
    this.#registering.add(registration);
    const opened = await this.#open(resource, socketPath);
    this.#registering.delete(registration);
    if (!opened.ok) return opened;
    const isLate = (this.#plugins.get(resource)?.generation ?? 0) > generation;
    if (isLate || this.#life.signal.aborted) {
      opened.value.close();
      return fault("ABORTED", isLate ? "a later registration replaced this one" : "the node closes");
    }
    this.#origins.set(resource, generation);
    this.#install(resource, socketPath, generation, opened.value);
    return ok(generation);
  }

  /** What its plugin says itself is not waited for, as when its socket in plugins_registry is gone. */
  leave(resource: string, generation: number): void {
    if (this.#origins.get(resource) !== generation) return;
    this.#origins.delete(resource);
    this.#reconnects.forget(resource);
    const live = this.#live.get(resource);
    if (live !== undefined) this.#end(resource, live);
  }

  close(): void {
    this.#life.abort();
    this.#reconnects.close();
    for (const timer of this.#graces.values()) clearTimeout(timer);
    for (const { endpoint } of this.#live.values()) endpoint.close();
    this.#live.clear();
  }

  #open(resource: string, socketPath: string): Answered<Endpoint> {
    return openEndpoint({ resource, socketPath, timeouts: this.#options.timeouts, signal: this.#life.signal });
  }

  /** Gives way to what the plugin does itself. False: it is to be tried again. */
  async #reconnect(resource: string, socketPath: string): Promise<boolean> {
    const origin = this.#origins.get(resource);
    const opened = await this.#open(resource, socketPath);
    if (this.#life.signal.aborted) return true;
    if (!opened.ok) {
      this.#options.onFault(opened.error);
      return false;
    }
    const isRegistering = [...this.#registering].some((registration) => registration.resource === resource);
    if (isRegistering || this.#live.has(resource) || this.#origins.get(resource) !== origin) {
      opened.value.close();
      return !isRegistering;
    }
    this.#install(resource, socketPath, ++this.#lastGeneration, opened.value);
    return true;
  }

  #install(resource: string, socketPath: string, generation: number, endpoint: Endpoint): void {
    this.#live.get(resource)?.endpoint.close();
    const live = { generation, endpoint };
    this.#live.set(resource, live);
    clearTimeout(this.#graces.get(resource));
    this.#graces.delete(resource);
    this.#reconnects.connected(resource, socketPath);
    this.#apply({ kind: "registered", resource, generation, endpoint: socketPath, options: endpoint.options });
    let remarks = "";
    endpoint.watch({
      most: () => this.#roomFor(resource),
      load: this.#load,
      onList: (list) => {
        this.#apply({ kind: "listed", resource, generation, devices: list.devices, at: this.#options.now() });
        const said = list.remarks.join("; ");
        if (said !== "" && said !== remarks) this.#tell(resource, socketPath, "LEFT_OUT", said);
        remarks = said;
      },
      onEnd: (fault) => {
        if (this.#live.get(resource) !== live) return;
        this.#end(resource, live);
        this.#options.onFault(fault);
        this.#reconnects.lost(resource);
      },
    });
  }

  #end(resource: string, live: Live): void {
    const { generation, endpoint } = live;
    this.#live.delete(resource);
    endpoint.close();
    this.#apply({ kind: "ended", resource, generation, at: this.#options.now() });
    const remove = (): void => {
      this.#graces.delete(resource);
      this.#reconnects.forget(resource);
      this.#apply({ kind: "removed", resource, generation });
    };
    this.#graces.set(resource, setTimeout(remove, this.#options.graceMs ?? STOP_GRACE_MS).unref());
  }

  /** All lists together are one snapshot's. */
  #roomFor(resource: string): number {
    let room = LIMITS.devices;
    for (const plugin of this.#plugins.values()) if (plugin.resource !== resource) room -= plugin.devices.length;
    return room;
  }
  #apply(event: PluginEvent): void {
    const before = this.#plugins;
    this.#plugins = afterEvent(before, event);
    if (this.#plugins !== before) this.#options.onChange();
  }
  #tell(resource: string, endpoint: string, code: string, message: string): void {
    this.#options.onFault({ resource, endpoint, call: "ListAndWatch", code, message });
  }
}
