import { Lru, memo, perObject } from "../../../api/base/cache.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import { ok, type Result } from "../../../api/base/result.ts";
import {
  type DeviceCheckpoint,
  type DevicesPerNuma,
  idsOf,
  type PodDevicesEntry,
  writeCheckpoint,
} from "../../../api/decide/devices/checkpoint.ts";
import { type CheckpointFault, readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import type { NameValue } from "../../../api/model/devices.ts";
import type { StateFiles } from "../../machine/files.ts";

/**
 * State files for decisions: without plugins' responses, which may be secret and do not affect decisions. An
 * unreadable checkpoint counts as none, as in a kubelet.
 */
export const redactFiles = perObject(
  (files: StateFiles): StateFiles => ({ ...files, assignments: redactedAssignments(files.assignments) }),
);

function redactedAssignments(assignments: StateFiles["assignments"]): StateFiles["assignments"] {
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (assignments === undefined || text === undefined) return assignments;
  const read = checkpointOf(text);
  if (read.ok) {
    const bare = withEmptyResponses(read.value);
    return bare === read.value ? assignments : { ...assignments, [DEVICE_CHECKPOINT]: textOf(bare) };
  }
  const { [DEVICE_CHECKPOINT]: _, ...rest } = assignments;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/**
 * A decision's `next` with its checkpoint changed by `change`, or removed if `change` returns null; everything else, and an
 * unreadable checkpoint, stays as it is.
 */
export function withCheckpoint(
  next: unknown,
  change: (checkpoint: DeviceCheckpoint) => DeviceCheckpoint | null,
): unknown {
  const { assignments } = (next ?? {}) as { readonly assignments?: Readonly<Record<string, unknown>> };
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (typeof text !== "string") return next;
  const read = checkpointOf(text);
  if (!read.ok) return next;
  const changed = change(read.value);
  if (changed === read.value) return next;
  if (changed === null) {
    const { [DEVICE_CHECKPOINT]: _, ...rest } = assignments ?? {};
    return { ...(next as object), assignments: rest };
  }
  return { ...(next as object), assignments: { ...assignments, [DEVICE_CHECKPOINT]: textOf(changed) } };
}

/** The checkpoint of device allocations. kubelet 1.36: kubeletDeviceManagerCheckpoint. */
export const DEVICE_CHECKPOINT = "kubelet_internal_checkpoint";

/** The number of current versions: the one on disk, those in recent snapshots, and the last decision's. */
const MAX_LATELY = 4;
const texts = new WeakMap<DeviceCheckpoint, string>();
/** The last checkpoints by text, since parsing megabytes again is slow. */
const lately = new Lru<string, DeviceCheckpoint>(MAX_LATELY);

/** `writeCheckpoint`, cached per checkpoint. */
export function textOf(checkpoint: DeviceCheckpoint): string {
  const before = texts.get(checkpoint);
  if (before !== undefined) return before;
  const text = writeCheckpoint(checkpoint);
  remember(text, checkpoint);
  return text;
}

/** `readCheckpoint`, or the same object from which the text was written. */
export function checkpointOf(text: string): Result<DeviceCheckpoint, CheckpointFault> {
  const before = lately.get(text);
  if (before !== undefined) return ok(before);
  const read = readCheckpoint(text);
  if (read.ok) remember(text, read.value);
  return read;
}

function remember(text: string, checkpoint: DeviceCheckpoint): void {
  texts.set(checkpoint, text);
  lately.set(text, checkpoint);
}

/**
 * An annotation that lists a container's devices, so that a lost checkpoint can be rebuilt from running containers.
 */
export const DEVICES_ANNOTATION = "nodewise.dev/devices";

/** Resource -> NUMA node -> ids, as JSON. */
export function devicesAnnotation(entries: readonly PodDevicesEntry[]): NameValue {
  const held = entries.map(({ resourceName, deviceIds }) => [
    resourceName,
    Object.fromEntries([...(deviceIds ?? [])].map(([node, ids]) => [String(node), ids ?? []])),
  ]);
  return { name: DEVICES_ANNOTATION, value: JSON.stringify(Object.fromEntries(held)) };
}

type AnnotatedDevices = ReadonlyMap<string, DevicesPerNuma>;
/** The devices by resource; an invalid annotation lists none. */
export const readDevicesAnnotation = (annotations: Readonly<Record<string, string>>): AnnotatedDevices =>
  parsed(annotations[DEVICES_ANNOTATION] ?? "{}");
const MAX_KNOWN = 512;
/** Cached, since each sync reads the annotations of all running containers. */
const parsed = memo(MAX_KNOWN, (text: string): AnnotatedDevices => {
  try {
    const read: unknown = JSON.parse(text);
    const pairs = Object.entries(read ?? {}).map(([resource, perNuma]) => [resource, perNumaOf(perNuma)] as const);
    return new Map(pairs.filter((pair): pair is readonly [string, DevicesPerNuma] => pair[1] !== null));
  } catch {
    return new Map();
  }
});

function perNumaOf(value: unknown): DevicesPerNuma | null {
  const perNuma = new Map<number, readonly string[]>();
  for (const [key, ids] of Object.entries(value ?? {})) {
    const isList = Array.isArray(ids) && ids.every((id) => typeof id === "string");
    if (!isList || !Number.isSafeInteger(Number(key))) return null;
    perNuma.set(Number(key), ids);
  }
  return perNuma.size === 0 ? null : perNuma;
}

/** An empty checkpoint. */
export const EMPTY_CHECKPOINT: DeviceCheckpoint = { entries: null, registered: null };

export type Named = Pick<PodDevicesEntry, "podUid" | "containerName" | "resourceName">;
export const keyOf = ({ podUid, containerName, resourceName }: Named): string =>
  JSON.stringify([podUid, containerName, resourceName]);

export const isSameDevices = (a: PodDevicesEntry, b: PodDevicesEntry): boolean =>
  idsOf(a).toSorted().join("\0") === idsOf(b).toSorted().join("\0");

/** A pod's entries; where `allocResp` is null, the plugin's Allocate must still be called. */
export const entriesOf = ({ entries }: DeviceCheckpoint, podUid: string): readonly PodDevicesEntry[] =>
  (entries ?? []).filter((entry) => entry.podUid === podUid);

export const entryOf = ({ entries }: DeviceCheckpoint, named: Named): PodDevicesEntry | undefined =>
  entries?.find(
    ({ podUid, containerName, resourceName }) =>
      podUid === named.podUid && containerName === named.containerName && resourceName === named.resourceName,
  );

/** Writes an empty list as null, as Go does. */
const withEntries = (checkpoint: DeviceCheckpoint, entries: readonly PodDevicesEntry[]): DeviceCheckpoint => ({
  ...checkpoint,
  entries: entries.length === 0 ? null : entries,
});

/** Stores a plugin's answer in an entry; returns the same object if that entry is gone or has other devices by now. */
export function withResponse(checkpoint: DeviceCheckpoint, asked: PodDevicesEntry, base64: string): DeviceCheckpoint {
  const entry = entryOf(checkpoint, asked);
  if (entry === undefined || entry.allocResp !== null || !isSameDevices(entry, asked)) return checkpoint;
  const filled = { ...entry, allocResp: base64 };
  return withEntries(
    checkpoint,
    (checkpoint.entries ?? []).map((one) => (one === entry ? filled : one)),
  );
}

/** The checkpoint without these pods; the same object if none of them holds anything. */
export function withoutPods(checkpoint: DeviceCheckpoint, podUids: ReadonlySet<string>): DeviceCheckpoint {
  const kept = (checkpoint.entries ?? []).filter(({ podUid }) => !podUids.has(podUid));
  return kept.length === (checkpoint.entries?.length ?? 0) ? checkpoint : withEntries(checkpoint, kept);
}

/** Keeps the allocations and drops the plugins' responses: device paths may differ after a reboot. */
export function withoutResponses(checkpoint: DeviceCheckpoint): DeviceCheckpoint {
  const { entries } = checkpoint;
  if (entries === null || entries.every(({ allocResp }) => allocResp === null)) return checkpoint;
  return withEntries(
    checkpoint,
    entries.map((entry) => ({ ...entry, allocResp: null })),
  );
}

/** The checkpoint for decisions: allocations without plugins' responses, which may be secret. */
function withEmptyResponses(checkpoint: DeviceCheckpoint): DeviceCheckpoint {
  if ((checkpoint.entries ?? []).every(({ allocResp }) => allocResp === null || allocResp === "")) return checkpoint;
  const entries = (checkpoint.entries ?? []).map((e) => (e.allocResp === null ? e : { ...e, allocResp: "" }));
  return withEntries(checkpoint, entries);
}

/**
 * Adds the current answers to `next`, which was made from an older checkpoint without answers (`withEmptyResponses`).
 * An entry whose answer is gone must be asked for again.
 */
export function withResponsesOf(next: DeviceCheckpoint, current: DeviceCheckpoint): DeviceCheckpoint {
  const byKey = new Map((current.entries ?? []).map((entry) => [keyOf(entry), entry]));
  let isSame = true;
  const entries = (next.entries ?? []).map((entry) => {
    const now = byKey.get(keyOf(entry));
    const response = entry.allocResp === "" ? null : entry.allocResp;
    const allocResp = now !== undefined && isSameDevices(now, entry) ? now.allocResp : response;
    if (allocResp === entry.allocResp) return entry;
    isSame = false;
    return { ...entry, allocResp };
  });
  return isSame ? next : withEntries(next, entries);
}

/** The checkpoint with more entries, which replace entries of the same containers. */
export function withEntriesOf(checkpoint: DeviceCheckpoint, more: readonly PodDevicesEntry[]): DeviceCheckpoint {
  const keys = new Set(more.map(keyOf));
  return withEntries(checkpoint, [...(checkpoint.entries ?? []).filter((one) => !keys.has(keyOf(one))), ...more]);
}

/** Entries of `next` that are missing in `current`, or have other devices there. */
export function newEntries(next: DeviceCheckpoint, current: DeviceCheckpoint): readonly PodDevicesEntry[] {
  const known = new Map((current.entries ?? []).map((entry) => [keyOf(entry), entry]));
  return (next.entries ?? []).filter((entry) => {
    const now = known.get(keyOf(entry));
    return now === undefined || !isSameDevices(now, entry);
  });
}
/** The checkpoint without some entries; the same object if none is removed. */
export function without(next: DeviceCheckpoint, gone: ReadonlySet<PodDevicesEntry>): DeviceCheckpoint {
  const kept = (next.entries ?? []).filter((entry) => !gone.has(entry));
  return kept.length === (next.entries?.length ?? 0) ? next : withEntries(next, kept);
}

/** Leaves out pods that still wait for a plugin's response, unless their devices were already published. */
export function withoutPending(now: DeviceCheckpoint, decided: DeviceCheckpoint): DeviceCheckpoint {
  const known = new Map((decided.entries ?? []).map((entry) => [keyOf(entry), entry]));
  const isReported = (entry: PodDevicesEntry): boolean => {
    const before = known.get(keyOf(entry));
    return before !== undefined && isSameDevices(before, entry);
  };
  const pending = (now.entries ?? []).filter((entry) => entry.allocResp === null && !isReported(entry));
  if (pending.length === 0) return now;
  const waiting = new Set(pending.map(({ podUid }) => podUid));
  return withEntries(
    now,
    (now.entries ?? []).filter((entry) => !waiting.has(entry.podUid) || isReported(entry)),
  );
}

interface AllocationChanges {
  readonly allocated: readonly PodDevicesEntry[];
  readonly givenBack: readonly PodDevicesEntry[];
}
/** Added and removed entries; an entry with other devices counts as both. Plugins' responses are ignored. */
export function changesBetween(before: DeviceCheckpoint, after: DeviceCheckpoint): AllocationChanges {
  if (before.entries === after.entries) return { allocated: [], givenBack: [] };
  const old = new Map((before.entries ?? []).map((entry) => [keyOf(entry), entry]));
  const allocated: PodDevicesEntry[] = [];
  for (const entry of after.entries ?? []) {
    const twin = old.get(keyOf(entry));
    if (twin === undefined || !isSameDevices(twin, entry)) allocated.push(entry);
    else old.delete(keyOf(entry));
  }
  return { allocated, givenBack: [...old.values()] };
}

/**
 * The checkpoint with the currently registered resources, limited to the plugins' share, and their allocatable devices. kubelet
 * 1.36: writeCheckpoint.
 */
export function withRegistered(
  checkpoint: DeviceCheckpoint,
  all: ReadonlySet<string>,
  healthyOf: (resource: string) => readonly string[],
): DeviceCheckpoint {
  const before = checkpoint.registered;
  const known = all.size > LIMITS.deviceResources ? new Set([...all].slice(0, LIMITS.deviceResources)) : all;
  const isSame = known.size === (before?.size ?? 0) && [...known].every((resource) => before?.has(resource));
  if (isSame) return checkpoint;
  return { ...checkpoint, registered: new Map([...known].map((resource) => [resource, healthyOf(resource)])) };
}
