import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { DeviceBook } from "./book.ts";
import { withMore } from "./held.ts";
import type { DeviceFault } from "./port.ts";
import { type LivingPod, notKnown, unbookedOf } from "./running.ts";
import { wantedResources } from "./wanted.ts";
import { DECIDING, NOT_KNOWN } from "./words.ts";

interface Lacking {
  readonly containers: Set<string>;
  why: string | null;
}

/** What the checkpoint should tell and does not: it was lost, or cannot be read. */
export class DeviceLosses {
  readonly #book: DeviceBook;
  readonly #onTold: (message: string) => void;
  #unknown: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #lacking = new Map<string, Lacking>();

  constructor(book: DeviceBook, onTold: (message: string) => void) {
    this.#book = book;
    this.#onTold = onTold;
  }

  /** Books again what containers that run say of themselves. Error: it could not be written; then nothing is given away. */
  recover(living: readonly LivingPod[]): string | null {
    const { found, unknown } = unbookedOf(living, this.#book.now());
    const missing = new Map(unknown);
    let fault: string | null = null;
    if (found.length > 0) {
      for (const { podUid } of found) this.#book.mayHold(podUid);
      const kept = this.#book.edit((now) => withMore(now, found));
      const uids = new Set(found.map(({ podUid }) => podUid));
      const pods = living.flatMap(({ uid, pod }) => (uids.has(uid) ? [`${pod.namespace}/${pod.name}`] : []));
      if (kept.ok) this.#onTold(`devices are booked again from the containers that run: ${pods.join(", ")}`);
      else fault = kept.error;
      if (!kept.ok) for (const { resourceName } of found) missing.set(resourceName, pods);
    }
    this.#unknown = missing;
    this.#book.notGiven = new Set(missing.keys());
    return fault;
  }
  /** Sentences for people. */
  standing(): readonly string[] {
    return [...this.#unknown].map(([resource, pods]) => notKnown(resource, pods));
  }
  /** Null: nothing that it wants may be held by somebody nobody knows of. */
  whyWaits(pod: RunnablePod): DeviceFault | null {
    const wanted = new Set(wantedResources(pod));
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
