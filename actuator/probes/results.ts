import type { ProbeType, StoredResult } from "../../api/model/probe.ts";

/** What stands of a container, by what it is probed for. kubelet 1.36: results.Manager. */
export class ProbeResults {
  readonly #byType: Readonly<Record<ProbeType, Map<string, StoredResult>>> = {
    startup: new Map(),
    liveness: new Map(),
    readiness: new Map(),
  };

  get(containerId: string, type: ProbeType): StoredResult | undefined {
    return this.#byType[type].get(containerId);
  }
  set(containerId: string, type: ProbeType, result: StoredResult): void {
    this.#byType[type].set(containerId, result);
  }
  forget(containerId: string, type: ProbeType): void {
    this.#byType[type].delete(containerId);
  }
  get size(): number {
    return Object.values(this.#byType).reduce((sum, { size }) => sum + size, 0);
  }
}
