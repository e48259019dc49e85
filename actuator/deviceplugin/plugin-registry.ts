import { err, ok } from "../../api/base/result.ts";
import { STOP_GRACE_MS } from "../../api/decide/devices/inventory.ts";
import type { EpochMs } from "../../api/model/units.ts";
import { socketIdentity } from "../core/addresses.ts";
import { ListThrottle } from "./device-list.ts";
import { type Endpoint, ListAndWatchStream, openEndpoint, type PluginTimeouts } from "./endpoint.ts";
import type { PluginFault, PluginResult } from "./fault.ts";
import { displacedFault, type IsInUse, KnownPlugins, MAX_RESOURCES, stoppedFault } from "./known-plugins.ts";
import type { Plugins } from "./plugins.ts";

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

interface RegisteredPlugin {
  readonly path: string;
  /** The socket as it was when the plugin registered. */
  readonly identity: string | undefined;
  readonly connectedAt: number;
  /** The delay before the next attempt, in ms. */
  delayMs: number;
  timer?: NodeJS.Timeout;
}

/**
 * Reconnects to plugins that still run although their stream ended: to the same socket, not to a new one at its path,
 * which may be another resource's plugin, and registers itself. The kubelet waits for the plugin to register again.
 */
class Reconnects {
  readonly #known = new Map<string, RegisteredPlugin>();
  readonly #connect: (resource: string, path: string) => Promise<boolean>;

  constructor(connect: (resource: string, path: string) => Promise<boolean>) {
    this.#connect = connect;
  }

  connected(resource: string, path: string): void {
    const before = this.#known.get(resource);
    clearTimeout(before?.timer);
    const identity = socketIdentity(path);
    const isSame = before?.path === path && before.identity === identity;
    const delayMs = isSame ? before.delayMs : FIRST_MS;
    this.#known.set(resource, { path, identity, connectedAt: performance.now(), delayMs });
  }

  lost(resource: string): void {
    const known = this.#known.get(resource);
    if (known === undefined) return;
    // a plugin that ends each stream at once is retried with growing delays
    if (performance.now() - known.connectedAt > LONGEST_MS) known.delayMs = FIRST_MS;
    this.#retry(resource, known);
  }

  forget(resource: string): void {
    clearTimeout(this.#known.get(resource)?.timer);
    this.#known.delete(resource);
  }
  close(): void {
    for (const resource of [...this.#known.keys()]) this.forget(resource);
  }

  #retry(resource: string, known: RegisteredPlugin): void {
    clearTimeout(known.timer);
    const { path, identity, delayMs } = known;
    known.delayMs = Math.min(delayMs * 2, LONGEST_MS);
    const attempt = async (): Promise<void> => {
      if (identity === undefined || socketIdentity(path) !== identity) return;
      const isBack = await this.#connect(resource, path);
      if (!isBack && this.#known.get(resource) === known) this.#retry(resource, known);
    };
    known.timer = setTimeout(() => void attempt(), delayMs).unref();
  }
}

interface StoppedPlugin {
  readonly since: EpochMs;
  readonly timer: NodeJS.Timeout;
  ends: number;
  isOver: boolean;
}

/**
 * The grace period of each resource whose plugin is not stable: it starts at the first end of a stream, and is cleared
 * by a stable stream. A plugin that accepts and ends each stream at once expires like one that is gone.
 */
class StopGracePeriods {
  readonly #graceMs: number;
  readonly #onOver: (resource: string) => void;
  readonly #away = new Map<string, StoppedPlugin>();

  constructor(graceMs: number, onOver: (resource: string) => void) {
    this.#graceMs = graceMs;
    this.#onOver = onOver;
  }

  /** A stream ended now. The value: when the first did. */
  ended(resource: string, now: EpochMs): EpochMs {
    const away = this.#away.get(resource) ?? { since: now, timer: this.#timer(resource), ends: 0, isOver: false };
    away.ends++;
    this.#away.set(resource, away);
    return away.since;
  }
  /** Streams that ended since the plugin was well. */
  ends(resource: string): number {
    return this.#away.get(resource)?.ends ?? 0;
  }
  isOver(resource: string): boolean {
    return this.#away.get(resource)?.isOver === true;
  }
  /** Ends the grace period: a stream is stable, or the resource is no longer needed. */
  clear(resource: string): void {
    clearTimeout(this.#away.get(resource)?.timer);
    this.#away.delete(resource);
  }
  close(): void {
    for (const resource of [...this.#away.keys()]) this.clear(resource);
  }

  #timer(resource: string): NodeJS.Timeout {
    const over = (): void => {
      const away = this.#away.get(resource);
      if (away !== undefined) away.isOver = true;
      this.#onOver(resource);
    };
    return setTimeout(over, this.#graceMs).unref();
  }
}

const MAX_REGISTERING = 128;

/** The registrations that are under way. */
class OpenRegistrations {
  readonly #open = new Set<{ readonly resource: string }>();

  /** Why one more cannot begin; undefined: it can. */
  whyNot(resource: string, known: KnownPlugins): string | undefined {
    if (!known.makesRoom(resource, this.#open.size)) {
      return `\`${resource}\` is one resource too many: device plugins have ${MAX_RESOURCES} already, the most that a node takes`;
    }
    return this.#open.size >= MAX_REGISTERING ? `${MAX_REGISTERING} plugins are registering already` : undefined;
  }
  get count(): number {
    return this.#open.size;
  }
  has(resource: string): boolean {
    return [...this.#open].some((registration) => registration.resource === resource);
  }
  async during<T>(resource: string, work: () => Promise<T>): Promise<T> {
    const registration = { resource };
    this.#open.add(registration);
    try {
      return await work();
    } finally {
      this.#open.delete(registration);
    }
  }
}

/** A stream that has lived so long after its first list is no part of a row of failures. */
const ALIVE_AFTER_MS = 5_000;
/** After this many ends in a row, a new stream is hidden until it has proved stable. */
const ENDS_AT_ONCE = 2;

/** The connected plugins, and the state of all; ends of streams are matched by generation. */
export class PluginRegistry {
  readonly #options: PluginRegistryOptions;
  readonly #live = new Map<string, ListAndWatchStream>();
  /** New streams of plugins that ended the ones before at once: hidden until they are stable. */
  readonly #trials = new Map<string, ListAndWatchStream>();
  /** Resource -> the generation of the last registration that its plugin made itself. */
  readonly #origins = new Map<string, number>();
  readonly #registering = new OpenRegistrations();
  readonly #stopGracePeriods: StopGracePeriods;
  readonly #reconnects = new Reconnects((resource, path) => this.#reconnect(resource, path));
  readonly #load = new ListThrottle();
  readonly #life = new AbortController();
  readonly #known: KnownPlugins;
  #lastGeneration = 0;

  constructor(options: PluginRegistryOptions) {
    this.#options = options;
    this.#known = new KnownPlugins(options.onChange, options.isInUse);
    this.#stopGracePeriods = new StopGracePeriods(options.graceMs ?? STOP_GRACE_MS, (resource) =>
      this.#remove(resource),
    );
  }

  get plugins(): Plugins {
    return this.#known.now;
  }
  /** Faults that last as long as they are returned here. */
  standing(): readonly PluginFault[] {
    return [...this.#live.values()].flatMap(({ leftOut }) => leftOut ?? []);
  }
  /** The resource's endpoint; undefined: it has no plugin now. */
  endpointOf(resource: string): Endpoint | undefined {
    return this.#live.get(resource)?.endpoint;
  }

  /**
   * Dials a plugin and opens its list stream; of two plugins for one resource the one registered last stays, whichever
   * answers first. If dialling fails, the former plugin stays. The value is the generation.
   */
  async register(resource: string, socketPath: string): PluginResult<number> {
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
    const watch = new ListAndWatchStream(resource, socketPath, opened.value);
    this.#reconnects.connected(resource, socketPath);
    this.#show(watch, generation);
    this.#listen(watch);
    return ok(generation);
  }

  /** Unregisters a resource without waiting for its plugin, for example when its socket in plugins_registry is gone. */
  deregister(resource: string, generation: number): void {
    if (this.#origins.get(resource) !== generation) return;
    this.#origins.delete(resource);
    this.#reconnects.forget(resource);
    this.#endTrial(resource);
    this.#endLive(resource);
  }

  close(): void {
    this.#life.abort();
    this.#reconnects.close();
    this.#stopGracePeriods.close();
    for (const watch of [...this.#live.values(), ...this.#trials.values()]) watch.close();
    this.#live.clear();
    this.#trials.clear();
  }

  #open(resource: string, socketPath: string): PluginResult<Endpoint> {
    return openEndpoint({ resource, socketPath, timeouts: this.#options.timeouts, signal: this.#life.signal });
  }

  /** Reconnects, unless the plugin has registered itself meanwhile. False: try again. */
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
    const watch = new ListAndWatchStream(resource, socketPath, opened.value);
    this.#reconnects.connected(resource, socketPath);
    if (this.#stopGracePeriods.ends(resource) < ENDS_AT_ONCE) this.#show(watch, ++this.#lastGeneration);
    else this.#trials.set(resource, watch);
    this.#listen(watch);
    return true;
  }

  /** Makes this plugin the resource's current one. */
  #show(watch: ListAndWatchStream, generation: number): void {
    const { resource, socketPath: endpoint } = watch;
    this.#live.get(resource)?.close();
    this.#endTrial(resource);
    watch.generation = generation;
    this.#live.set(resource, watch);
    this.#known.apply({ kind: "registered", resource, generation, endpoint, options: watch.endpoint.options });
  }
  #listen(watch: ListAndWatchStream): void {
    const { resource } = watch;
    let said = "";
    watch.open({
      aliveAfterMs: this.#options.aliveAfterMs ?? ALIVE_AFTER_MS,
      load: this.#load,
      most: () => this.#known.freeSlots(resource),
      onList: () => {
        if (this.#live.get(resource) !== watch) return;
        this.#listed(watch);
        const { leftOut } = watch;
        if (leftOut !== null && leftOut.message !== said) this.#options.onFault(leftOut);
        said = leftOut?.message ?? "";
      },
      onStreamAlive: () => this.#streamAlive(watch),
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

  #listed({ resource, generation, list }: ListAndWatchStream): void {
    const { devices = [], size = 0 } = list ?? {};
    for (const greedy of this.#known.stoppedFor(resource, size)) {
      this.#endLive(greedy.resource);
      this.#options.onFault(stoppedFault(greedy, resource, size));
      this.#reconnects.lost(greedy.resource);
    }
    this.#known.listed({ kind: "listed", resource, generation, devices, size, at: this.#options.now() });
  }
  #streamAlive(watch: ListAndWatchStream): void {
    const { resource } = watch;
    if (this.#trials.get(resource) === watch) {
      if (this.#registering.has(resource) || (watch.list?.size ?? 0) > this.#known.freeSlots(resource)) {
        this.#endTrial(resource);
        this.#reconnects.lost(resource);
        return;
      }
      this.#trials.delete(resource);
      this.#show(watch, ++this.#lastGeneration);
      this.#listed(watch);
    }
    if (this.#live.get(resource) === watch) this.#stopGracePeriods.clear(resource);
  }

  #makeRoom(resource: string): void {
    const last = this.#known.displacedBy(resource, this.#registering.count);
    if (last === undefined) return;
    this.#endLive(last.resource);
    this.#remove(last.resource);
    this.#known.forget(last.resource);
    this.#options.onFault(displacedFault(last, resource));
  }

  #endTrial(resource: string): void {
    this.#trials.get(resource)?.close();
    this.#trials.delete(resource);
  }
  #endLive(resource: string): void {
    const live = this.#live.get(resource);
    if (live !== undefined) this.#end(live);
  }
  #end(watch: ListAndWatchStream): void {
    const { resource, generation } = watch;
    this.#live.delete(resource);
    watch.close();
    const at = this.#options.now();
    this.#known.apply({ kind: "ended", resource, generation, at, since: this.#stopGracePeriods.ended(resource, at) });
    if (this.#stopGracePeriods.isOver(resource)) this.#remove(resource);
  }
  #remove(resource: string): void {
    const plugin = this.plugins.get(resource);
    if (plugin === undefined || this.#live.has(resource)) return;
    this.#stopGracePeriods.clear(resource);
    this.#reconnects.forget(resource);
    this.#endTrial(resource);
    this.#known.apply({ kind: "removed", resource, generation: plugin.generation });
  }
}

/** Limits and listeners of the connected plugins. */
interface PluginRegistryOptions {
  readonly timeouts: PluginTimeouts;
  /** The time from the end of a stream until its resource is removed. */
  readonly graceMs?: number;
  /** How long after its first list a stream counts as stable. */
  readonly aliveAfterMs?: number;
  readonly isInUse: IsInUse;
  readonly now: () => EpochMs;
  readonly onChange: () => void;
  readonly onFault: (fault: PluginFault) => void;
}
