import type { DeviceCheckpoint, PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import { type DeviceCheckpointFault, keepDeviceCheckpoint, readDeviceCheckpoint } from "../device-checkpoint.ts";
import { DEVICE_CHECKPOINT, type ManagerFiles } from "../manager-files.ts";
import { keyOf, type Named, NOTHING_HELD, newIn, without, withoutPods, withResponsesOf } from "./held.ts";
import { shareFault, withinShare } from "./shares.ts";
import { withCheckpoint } from "./told.ts";

/** Pods that were sent back and are gone say nothing more: the oldest are forgotten. */
const MOST_RETURNED = 1024;
/** Containers that there was no room for. */
const MOST_REFUSED = 1024;

/** Who holds which devices: kubelet_internal_checkpoint, read again only where its text is another. */
export class DeviceBook {
  readonly #files: ManagerFiles;
  /** Whose devices were given back while a decision may have been under way that counts them in. */
  readonly #returned = new Set<string>();
  /** Resources of which nothing may be given away now, whatever was decided. */
  notGiven: ReadonlySet<string> = new Set();
  /** Of what was decided and not booked: why there is no room for it. */
  readonly #noRoom = new Map<string, string>();
  #text: string | undefined;
  #read: Result<DeviceCheckpoint | undefined, DeviceCheckpointFault>;

  constructor(files: ManagerFiles) {
    this.#files = files;
    this.#text = files.read().assignments?.[DEVICE_CHECKPOINT];
    this.#read = readDeviceCheckpoint(files);
  }

  get directory(): string {
    return this.#files.directory;
  }
  /** The file's path. */
  get file(): string {
    return this.#files.pathOf(DEVICE_CHECKPOINT);
  }
  /** Of what cannot be read nothing is held. */
  now(): DeviceCheckpoint {
    const read = this.#look();
    return (read.ok ? read.value : undefined) ?? NOTHING_HELD;
  }
  /** Why nothing counts as held; null: the file is well, or there is none. */
  fault(): DeviceCheckpointFault | null {
    const read = this.#look();
    return read.ok ? null : read.error;
  }

  /** Reads, changes and writes in one step. True: something changed. Error: it could not be written, and is as it was. */
  edit(change: (now: DeviceCheckpoint) => DeviceCheckpoint): Result<boolean, string> {
    const now = this.now();
    const next = change(now);
    return next === now ? ok(false) : keepDeviceCheckpoint(this.#files, withinShare(next));
  }

  /** Takes all devices of a pod back. True: it had some. */
  giveBack(podUid: string): Result<boolean, string> {
    this.#returned.add(podUid);
    if (this.#returned.size > MOST_RETURNED) this.#returned.delete([...this.#returned][0] as string);
    return this.edit((now) => withoutPods(now, new Set([podUid])));
  }
  /** The pod is asked about anew, from what is held now. */
  mayHold(podUid: string): void {
    this.#returned.delete(podUid);
  }

  /**
   * `next` of a decision with what happened to the file since it was asked; anything else of it is as it came. Where nobody
   * gets devices by it, nobody hangs on whether what others give back could be written.
   */
  merged(next: unknown): unknown {
    const now = this.now();
    return withCheckpoint(next, (told) => {
      const merged = withResponsesOf(withoutPods(told, this.#returned), now);
      const fresh = newIn(merged, now);
      if (fresh.length > 0) return withinShare(this.#booked(merged, fresh));
      const isSame = (merged.entries?.length ?? 0) === (now.entries?.length ?? 0);
      const isWritten = this.#files.unwritten(DEVICE_CHECKPOINT) === undefined;
      if (!isSame && isWritten) return withinShare(merged);
      if (!isSame) this.edit(() => merged);
      return null;
    });
  }
  /** Why a container's devices were decided and not booked; undefined: they were. */
  whyNot(named: Named): string | undefined {
    return this.#noRoom.get(keyOf(named));
  }
  /** Why what a plugin answered cannot be kept beside what the others did; undefined: it can. */
  shareFault(entry: PodDevicesEntry): string | undefined {
    return shareFault(this.now().entries, entry);
  }

  /** Without those that may not be given away now, or that there is no room for. */
  #booked(next: DeviceCheckpoint, fresh: readonly PodDevicesEntry[]): DeviceCheckpoint {
    const refused = new Set(fresh.filter(({ resourceName }) => this.notGiven.has(resourceName)));
    const booked = [...(without(next, new Set(fresh)).entries ?? [])];
    for (const entry of fresh) {
      if (refused.has(entry)) continue;
      const key = keyOf(entry);
      this.#noRoom.delete(key);
      const why = shareFault(booked, entry);
      if (why === undefined) booked.push(entry);
      else {
        this.#noRoom.set(key, why);
        refused.add(entry);
      }
    }
    if (this.#noRoom.size > MOST_REFUSED) this.#noRoom.delete([...this.#noRoom.keys()][0] as string);
    return refused.size === 0 ? next : without(next, refused);
  }

  #look(): Result<DeviceCheckpoint | undefined, DeviceCheckpointFault> {
    const text = this.#files.read().assignments?.[DEVICE_CHECKPOINT];
    if (text !== this.#text) {
      this.#text = text;
      this.#read = readDeviceCheckpoint(this.#files);
    }
    return this.#read;
  }
}
