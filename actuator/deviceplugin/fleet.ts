import { STOP_GRACE_MS } from "../../api/decide/devices/inventory.ts";
import { err, ok } from "../../api/model/result.ts";
import { type Endpoint, openEndpoint } from "./endpoint.ts";
import { yieldingFault } from "./fair-share.ts";
import type { Answered, PluginFault } from "./fault.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { Graces } from "./graces.ts";
import { KnownPlugins, pushedOut } from "./known-plugins.ts";
import { LookLoad } from "./look-load.ts";
import type { Plugins } from "./plugins.ts";
import { Reconnects } from "./reconnects.ts";
import { Registering } from "./registering.ts";
import { StreamWatch } from "./stream-watch.ts";

/** A stream that has lived so long after its first list is no part of a row of failures. */
const LIVES_MS = 5_000;
/** Streams that ended so often one after the other are opened unseen: they have to live first. */
const ENDS_AT_ONCE = 2;

/** The plugins that are connected, and what is known of all: each by its generation, so that no end is another's. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #live = new Map<string, StreamWatch>();
  /** Streams of plugins that ended the ones before at once: not shown until they live. */
  readonly #trials = new Map<string, StreamWatch>();
  /** Resource -> the generation of the last registration that its plugin made itself. */
  readonly #origins = new Map<string, number>();
  readonly #registering = new Registering();
  readonly #graces: Graces;
  readonly #reconnects = new Reconnects((resource, path) => this.#reconnect(resource, path));
  readonly #load = new LookLoad();
  readonly #life = new AbortController();
  readonly #known: KnownPlugins;
  #lastGeneration = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#known = new KnownPlugins(options.onChange, options.isInUse);
    this.#graces = new Graces(options.graceMs ?? STOP_GRACE_MS, (resource) => this.#remove(resource));
  }

  get plugins(): Plugins {
    return this.#known.now;
  }
  /** What is wrong for as long as it is said here. */
  standing(): readonly PluginFault[] {
    return [...this.#live.values()].flatMap(({ leftOut }) => leftOut ?? []);
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
    this.#makeRoom(resource);
    const whyNot = this.#registering.whyNot(resource, this.#known);
    if (whyNot !== undefined) return fault("RESOURCE_EXHAUSTED", whyNot);
    const opened = await this.#registering.during(resource, () => this.#open(resource, socketPath));
    if (!opened.ok) return opened;
    const isLate = (this.plugins.get(resource)?.generation ?? 0) > generation;
    if (isLate || this.#life.signal.aborted) {
      opened.value.close();
      return fault("ABORTED", isLate ? "a later registration replaced this one" : "the node closes");
    }
    this.#origins.set(resource, generation);
    const watch = new StreamWatch(resource, socketPath, opened.value);
    this.#reconnects.connected(resource, socketPath);
    this.#show(watch, generation);
    this.#listen(watch);
    return ok(generation);
  }

  /** What its plugin says itself is not waited for, as when its socket in plugins_registry is gone. */
  leave(resource: string, generation: number): void {
    if (this.#origins.get(resource) !== generation) return;
    this.#origins.delete(resource);
    this.#reconnects.forget(resource);
    this.#endTrial(resource);
    this.#endLive(resource);
  }

  close(): void {
    this.#life.abort();
    this.#reconnects.close();
    this.#graces.close();
    for (const watch of [...this.#live.values(), ...this.#trials.values()]) watch.close();
    this.#live.clear();
    this.#trials.clear();
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
    const isRegistering = this.#registering.has(resource);
    if (isRegistering || this.#live.has(resource) || this.#origins.get(resource) !== origin) {
      opened.value.close();
      return !isRegistering;
    }
    const watch = new StreamWatch(resource, socketPath, opened.value);
    this.#reconnects.connected(resource, socketPath);
    if (this.#graces.ends(resource) < ENDS_AT_ONCE) this.#show(watch, ++this.#lastGeneration);
    else this.#trials.set(resource, watch);
    this.#listen(watch);
    return true;
  }

  /** From now on the resource is this plugin's. */
  #show(watch: StreamWatch, generation: number): void {
    const { resource, socketPath: endpoint } = watch;
    this.#live.get(resource)?.close();
    this.#endTrial(resource);
    watch.generation = generation;
    this.#live.set(resource, watch);
    this.#known.apply({ kind: "registered", resource, generation, endpoint, options: watch.endpoint.options });
  }
  #listen(watch: StreamWatch): void {
    const { resource } = watch;
    let said = "";
    watch.open({
      livesMs: this.#options.livesMs ?? LIVES_MS,
      load: this.#load,
      most: () => this.#known.roomFor(resource),
      onList: () => {
        if (this.#live.get(resource) !== watch) return;
        this.#listed(watch);
        const { leftOut } = watch;
        if (leftOut !== null && leftOut.message !== said) this.#options.onFault(leftOut);
        said = leftOut?.message ?? "";
      },
      onLives: () => this.#lives(watch),
      onEnd: (fault) => {
        const isTrial = this.#trials.get(resource) === watch;
        if (!isTrial && this.#live.get(resource) !== watch) return;
        if (isTrial) this.#endTrial(resource);
        else this.#end(watch);
        this.#options.onFault(fault);
        this.#reconnects.lost(resource);
      },
    });
  }

  #listed({ resource, generation, list }: StreamWatch): void {
    const { devices = [], size = 0 } = list ?? {};
    for (const greedy of this.#known.yielding(resource, size)) {
      this.#endLive(greedy.resource);
      this.#options.onFault(yieldingFault(greedy, resource, size));
      this.#reconnects.lost(greedy.resource);
    }
    this.#known.listed({ kind: "listed", resource, generation, devices, size, at: this.#options.now() });
  }
  #lives(watch: StreamWatch): void {
    const { resource } = watch;
    if (this.#trials.get(resource) === watch) {
      if (this.#registering.has(resource) || (watch.list?.size ?? 0) > this.#known.roomFor(resource)) {
        this.#endTrial(resource);
        this.#reconnects.lost(resource);
        return;
      }
      this.#trials.delete(resource);
      this.#show(watch, ++this.#lastGeneration);
      this.#listed(watch);
    }
    if (this.#live.get(resource) === watch) this.#graces.clear(resource);
  }

  #makeRoom(resource: string): void {
    const last = this.#known.pushedOutBy(resource, this.#registering.count);
    if (last === undefined) return;
    this.#endLive(last.resource);
    this.#remove(last.resource);
    this.#known.forget(last.resource);
    this.#options.onFault(pushedOut(last, resource));
  }

  #endTrial(resource: string): void {
    this.#trials.get(resource)?.close();
    this.#trials.delete(resource);
  }
  #endLive(resource: string): void {
    const live = this.#live.get(resource);
    if (live !== undefined) this.#end(live);
  }
  #end(watch: StreamWatch): void {
    const { resource, generation } = watch;
    this.#live.delete(resource);
    watch.close();
    const at = this.#options.now();
    this.#known.apply({ kind: "ended", resource, generation, at, since: this.#graces.ended(resource, at) });
    if (this.#graces.isOver(resource)) this.#remove(resource);
  }
  #remove(resource: string): void {
    const plugin = this.plugins.get(resource);
    if (plugin === undefined || this.#live.has(resource)) return;
    this.#graces.clear(resource);
    this.#reconnects.forget(resource);
    this.#endTrial(resource);
    this.#known.apply({ kind: "removed", resource, generation: plugin.generation });
  }
}
