import { faultText, type PluginFault } from "../../deviceplugin/fault.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { PodClock } from "../clock.ts";

/** Nobody tells when what a stranger did wrong is over. */
const STANDS_MS = 5 * 60_000;
const MOST = 64;

interface Standing {
  readonly fault: PluginFault;
  readonly atMs: number;
  /** Of the plugin that the resource had then. */
  readonly generation: number;
}

/** Faults of plugins that no caller hears of, one a resource and call: until the plugin has registered anew, or for 5 minutes. */
export class PluginFaults {
  readonly #clock: Pick<PodClock, "monotonicMs">;
  readonly #faults = new Map<string, Standing>();
  /** Absent until a host is open. */
  host: Pick<DevicePluginHost, "states"> | undefined;
  /** One that did not stand already. */
  onNew: (fault: PluginFault) => void = () => {};

  constructor(clock: Pick<PodClock, "monotonicMs">) {
    this.#clock = clock;
  }

  heard(fault: PluginFault): void {
    const key = JSON.stringify([fault.resource, fault.call]);
    const before = this.#faults.get(key);
    this.#faults.delete(key);
    const generation = this.#generationOf(fault.resource);
    this.#faults.set(key, { fault, atMs: this.#clock.monotonicMs(), generation });
    if (this.#faults.size > MOST) this.#faults.delete([...this.#faults.keys()][0] as string);
    if (before === undefined || before.fault.message !== fault.message) this.onNew(fault);
  }

  /** A sentence each. */
  standing(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { fault, atMs, generation }] of this.#faults) {
      const isOver = this.#generationOf(fault.resource) > generation;
      if (isOver || nowMs - atMs > STANDS_MS) this.#faults.delete(key);
    }
    return [...this.#faults.values()].map(({ fault }) => faultText(fault));
  }

  #generationOf(resource: string): number {
    return this.host?.states().find((state) => state.resource === resource)?.generation ?? 0;
  }
}
