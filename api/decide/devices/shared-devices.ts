import type { PodDevicesEntry } from "./checkpoint.ts";

/** A device that containers of two pods or more hold. */
export interface SharedDevice {
  readonly resource: string;
  readonly id: string;
  readonly podUids: readonly string[];
}

/**
 * The devices that a checkpoint gives to several pods, in the order of the file. The kubelet takes such a file without a
 * word. Containers of one pod may share: an init container leaves its devices to the next.
 */
export function sharedDevices(entries: readonly PodDevicesEntry[] | null): readonly SharedDevice[] {
  const holders = new Map<string, SharedDevice & { readonly podUids: string[] }>();
  for (const { podUid, resourceName: resource, deviceIds } of entries ?? []) {
    for (const id of [...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? [])) {
      const key = JSON.stringify([resource, id]);
      const holder = holders.get(key) ?? { resource, id, podUids: [] };
      if (!holder.podUids.includes(podUid)) holder.podUids.push(podUid);
      holders.set(key, holder);
    }
  }
  return [...holders.values()].filter((holder) => holder.podUids.length > 1);
}
