import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { type LivingPod, notKnown, otherThanBooked, type Unbooked, unbookedOf } from "./booked-devices.ts";
import { keyOf, withMore, without } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { requiredResources } from "./device-requirements.ts";
import { DECIDING, type DeviceFault, NOT_KNOWN } from "./port.ts";

interface Lacking {
  readonly containers: Set<string>;
  why: string | null;
}

/** Allocations that are missing in the checkpoint, because it was lost or cannot be read. */
export class MissingAllocations {
  readonly #book: DeviceAssignments;
  readonly #onTold: (message: string) => void;
  readonly #onBooked: (entries: readonly PodDevicesEntry[]) => void;
  #unknown: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #lacking = new Map<string, Lacking>();

  /** `onBooked`: entries that were made again from what runs. */
  constructor(
    book: DeviceAssignments,
    onTold: (message: string) => void,
    onBooked: (entries: readonly PodDevicesEntry[]) => void,
  ) {
    this.#book = book;
    this.#onTold = onTold;
    this.#onBooked = onBooked;
  }

  /** Books again what containers that run say of themselves. Where it cannot be written, nothing is given away. */
  recover(living: readonly LivingPod[]): void {
    const unbooked = unbookedOf(living, this.#book.now());
    const { found } = unbooked;
    const missing = new Map(unbooked.unknown);
    if (found.length > 0) {
      for (const { podUid } of found) this.#book.mayHold(podUid);
      const taken = new Set(unbooked.taken);
      const kept = this.#book.edit((now) => withMore(without(now, taken), found));
      const uids = new Set(found.map(({ podUid }) => podUid));
      const names = new Map(living.map(({ uid, pod }) => [uid, `${pod.namespace}/${pod.name}`]));
      const pods = [...uids].map((uid) => names.get(uid) ?? uid);
      if (kept.ok) this.#tellBooked(unbooked, names, pods);
      else for (const { resourceName } of found) missing.set(resourceName, pods);
    }
    this.#unknown = missing;
    this.#book.notGiven = new Set(missing.keys());
  }
  #tellBooked({ found, wrong }: Unbooked, names: ReadonlyMap<string, string>, pods: readonly string[]): void {
    this.#onBooked(found);
    for (const was of wrong) {
      const runs = found.find((entry) => keyOf(entry) === keyOf(was));
      if (runs !== undefined) this.#onTold(otherThanBooked(names.get(was.podUid) ?? was.podUid, was, runs));
    }
    this.#onTold(`devices are booked again from the containers that run: ${pods.join(", ")}`);
  }
  /** Sentences for people. */
  standing(): readonly string[] {
    return [...this.#unknown].map(([resource, pods]) => notKnown(resource, pods));
  }
  /** Null: nothing that it wants may be held by somebody nobody knows of. */
  whyWaits(pod: RunnablePod): DeviceFault | null {
    const wanted = new Set(requiredResources(pod));
    const [first] = [...this.#unknown].filter(([resource]) => wanted.has(resource));
    return first === undefined ? null : { reason: NOT_KNOWN, message: notKnown(...first) };
  }

  lacks({ uid }: RunnablePod, container: string, why: string): DeviceFault {
    const lacking = this.#lacking.get(uid) ?? { containers: new Set(), why: null };
    lacking.containers.add(container);
    this.#lacking.set(uid, lacking);
    const message = `its devices are decided anew: ${lacking.why ?? why}`;
    return { reason: DECIDING, message, keeps: true };
  }
  lacking(): ReadonlyMap<string, ReadonlySet<string>> {
    return new Map([...this.#lacking].map(([uid, { containers }]) => [uid, containers]));
  }
  decidedAnew(podUid: string, why: string | null): void {
    const lacking = this.#lacking.get(podUid);
    if (lacking === undefined) return;
    if (why === null) this.#lacking.delete(podUid);
    else lacking.why = why;
  }
}
