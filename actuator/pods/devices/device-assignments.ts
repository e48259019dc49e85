import { perObject } from "../../../api/base/cache.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import { ok, type Result } from "../../../api/base/result.ts";
import { type DeviceCheckpoint, entryText, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { jsonText } from "../../../api/decide/go/json.ts";
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
 * The checkpoint is one file for all plugins, and at most `LIMITS.stateText` (4 MiB) of it can be read back. So each part
 * has its limit, and the sum stays below: 3 MiB - 1 KiB for entries, 1 MiB for registered resources (up to 1,024 names of at
 * most 322 bytes), and less than 1 KiB around them.
 */
const AROUND = 1024;
const REGISTERED_BYTES = 1024 * 1024;
export const ENTRIES_BYTES = LIMITS.stateText - REGISTERED_BYTES - AROUND;
/** Entries up to this size and larger ones have half of the room each: a usual response has some hundred bytes. */
const SMALL_BYTES = 8 * 1024;
const HALF = ENTRIES_BYTES / 2;
const isSmall = (entry: PodDevicesEntry): boolean => bytesOf(entry) <= SMALL_BYTES;

type Entries = DeviceCheckpoint["entries"];
/** The size of an entry in the file, including a comma. */
export const bytesOf = perObject((entry: PodDevicesEntry): number => {
  const bare = Buffer.byteLength(entryText({ ...entry, allocResp: "" })) + 1;
  return bare + (entry.allocResp?.length ?? "null".length - '""'.length);
});

/**
 * Why there is no room for an entry beside the others; undefined: there is. The small entries of a resource may take half of
 * what the small entries of the others leave, and likewise the large ones. So no plugin's ids or responses block another's,
 * and the total never exceeds `ENTRIES_BYTES`.
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

/** The size of a list with its name and a comma. */
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
/** The maximum number of remembered containers without room. */
const MAX_REFUSED = 1024;

/** The holders of devices: kubelet_internal_checkpoint, parsed again only if its text has changed. */
export class DeviceAssignments {
  readonly #files: ManagerFiles;
  /** Pods whose devices were released while a decision that counts them may be under way. */
  readonly #returned = new Set<string>();
  /** Resources of which nothing may be assigned now, whatever was decided. */
  notGiven: ReadonlySet<string> = new Set();
  /** Decided allocations that were not stored for lack of room, with the reason. */
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
  /** The current checkpoint; an unreadable one counts as empty. */
  now(): DeviceCheckpoint {
    const read = this.#readCheckpoint();
    return (read.ok ? read.value : undefined) ?? EMPTY_CHECKPOINT;
  }
  /** Why nothing counts as held; null: the file is readable, or there is none. */
  fault(): DeviceCheckpointFault | null {
    const read = this.#readCheckpoint();
    return read.ok ? null : read.error;
  }

  /** Reads, changes and writes in one step. True: something changed. Error: the file could not be written and is unchanged. */
  edit(change: (now: DeviceCheckpoint) => DeviceCheckpoint): Result<boolean, string> {
    const now = this.now();
    const next = change(now);
    return next === now ? ok(false) : persistDeviceCheckpoint(this.#files, withinShare(next));
  }

  /** Releases all devices of a pod. True: it had some. */
  release(podUid: string): Result<boolean, string> {
    this.#returned.add(podUid);
    if (this.#returned.size > MAX_RETURNED) this.#returned.delete([...this.#returned][0] as string);
    return this.edit((now) => withoutPods(now, new Set([podUid])));
  }
  /** Marks that the pod is tried again, with the devices held now. */
  restorePod(podUid: string): void {
    this.#returned.delete(podUid);
  }

  /**
   * Merges a decision's `next` with the changes since its snapshot. If it assigns no new devices, it succeeds even if
   * releases cannot be written.
   */
  withResponses(next: unknown): unknown {
    const now = this.now();
    return withCheckpoint(next, (decided) => {
      const merged = withResponsesOf(withoutPods(decided, this.#returned), now);
      const fresh = newEntries(merged, now);
      if (fresh.length > 0) return withinShare(this.#booked(merged, fresh));
      const isSame = (merged.entries?.length ?? 0) === (now.entries?.length ?? 0);
      const isWritten = this.#files.unwritten(DEVICE_CHECKPOINT) === undefined;
      if (!isSame && isWritten) return withinShare(merged);
      if (!isSame) this.edit(() => merged);
      return null;
    });
  }
  /** Why a container's decided devices were not stored; undefined: they were. */
  whyNotShared(named: Named): string | undefined {
    return this.#noRoom.get(keyOf(named));
  }
  /** Why a plugin's response does not fit beside those of the others; undefined: it fits. */
  shareFault(entry: PodDevicesEntry): string | undefined {
    return shareFault(this.now().entries, entry);
  }

  /** Leaves out entries that may not be assigned now, or do not fit. */
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

  #readCheckpoint(): Result<DeviceCheckpoint | undefined, DeviceCheckpointFault> {
    const text = this.#files.read().assignments?.[DEVICE_CHECKPOINT];
    if (text !== this.#text) {
      this.#text = text;
      this.#read = readDeviceCheckpoint(this.#files);
    }
    return this.#read;
  }
}
