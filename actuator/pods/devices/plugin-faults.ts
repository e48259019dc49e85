import { faultText, type PluginFault } from "../../deviceplugin/fault.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { PodClock } from "../clock.ts";

/** Nobody tells when what a stranger did wrong is over. */
const STANDS_MS = 5 * 60_000;
const MOST = 64;
/** So many faults that differ by their plugins only are one line, which names the first of these. */
const MOST_LINES = 3;
const MOST_NAMED = 8;
/** So that one that does wrong in many ways leaves the others' faults to be seen. */
const MOST_OF_ONE = 16;

interface Heard {
  readonly fault: PluginFault;
  readonly atMs: number;
  /** Of the plugin that the resource had then. */
  readonly generation: number;
}

/**
 * Faults of plugins that no caller hears of: what is so, while it is; what has happened, until the plugin has registered
 * anew, or for 5 minutes.
 */
export class PluginFaults {
  readonly #clock: Pick<PodClock, "monotonicMs">;
  /** The oldest first. */
  readonly #faults = new Map<string, Heard>();
  /** Absent until a host is open. */
  host: Pick<DevicePluginHost, "states" | "standing"> | undefined;
  /** One that did not stand already. */
  onNew: (fault: PluginFault) => void = () => {};

  constructor(clock: Pick<PodClock, "monotonicMs">) {
    this.#clock = clock;
  }

  heard(fault: PluginFault): void {
    if (fault.stands === true) {
      this.onNew(fault);
      return;
    }
    const key = faultText(fault);
    const isNew = !this.#faults.delete(key);
    const generation = this.#generationOf(fault.resource);
    this.#faults.set(key, { fault, atMs: this.#clock.monotonicMs(), generation });
    this.#forget();
    if (isNew) this.onNew(fault);
  }

  /** A sentence each. */
  standing(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { fault, atMs, generation }] of this.#faults) {
      const isOver = this.#generationOf(fault.resource) > generation;
      if (isOver || nowMs - atMs > STANDS_MS) this.#faults.delete(key);
    }
    return [...(this.host?.standing() ?? []).map(faultText), ...linesOf([...this.#faults.values()])];
  }

  /** The oldest, of the resource that has too many, or of all. */
  #forget(): void {
    const { fault } = [...this.#faults.values()].at(-1) as Heard;
    const its = [...this.#faults].filter(([, other]) => other.fault.resource === fault.resource);
    const oldest = its.length > MOST_OF_ONE ? its[0] : this.#faults.size > MOST ? [...this.#faults][0] : undefined;
    if (oldest !== undefined) this.#faults.delete(oldest[0]);
  }
  #generationOf(resource: string): number {
    return this.host?.states().find((state) => state.resource === resource)?.generation ?? 0;
  }
}

/** A line each, and one for many plugins that met the same, as when all of them stop at once. */
function linesOf(heard: readonly Heard[]): readonly string[] {
  const groups = new Map<string, PluginFault[]>();
  for (const { fault } of heard) {
    const { call, code, message, resource, endpoint } = fault;
    const bare = [endpoint, resource].reduce((text, own) => (own === "" ? text : text.replaceAll(own, "")), message);
    const key = JSON.stringify([call, code, bare]);
    groups.set(key, [...(groups.get(key) ?? []), fault]);
  }
  return [...groups.values()].flatMap((faults) => {
    const resources = [...new Set(faults.map(({ resource }) => resource))];
    if (resources.length <= MOST_LINES) return faults.map(faultText);
    const { call, code, message } = faults[0] as PluginFault;
    const names = `${resources.slice(0, MOST_NAMED).join(", ")}${resources.length > MOST_NAMED ? ", ..." : ""}`;
    return [`${call} of ${resources.length} resources (${names}): ${code}: ${message}`];
  });
}
