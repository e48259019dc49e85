import { STOP_GRACE_MS } from "../../../api/decide/devices/inventory.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import { HEALTHY } from "../../deviceplugin/names.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import type { PodClock } from "../pod-clock.ts";
import type { DeviceAssignments } from "./device-assignments.ts";

interface PluginSnapshotDeps {
  readonly host: Pick<DevicePluginHost, "states">;
  readonly assignments: DeviceAssignments;
  readonly clock: PodClock;
  /** The time that plugins get to register after the daemon's start. */
  readonly waitMs: number;
}

/** The state of resources: their plugins now, and what the previous daemon stored of them. */
export class PluginSnapshot {
  readonly #deps: PluginSnapshotDeps;
  readonly #startedMs: number;

  constructor(deps: PluginSnapshotDeps) {
    this.#deps = deps;
    this.#startedMs = deps.clock.monotonicMs();
  }

  /** The plugin's state; undefined: none has registered since the daemon's start. */
  stateOf(resource: string): PluginState | undefined {
    return this.#deps.host.states().find((state) => state.resource === resource);
  }
  /** Whether the resource's plugin is registered and has sent its list. */
  isReady(resource: string): boolean {
    const state = this.stateOf(resource);
    return state?.state === "registered" && state.listed;
  }
  /** True: plugins still have time to register. */
  get isEarly(): boolean {
    return this.#ageMs() < this.#deps.waitMs;
  }

  /**
   * Whether a plugin (registered or stopped) or the checkpoint has the resource. kubelet 1.36: endpoints,
   * stopGracePeriodExpired.
   */
  isKnown(resource: string): boolean {
    const state = this.stateOf(resource);
    if (state !== undefined) return state.state !== "removed";
    return this.#isGraced() && this.#deps.assignments.now().registered?.has(resource) === true;
  }
  /** kubelet 1.36: isDevicePluginResource. A decision ignores resources that are not. */
  isDeviceResource(resource: string): boolean {
    const isHeld = () =>
      (this.#deps.assignments.now().entries ?? []).some(({ resourceName }) => resourceName === resource);
    return this.isKnown(resource) || isHeld();
  }
  /** All known resources, including those of the previous daemon. */
  known(): ReadonlySet<string> {
    const states = this.#deps.host.states();
    const seen = new Set(states.map(({ resource }) => resource));
    const before = this.#isGraced() ? [...(this.#deps.assignments.now().registered?.keys() ?? [])] : [];
    const here = states.filter(({ state }) => state !== "removed").map(({ resource }) => resource);
    return new Set([...here, ...before.filter((resource) => !seen.has(resource))]);
  }

  /** Why held devices cannot be used, in the kubelet's words; undefined: they can. kubelet 1.36: devicesToAllocate. */
  whyNot(resource: string, ids: readonly string[]): string | undefined {
    if (!this.isKnown(resource)) return `cannot allocate unregistered device ${resource}`;
    const healthy = new Set(healthyOf(this.stateOf(resource)));
    if (healthy.size === 0) return `no healthy devices present; cannot allocate unhealthy devices ${resource}`;
    return ids.every((id) => healthy.has(id))
      ? undefined
      : `previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`;
  }

  #isGraced(): boolean {
    return this.#ageMs() <= STOP_GRACE_MS;
  }
  #ageMs(): number {
    return this.#deps.clock.monotonicMs() - this.#startedMs;
  }
}

/** Ids of the devices that may be allocated now. */
export const healthyOf = (state: PluginState | undefined): readonly string[] =>
  state?.state === "registered"
    ? state.devices.filter(({ health = HEALTHY }) => health === HEALTHY).map(({ id }) => id)
    : [];
