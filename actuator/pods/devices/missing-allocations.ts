import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { keyOf, withEntriesOf, without } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { requiredResources } from "./device-requirements.ts";
import { DEVICES_NOT_KNOWN, type DeviceFault, REALLOCATING } from "./port.ts";
import {
  allocationMismatch,
  type LivingPod,
  notKnown,
  type UnrecordedAllocations,
  unrecordedAllocations,
} from "./recorded-devices.ts";

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
    const wanted = new Set(requiredResources(pod));
    const [first] = [...this.#unknown].filter(([resource]) => wanted.has(resource));
    return first === undefined ? null : { reason: DEVICES_NOT_KNOWN, message: notKnown(...first) };
  }

  add({ uid }: RunnablePod, container: string, why: string): DeviceFault {
    const lacking = this.#reallocations.get(uid) ?? { containers: new Set(), why: null };
    lacking.containers.add(container);
    this.#reallocations.set(uid, lacking);
    const message = `its devices are decided anew: ${lacking.why ?? why}`;
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
