import { type DeviceCheckpoint, writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import { type DeviceCheckpointFault, keepDeviceCheckpoint, readDeviceCheckpoint } from "../device-checkpoint.ts";
import type { ManagerFiles } from "../manager-files.ts";
import { NOTHING_HELD, withoutPods, withResponsesOf } from "./held.ts";

const FILE = "kubelet_internal_checkpoint";
/** Pods that were sent back and are gone say nothing more: the oldest are forgotten. */
const MOST_RETURNED = 1024;

/** Who holds which devices: kubelet_internal_checkpoint, read again only where its text is another. */
export class DeviceBook {
  readonly #files: ManagerFiles;
  /** Whose devices were given back while a decision may have been under way that counts them in. */
  readonly #returned = new Set<string>();
  #text: string | undefined;
  #read: Result<DeviceCheckpoint | undefined, DeviceCheckpointFault>;

  constructor(files: ManagerFiles) {
    this.#files = files;
    this.#text = files.read().assignments?.[FILE];
    this.#read = readDeviceCheckpoint(files);
  }

  get directory(): string {
    return this.#files.directory;
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
    const { assignments } = (next ?? {}) as { readonly assignments?: Readonly<Record<string, unknown>> };
    const text = assignments?.[FILE];
    if (typeof text !== "string" || text === this.#files.read().assignments?.[FILE]) return next;
    const read = readCheckpoint(text);
    if (!read.ok) return next;
    const merged = withResponsesOf(withoutPods(read.value, this.#returned), this.now());
    if (merged === read.value) return next;
    return { ...(next as object), assignments: { ...assignments, [FILE]: writeCheckpoint(merged) } };
  }

  #look(): Result<DeviceCheckpoint | undefined, DeviceCheckpointFault> {
    const text = this.#files.read().assignments?.[FILE];
    if (text !== this.#text) {
      this.#text = text;
      this.#read = readDeviceCheckpoint(this.#files);
    }
    return this.#read;
  }
}
