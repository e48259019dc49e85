import type { DeviceCheckpoint, PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";

/** What a file without anything in it holds. */
export const NOTHING_HELD: DeviceCheckpoint = { entries: null, registered: null };

type Named = Pick<PodDevicesEntry, "podUid" | "containerName" | "resourceName">;
const keyOf = ({ podUid, containerName, resourceName }: Named): string =>
  JSON.stringify([podUid, containerName, resourceName]);

/** Ids of an entry, each once: a device of two NUMA nodes stands below both. */
export const idsOf = ({ deviceIds }: PodDevicesEntry): readonly string[] => [
  ...new Set([...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? [])),
];
const isSameDevices = (a: PodDevicesEntry, b: PodDevicesEntry): boolean =>
  idsOf(a).toSorted().join("\0") === idsOf(b).toSorted().join("\0");

/** What a pod holds; its plugins are still to be asked with Allocate where `allocResp` is null. */
export const entriesOf = ({ entries }: DeviceCheckpoint, podUid: string): readonly PodDevicesEntry[] =>
  (entries ?? []).filter((entry) => entry.podUid === podUid);

export const entryOf = ({ entries }: DeviceCheckpoint, named: Named): PodDevicesEntry | undefined =>
  entries?.find(
    ({ podUid, containerName, resourceName }) =>
      podUid === named.podUid && containerName === named.containerName && resourceName === named.resourceName,
  );

/** As Go writes it: no entries are null. */
const withEntries = (checkpoint: DeviceCheckpoint, entries: readonly PodDevicesEntry[]): DeviceCheckpoint => ({
  ...checkpoint,
  entries: entries.length === 0 ? null : entries,
});

/** With what a plugin answered about an entry; the same object where that one is gone, or holds other devices by now. */
export function withResponse(checkpoint: DeviceCheckpoint, asked: PodDevicesEntry, base64: string): DeviceCheckpoint {
  const entry = entryOf(checkpoint, asked);
  if (entry === undefined || entry.allocResp !== null || !isSameDevices(entry, asked)) return checkpoint;
  const filled = { ...entry, allocResp: base64 };
  return withEntries(
    checkpoint,
    (checkpoint.entries ?? []).map((one) => (one === entry ? filled : one)),
  );
}

/** The same object where none of them holds anything. */
export function withoutPods(checkpoint: DeviceCheckpoint, podUids: ReadonlySet<string>): DeviceCheckpoint {
  const kept = (checkpoint.entries ?? []).filter(({ podUid }) => !podUids.has(podUid));
  return kept.length === (checkpoint.entries?.length ?? 0) ? checkpoint : withEntries(checkpoint, kept);
}

/** Who holds what stays, and what plugins answered is void: paths of devices may be others after a reboot. */
export function withoutResponses(checkpoint: DeviceCheckpoint): DeviceCheckpoint {
  const { entries } = checkpoint;
  if (entries === null || entries.every(({ allocResp }) => allocResp === null)) return checkpoint;
  return withEntries(
    checkpoint,
    entries.map((entry) => ({ ...entry, allocResp: null })),
  );
}

/** `next` was made from an older file: where it says that a plugin is still to be asked, what that has answered since. */
export function withResponsesOf(next: DeviceCheckpoint, current: DeviceCheckpoint): DeviceCheckpoint {
  const answered = (current.entries ?? []).filter(({ allocResp }) => allocResp !== null);
  const byKey = new Map(answered.map((entry) => [keyOf(entry), entry]));
  let isSame = true;
  const entries = (next.entries ?? []).map((entry) => {
    const now = entry.allocResp === null ? byKey.get(keyOf(entry)) : undefined;
    if (now === undefined || !isSameDevices(now, entry)) return entry;
    isSame = false;
    return { ...entry, allocResp: now.allocResp };
  });
  return isSame ? next : withEntries(next, entries);
}

export interface HeldChanges {
  readonly allocated: readonly PodDevicesEntry[];
  readonly givenBack: readonly PodDevicesEntry[];
}
/** Entries that came and that went; one with other devices did both. What plugins answered is not looked at. */
export function changesBetween(before: DeviceCheckpoint, after: DeviceCheckpoint): HeldChanges {
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

/** Where other resources are known than it says: those, with what of them may be given out. kubelet 1.36: writeCheckpoint. */
export function withRegistered(
  checkpoint: DeviceCheckpoint,
  known: ReadonlySet<string>,
  healthyOf: (resource: string) => readonly string[],
): DeviceCheckpoint {
  const before = checkpoint.registered;
  const isSame = known.size === (before?.size ?? 0) && [...known].every((resource) => before?.has(resource));
  if (isSame) return checkpoint;
  return { ...checkpoint, registered: new Map([...known].map((resource) => [resource, healthyOf(resource)])) };
}
