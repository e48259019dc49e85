import { perObject } from "../../../api/base/cache.ts";
import { type DeviceCheckpoint, idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { Device } from "../../../api/model/machine.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { entryOf, isSameDevices, keyOf, readDevicesAnnotation, withEntriesOf, without } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { deviceRequirements, requiredResources } from "./device-requirements.ts";
import { MAX_NAMED } from "./history.ts";
import { DEVICES_NOT_KNOWN, type DeviceFault, type LivingPod, REALLOCATING, type VanishedDevices } from "./port.ts";

/** Devices that containers hold and that their registered plugin no longer lists. */
export function vanishedDevices(now: DeviceCheckpoint, states: readonly PluginState[]): readonly VanishedDevices[] {
  const listed = new Map(states.filter((s) => s.state === "registered" && s.listed).map((s) => [s.resource, s]));
  return (now.entries ?? []).flatMap((entry) => {
    const devices = listed.get(entry.resourceName)?.devices;
    if (devices === undefined) return [];
    const here = idsIn(devices);
    const gone = idsOf(entry).filter((id) => !here.has(id));
    if (gone.length === 0) return [];
    const names = `${gone.slice(0, MAX_NAMED).join(", ")}${gone.length > MAX_NAMED ? ", ..." : ""}`;
    const what = gone.length === 1 ? "device" : `${gone.length} devices`;
    const is = gone.length === 1 ? "is" : "are";
    const message = `${what} ${names} of ${entry.resourceName}, held by container ${entry.containerName}, ${is} not in the list of the device plugin any more`;
    return [{ podUid: entry.podUid, container: entry.containerName, message }];
  });
}

const idsIn = perObject((devices: readonly Device[]): ReadonlySet<string> => new Set(devices.map(({ id }) => id)));

interface UnrecordedAllocations {
  /** Allocations listed by running containers that the checkpoint lacks or contradicts. */
  readonly found: readonly PodDevicesEntry[];
  /** The checkpoint's entries that contradict `found`. */
  readonly wrong: readonly PodDevicesEntry[];
  /** Entries for containers of other pods that do not run, with devices that are in `found`. */
  readonly taken: readonly PodDevicesEntry[];
  /** Resource -> NAMESPACE/NAME of pods that run with unknown devices of it. */
  readonly unknown: ReadonlyMap<string, readonly string[]>;
}

/**
 * Devices of running containers that the checkpoint does not have as theirs, because it was lost, is outdated, or was
 * changed by somebody. The running containers are right.
 */
function unrecordedAllocations(living: readonly LivingPod[], now: DeviceCheckpoint): UnrecordedAllocations {
  const found: PodDevicesEntry[] = [];
  const wrong: PodDevicesEntry[] = [];
  const unknown = new Map<string, string[]>();
  const running = new Set<string>();
  for (const { uid, pod, runtimePod } of living) {
    for (const [containerName, amounts] of deviceRequirements(pod)) {
      const runs = runtimePod?.containers.find(({ name, state }) => name === containerName && state !== "exited");
      if (runs === undefined) continue;
      const mark = readDevicesAnnotation(runs.annotations);
      for (const resourceName of amounts.keys()) {
        const named = { podUid: uid, containerName, resourceName };
        running.add(keyOf(named));
        const entry = entryOf(now, named);
        const deviceIds = mark.get(resourceName);
        // without a response: the plugin is asked again before the container's next start
        const recorded = deviceIds === undefined ? undefined : { ...named, deviceIds, allocResp: null };
        if (recorded !== undefined && (entry === undefined || !isSameDevices(entry, recorded))) {
          found.push(recorded);
          if (entry !== undefined) wrong.push(entry);
        } else if (entry === undefined && runs.state !== "created") {
          const name = `${pod.namespace}/${pod.name}`;
          unknown.set(resourceName, [...new Set([...(unknown.get(resourceName) ?? []), name])]);
        }
      }
    }
  }
  return { found, wrong, taken: takenFrom(now, found, running), unknown };
}

function takenFrom(now: DeviceCheckpoint, found: readonly PodDevicesEntry[], running: ReadonlySet<string>) {
  if (found.length === 0) return [];
  const holders = new Map(
    found.flatMap((entry) =>
      idsOf(entry).map((id) => [JSON.stringify([entry.resourceName, id]), entry.podUid] as const),
    ),
  );
  return (now.entries ?? []).filter((entry) => {
    if (running.has(keyOf(entry))) return false;
    const owners = idsOf(entry).map((id) => holders.get(JSON.stringify([entry.resourceName, id])));
    // containers of one pod may use the same devices one after the other
    return owners.some((uid) => uid !== undefined && uid !== entry.podUid);
  });
}

const notKnown = (resource: string, pods: readonly string[]): string =>
  `devices of ${resource} are not allocated while pods run whose devices are not known: ${pods.join(", ")} (once their containers are restarted, or the pods removed, it is known)`;

/** Text for a container whose devices differ from the checkpoint. */
function allocationMismatch(pod: string, was: PodDevicesEntry, runs: PodDevicesEntry): string {
  const { containerName, resourceName } = was;
  return `the checkpoint had devices ${named(was)} of ${resourceName} as those of container ${containerName} of pod ${pod}, which runs with ${named(runs)}: what runs counts. Was the file put back from a copy? Leave it to the daemon`;
}
function named(entry: PodDevicesEntry): string {
  const ids = idsOf(entry);
  return `${ids.slice(0, MAX_NAMED).join(", ")}${ids.length > MAX_NAMED ? ", ..." : ""}`;
}

interface Reallocation {
  readonly containers: Set<string>;
  why: string | null;
}

/** Allocations that are missing in the checkpoint, because it was lost or cannot be read. */
export class MissingAllocations {
  readonly #assignments: DeviceAssignments;
  readonly #onProblem: (message: string) => void;
  readonly #onRestored: (entries: readonly PodDevicesEntry[]) => void;
  #unknown: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #reallocations = new Map<string, Reallocation>();

  /** `onBooked`: called with the entries restored from running containers. */
  constructor(
    assignments: DeviceAssignments,
    onProblem: (message: string) => void,
    onBooked: (entries: readonly PodDevicesEntry[]) => void,
  ) {
    this.#assignments = assignments;
    this.#onProblem = onProblem;
    this.#onRestored = onBooked;
  }

  /** Records again the devices that running containers list. If that cannot be written, nothing is assigned. */
  recover(living: readonly LivingPod[]): void {
    const unbooked = unrecordedAllocations(living, this.#assignments.now());
    const { found } = unbooked;
    const missing = new Map(unbooked.unknown);
    if (found.length > 0) {
      for (const { podUid } of found) this.#assignments.restorePod(podUid);
      const taken = new Set(unbooked.taken);
      const kept = this.#assignments.edit((now) => withEntriesOf(without(now, taken), found));
      const uids = new Set(found.map(({ podUid }) => podUid));
      const names = new Map(living.map(({ uid, pod }) => [uid, `${pod.namespace}/${pod.name}`]));
      const pods = [...uids].map((uid) => names.get(uid) ?? uid);
      if (kept.ok) this.#reportRestored(unbooked, names, pods);
      else for (const { resourceName } of found) missing.set(resourceName, pods);
    }
    this.#unknown = missing;
    this.#assignments.notGiven = new Set(missing.keys());
  }
  #reportRestored(
    { found, wrong }: UnrecordedAllocations,
    names: ReadonlyMap<string, string>,
    pods: readonly string[],
  ): void {
    this.#onRestored(found);
    for (const was of wrong) {
      const runs = found.find((entry) => keyOf(entry) === keyOf(was));
      if (runs !== undefined) this.#onProblem(allocationMismatch(names.get(was.podUid) ?? was.podUid, was, runs));
    }
    this.#onProblem(`devices are booked again from the containers that run: ${pods.join(", ")}`);
  }
  /** Current problems, as sentences. */
  standing(): readonly string[] {
    return [...this.#unknown].map(([resource, pods]) => notKnown(resource, pods));
  }
  /** Why the pod must wait: containers with unknown devices may hold what it requests; null: it need not wait. */
  whyPending(pod: RunnablePod): DeviceFault | null {
    const required = new Set(requiredResources(pod));
    const [first] = [...this.#unknown].filter(([resource]) => required.has(resource));
    return first === undefined ? null : { reason: DEVICES_NOT_KNOWN, message: notKnown(...first) };
  }

  add({ uid }: RunnablePod, container: string, why: string): DeviceFault {
    const lacking = this.#reallocations.get(uid) ?? { containers: new Set(), why: null };
    lacking.containers.add(container);
    this.#reallocations.set(uid, lacking);
    const message = `its devices are allocated again: ${lacking.why ?? why}`;
    return { reason: REALLOCATING, message, keeps: true };
  }
  toReallocate(): ReadonlyMap<string, ReadonlySet<string>> {
    return new Map([...this.#reallocations].map(([uid, { containers }]) => [uid, containers]));
  }
  reallocated(podUid: string, why: string | null): void {
    const lacking = this.#reallocations.get(podUid);
    if (lacking === undefined) return;
    if (why === null) this.#reallocations.delete(podUid);
    else lacking.why = why;
  }
}
