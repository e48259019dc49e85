import { type DeviceCheckpoint, entryText, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { jsonText } from "../../../api/decide/go/json.ts";
import { perObject } from "../../../api/model/cache.ts";
import { LIMITS } from "../../../api/model/limits.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import {
  DEVICE_CHECKPOINT,
  EMPTY_CHECKPOINT,
  keyOf,
  type Named,
  newEntries,
  withCheckpoint,
  without,
  withoutPods,
  withResponsesOf,
} from "./checkpoint-entries.ts";
import {
  type DeviceCheckpointFault,
  type ManagerFiles,
  persistDeviceCheckpoint,
  readDeviceCheckpoint,
} from "./manager-files.ts";

/**
 * The checkpoint is one file for all plugins, and no more than `LIMITS.stateText` (4 MiB) of it is read back. So each part
 * has its bound, and all together stay below: 3 MiB - 1 KiB of entries, 1 MiB of registered resources, of whose names
 * 1,024 have 322 bytes at most, and less than 1 KiB around them.
 */
const AROUND = 1024;
const REGISTERED_BYTES = 1024 * 1024;
export const ENTRIES_BYTES = LIMITS.stateText - REGISTERED_BYTES - AROUND;
/** Entries up to this, and larger ones, have half of the room each: a usual answer has some hundred bytes. */
const SMALL_BYTES = 8 * 1024;
const HALF = ENTRIES_BYTES / 2;
const isSmall = (entry: PodDevicesEntry): boolean => bytesOf(entry) <= SMALL_BYTES;

type Entries = DeviceCheckpoint["entries"];
/** The size of an entry in the file, with a comma. */
export const bytesOf = perObject((entry: PodDevicesEntry): number => {
  const bare = Buffer.byteLength(entryText({ ...entry, allocResp: "" })) + 1;
  return bare + (entry.allocResp?.length ?? "null".length - '""'.length);
});

/**
 * Why there is no room for an entry beside the others; undefined: there is. The small entries of a resource take no more than
 * half of what the small ones of the others leave, and so do the large ones: so no plugin's ids or answers are in the way of
 * another's, and what is taken is never more than `ENTRIES_BYTES`.
 */
export function shareFault(entries: Entries, entry: PodDevicesEntry): string | undefined {
  const { resourceName, podUid, containerName } = entry;
  let its = bytesOf(entry);
  let others = 0;
  for (const one of entries ?? []) {
    if (isSmall(one) !== isSmall(entry)) continue;
    if (one.resourceName !== resourceName) others += bytesOf(one);
    else if (one.podUid !== podUid || one.containerName !== containerName) its += bytesOf(one);
  }
  const most = Math.max(0, Math.floor((HALF - others) / 2));
  return its <= most
    ? undefined
    : `ids and answers of ${resourceName} would take ${its} bytes of kubelet_internal_checkpoint (${bytesOf(entry)} of them for container ${containerName}), and there is room for ${most}: those of one resource may take half of what the others leave of ${HALF}, where ${isSmall(entry) ? "small" : "large"} ones are kept`;
}

/** A list, with its name and a comma. */
const listBytes = (name: string, ids: readonly string[] | null): number =>
  Buffer.byteLength(jsonText(name)) + (ids ?? []).reduce((sum, id) => sum + Buffer.byteLength(jsonText(id)) + 1, 0) + 6;
/**
 * The checkpoint with as many ids of registered resources as fit, the shortest lists first; readers use only the names
 * of the others. The same object if all fit. kubelet 1.36: readCheckpoint.
 */
export function withinShare(checkpoint: DeviceCheckpoint): DeviceCheckpoint {
  const { registered } = checkpoint;
  if (registered === null) return checkpoint;
  const entries = (checkpoint.entries ?? []).reduce((sum, entry) => sum + bytesOf(entry), 0);
  const room = Math.min(REGISTERED_BYTES, LIMITS.stateText - AROUND - entries);
  const lists = [...registered].map(([name, ids]) => ({ name, bare: listBytes(name, []), full: listBytes(name, ids) }));
  if (lists.reduce((sum, { full }) => sum + full, 0) <= room) return checkpoint;
  let left = room - lists.reduce((sum, { bare }) => sum + bare, 0);
  const whole = new Set<string>();
  for (const { name, bare, full } of lists.toSorted((a, b) => a.full - b.full)) {
    left -= full - bare;
    if (left < 0) break;
    whole.add(name);
  }
  return {
    ...checkpoint,
    registered: new Map([...registered].map(([name, ids]) => [name, whole.has(name) ? ids : []])),
  };
}

/** The maximum number of returned pods that are remembered; the oldest are forgotten. */
const MAX_RETURNED = 1024;
/** Containers that there was no room for. */
const MAX_REFUSED = 1024;

/** The holders of devices: kubelet_internal_checkpoint, parsed again only if its text has changed. */
export class DeviceAssignments {
  readonly #files: ManagerFiles;
  /** Pods whose devices were freed while a decision that counts them may have been under way. */
  readonly #returned = new Set<string>();
  /** Resources of which nothing may be given away now, whatever was decided. */
  notGiven: ReadonlySet<string> = new Set();
  /** Decisions that were not stored: why there is no room. */
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
  /** A checkpoint that cannot be read holds nothing. */
  now(): DeviceCheckpoint {
    const read = this.#look();
    return (read.ok ? read.value : undefined) ?? EMPTY_CHECKPOINT;
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
    return next === now ? ok(false) : persistDeviceCheckpoint(this.#files, withinShare(next));
  }

  /** Takes all devices of a pod back. True: it had some. */
  giveBack(podUid: string): Result<boolean, string> {
    this.#returned.add(podUid);
    if (this.#returned.size > MAX_RETURNED) this.#returned.delete([...this.#returned][0] as string);
    return this.edit((now) => withoutPods(now, new Set([podUid])));
  }
  /** The pod is tried again, with the devices held now. */
  restorePod(podUid: string): void {
    this.#returned.delete(podUid);
  }

  /**
   * Merges a decision's `next` with changes since its snapshot. If nobody gets devices by it, it does not matter
   * whether releases can be written.
   */
  withResponses(next: unknown): unknown {
    const now = this.now();
    return withCheckpoint(next, (told) => {
      const merged = withResponsesOf(withoutPods(told, this.#returned), now);
      const fresh = newEntries(merged, now);
      if (fresh.length > 0) return withinShare(this.#booked(merged, fresh));
      const isSame = (merged.entries?.length ?? 0) === (now.entries?.length ?? 0);
      const isWritten = this.#files.unwritten(DEVICE_CHECKPOINT) === undefined;
      if (!isSame && isWritten) return withinShare(merged);
      if (!isSame) this.edit(() => merged);
      return null;
    });
  }
  /** Why a container's devices were decided and not booked; undefined: they were. */
  whyNotShared(named: Named): string | undefined {
    return this.#noRoom.get(keyOf(named));
  }
  /** Why what a plugin answered cannot be kept beside what the others did; undefined: it can. */
  shareFault(entry: PodDevicesEntry): string | undefined {
    return shareFault(this.now().entries, entry);
  }

  /** Without entries that may not be assigned now, or do not fit. */
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
    if (this.#noRoom.size > MAX_REFUSED) this.#noRoom.delete([...this.#noRoom.keys()][0] as string);
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
