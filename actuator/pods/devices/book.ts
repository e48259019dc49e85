import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import { type DeviceCheckpointFault, keepDeviceCheckpoint, readDeviceCheckpoint } from "../device-checkpoint.ts";
import { DEVICE_CHECKPOINT, type ManagerFiles } from "../manager-files.ts";
import { NOTHING_HELD, withoutNew, withoutPods, withResponsesOf } from "./held.ts";
import { withCheckpoint } from "./told.ts";

/** Pods that were sent back and are gone say nothing more: the oldest are forgotten. */
const MOST_RETURNED = 1024;

/** Who holds which devices: kubelet_internal_checkpoint, read again only where its text is another. */
export class DeviceBook {
  readonly #files: ManagerFiles;
  /** Whose devices were given back while a decision may have been under way that counts them in. */
  readonly #returned = new Set<string>();
  /** Resources of which nothing may be given away now, whatever was decided. */
  notGiven: ReadonlySet<string> = new Set();
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
    return next === now ? ok(false) : keepDeviceCheckpoint(this.#files, next);
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

  /** `next` of a decision with what happened to the file since it was asked; anything else of it is as it came. */
  merged(next: unknown): unknown {
    const now = this.now();
    return withCheckpoint(next, (told) => {
      const known = this.notGiven.size === 0 ? told : withoutNew(told, now, this.notGiven);
      return withResponsesOf(withoutPods(known, this.#returned), now);
    });
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
