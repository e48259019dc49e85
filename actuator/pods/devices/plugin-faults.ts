import { perObject } from "../../../api/base/cache.ts";
import { byText } from "../../../api/base/order.ts";
import { type DeviceCheckpoint, idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { sharedDevices } from "../../../api/decide/devices/inventory.ts";
import { naturalOrder } from "../../../api/decide/devices/natural-order.ts";
import type { ClaimHealth } from "../../../api/decide/dra/health.ts";
import type { DeviceConflict } from "../../../api/model/devices.ts";
import type { Device } from "../../../api/model/machine.ts";
import type { Problem } from "../../core/interfaces.ts";
import { faultText, type PluginFault } from "../../deviceplugin/fault.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import { HEALTHY } from "../../deviceplugin/names.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { ContainerHealth } from "../../lifecycle/status/status.ts";
import type { PodClock } from "../pod-clock.ts";
import { entriesOf } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";

/** Faults of the allocations. `leaks`: uids of pods that were gone when the daemon started. */
export function assignmentProblems(assignments: DeviceAssignments, leaks: ReadonlySet<string>): readonly Problem[] {
  const problem = (message: string): Problem => ({ from: "state-files", message });
  const fault = assignments.fault();
  if (fault !== null) {
    const place = fault.code === "unreadable" ? "" : `${assignments.file}: `;
    return [problem(`${place}${fault.message}; no device counts as allocated, until one is allocated again`)];
  }
  const now = assignments.now();
  return [...overlapsOf(now), ...[...leaks].flatMap((uid) => leaksOf(now, uid))].map(problem);
}

const overlapsOf = perObject(({ entries }: DeviceCheckpoint): readonly string[] =>
  sharedDevices(entries).map(
    ({ resource, id, podUids }) =>
      `device \`${id}\` of ${resource} is allocated to pods ${podUids.join(" and ")} at the same time`,
  ),
);

const leaksOf = (now: DeviceCheckpoint, uid: string): readonly string[] =>
  entriesOf(now, uid).map((entry) => {
    const { containerName, resourceName } = entry;
    const devices = `${idsOf(entry).length} devices of ${resourceName}`;
    return `${devices} are held by container ${containerName} of pod ${uid}, which is not on the node: they are taken back with the next decision`;
  });

/** Text for a starting container for which two plugins set different values; the first one applies. */
export function conflictText({ namespace, name }: RunnablePod, container: string, conflict: DeviceConflict): string {
  const { kind, name: what, kept, dropped } = conflict;
  // values may be secret
  return `container ${container} of pod ${namespace}/${name}: ${kind} \`${what}\` is that of ${kept.resource}, and not that of ${dropped.resource}`;
}

/** How long a fault of an unknown program is shown, since its end is not reported. */
const STANDS_MS = 5 * 60_000;
const MAX_FAULTS = 64;
/** Faults that differ only by plugin share one line from this number on; it names the first MAX_NAMED. */
const MAX_LINES = 3;
const MAX_NAMED = 8;
/** The maximum number per plugin, so that one with many faults does not hide the others'. */
const MAX_OF_ONE = 16;

interface Observed {
  readonly fault: PluginFault;
  readonly atMs: number;
  /** The generation of the resource's plugin at that time. */
  readonly generation: number;
}

/**
 * Faults of plugins that no caller receives. Lasting faults are shown while they last; single ones until the plugin registers
 * again, or for 5 minutes.
 */
export class PluginFaults {
  readonly #clock: Pick<PodClock, "monotonicMs">;
  readonly #host: Pick<DevicePluginHost, "states" | "standing">;
  readonly #onNew: (fault: PluginFault) => void;
  /** The oldest fault is first. */
  readonly #faults = new Map<string, Observed>();

  /** `onNew`: called for each fault that is not shown already. */
  constructor(
    clock: Pick<PodClock, "monotonicMs">,
    host: Pick<DevicePluginHost, "states" | "standing">,
    onNew: (fault: PluginFault) => void,
  ) {
    this.#clock = clock;
    this.#host = host;
    this.#onNew = onNew;
  }

  add(fault: PluginFault): void {
    if (fault.stands === true) {
      this.#onNew(fault);
      return;
    }
    const key = faultText(fault);
    const isNew = !this.#faults.delete(key);
    const generation = this.#generationOf(fault.resource);
    this.#faults.set(key, { fault, atMs: this.#clock.monotonicMs(), generation });
    this.#forget();
    if (isNew) this.#onNew(fault);
  }

  /** Current faults, a sentence each. */
  standing(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { fault, atMs, generation }] of this.#faults) {
      const isOver = this.#generationOf(fault.resource) > generation;
      if (isOver || nowMs - atMs > STANDS_MS) this.#faults.delete(key);
    }
    return [...this.#host.standing().map(faultText), ...linesOf([...this.#faults.values()])];
  }

  /** Drops the oldest fault, of a resource with too many or of all. */
  #forget(): void {
    const { fault } = [...this.#faults.values()].at(-1) as Observed;
    const its = [...this.#faults].filter(([, other]) => other.fault.resource === fault.resource);
    const oldest = its.length > MAX_OF_ONE ? its[0] : this.#faults.size > MAX_FAULTS ? [...this.#faults][0] : undefined;
    if (oldest !== undefined) this.#faults.delete(oldest[0]);
  }
  #generationOf(resource: string): number {
    return this.#host.states().find((state) => state.resource === resource)?.generation ?? 0;
  }
}

/** One line per fault; many plugins with the same fault, for example when all stop at once, share a line. */
function linesOf(observed: readonly Observed[]): readonly string[] {
  const groups = new Map<string, PluginFault[]>();
  for (const { fault } of observed) {
    const { call, code, message, resource, endpoint } = fault;
    const bare = [endpoint, resource].reduce((text, own) => (own === "" ? text : text.replaceAll(own, "")), message);
    const key = JSON.stringify([call, code, bare]);
    groups.set(key, [...(groups.get(key) ?? []), fault]);
  }
  return [...groups.values()].flatMap((faults) => {
    const resources = [...new Set(faults.map(({ resource }) => resource))];
    if (resources.length <= MAX_LINES) return faults.map(faultText);
    const { call, code, message } = faults[0] as PluginFault;
    const names = `${resources.slice(0, MAX_NAMED).join(", ")}${resources.length > MAX_NAMED ? ", ..." : ""}`;
    return [`${call} of ${resources.length} resources (${names}): ${code}: ${message}`];
  });
}

const unhealthyIn = perObject(
  (devices: readonly Device[]) =>
    new Set(devices.filter(({ health = HEALTHY }) => health !== HEALTHY).map(({ id }) => id)),
);

/**
 * `allocatedResourcesStatus` of a pod's containers for plugins' devices, by the pod's entries; a device that no plugin lists is
 * reported as healthy. Undefined: the pod has none. kubelet 1.37: devicemanager.UpdateAllocatedResourcesStatus, which walks Go maps.
 */
export function pluginHealth(
  entries: readonly PodDevicesEntry[],
  states: readonly Pick<PluginState, "resource" | "devices" | "gaveWay">[],
): ContainerHealth | undefined {
  if (entries.length === 0) return undefined;
  const byContainer: Record<string, ClaimHealth[]> = {};
  for (const entry of entries.toSorted((a, b) => byText(a.resourceName, b.resourceName))) {
    const state = states.find(({ resource }) => resource === entry.resourceName);
    // a stopped plugin whose list was dropped counts as one whose devices are all unhealthy
    const isHealthy = (id: string): boolean =>
      state === undefined || (state.gaveWay === undefined && !unhealthyIn(state.devices).has(id));
    const ids = idsOf(entry).toSorted(naturalOrder);
    const resources = ids.map((id) => ({ resourceID: id, health: isHealthy(id) ? "Healthy" : "Unhealthy" }) as const);
    byContainer[entry.containerName] = [
      ...(byContainer[entry.containerName] ?? []),
      { name: entry.resourceName, resources },
    ];
  }
  return byContainer;
}

/** Joins the device health that several parts report for a pod, in their order. */
export function joinHealth(...parts: readonly (ContainerHealth | undefined)[]): ContainerHealth | undefined {
  const known = parts.filter((one) => one !== undefined);
  if (known.length < 2) return known[0];
  const names = new Set(known.flatMap((one) => Object.keys(one)));
  return Object.fromEntries([...names].map((name) => [name, known.flatMap((one) => one[name] ?? [])]));
}
