import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import type { Device } from "../../../api/model/devices.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import { idsOf } from "./held.ts";
import { MOST_NAMED } from "./history-entry.ts";

export interface Vanished {
  readonly podUid: string;
  readonly container: string;
  /** A sentence, without the pod's name. */
  readonly message: string;
}
const known = new WeakMap<readonly Device[], ReadonlySet<string>>();

/** Devices that containers hold, and that their plugin does not list any more. One that is away lists nothing. */
export function vanishedFrom(now: DeviceCheckpoint, states: readonly PluginState[]): readonly Vanished[] {
  const listed = new Map(states.filter((s) => s.state === "registered" && s.listed).map((s) => [s.resource, s]));
  return (now.entries ?? []).flatMap((entry) => {
    const devices = listed.get(entry.resourceName)?.devices;
    if (devices === undefined) return [];
    const here = idsIn(devices);
    const gone = idsOf(entry).filter((id) => !here.has(id));
    if (gone.length === 0) return [];
    const names = `${gone.slice(0, MOST_NAMED).join(", ")}${gone.length > MOST_NAMED ? ", ..." : ""}`;
    const what = gone.length === 1 ? "device" : `${gone.length} devices`;
    const is = gone.length === 1 ? "is" : "are";
    const message = `${what} ${names} of ${entry.resourceName}, held by container ${entry.containerName}, ${is} not in the list of the device plugin any more`;
    return [{ podUid: entry.podUid, container: entry.containerName, message }];
  });
}

function idsIn(devices: readonly Device[]): ReadonlySet<string> {
  const before = known.get(devices);
  if (before !== undefined) return before;
  const ids = new Set(devices.map(({ id }) => id));
  known.set(devices, ids);
  return ids;
}
