import { type DeviceCheckpoint, entryText, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { jsonText } from "../../../api/decide/go/checksum.ts";
import { LIMITS } from "../../../api/model/limits.ts";

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
const sizes = new WeakMap<PodDevicesEntry, number>();
/** In the file, with a comma. */
export function bytesOf(entry: PodDevicesEntry): number {
  const before = sizes.get(entry);
  if (before !== undefined) return before;
  const bare = Buffer.byteLength(entryText({ ...entry, allocResp: "" })) + 1;
  const bytes = bare + (entry.allocResp?.length ?? "null".length - '""'.length);
  sizes.set(entry, bytes);
  return bytes;
}

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

const registeredSizes = new WeakMap<object, number>();
/** A list, with its name and a comma. */
const listBytes = (name: string, ids: readonly string[] | null): number =>
  Buffer.byteLength(jsonText(name)) + (ids ?? []).reduce((sum, id) => sum + Buffer.byteLength(jsonText(id)) + 1, 0) + 6;

/**
 * With so many ids of registered resources as there is room for, the shortest lists first; the others' are left out, since
 * whoever reads the file takes the names only. The same object where all fit. kubelet 1.36: readCheckpoint.
 */
export function withinShare(checkpoint: DeviceCheckpoint): DeviceCheckpoint {
  const { registered } = checkpoint;
  if (registered === null) return checkpoint;
  const entries = (checkpoint.entries ?? []).reduce((sum, entry) => sum + bytesOf(entry), 0);
  const room = Math.min(REGISTERED_BYTES, LIMITS.stateText - AROUND - entries);
  const all = registeredSizes.get(registered) ?? [...registered].reduce((sum, of) => sum + listBytes(...of), 0);
  registeredSizes.set(registered, all);
  if (all <= room) return checkpoint;
  const lists = [...registered].map(([name, ids]) => ({ name, bare: listBytes(name, []), full: listBytes(name, ids) }));
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
