import type { DeviceCheckpoint, PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { RuntimePod } from "../../lifecycle/runtime-pod.ts";
import { entryOf } from "./held.ts";
import { readMark } from "./mark.ts";
import { wantedDevices } from "./wanted.ts";

/** A pod that is on the node. */
export interface LivingPod {
  readonly uid: string;
  readonly pod: RunnablePod;
  /** Null: the runtime holds nothing of it. */
  readonly seen: RuntimePod | null;
}
export interface Unbooked {
  /** What containers that run tell of their devices. */
  readonly found: readonly PodDevicesEntry[];
  /** Resource -> NAMESPACE/NAME of pods that run with devices of it, nobody knows which. */
  readonly unknown: ReadonlyMap<string, readonly string[]>;
}

/** Devices of containers that run, of which the checkpoint says nothing: it was lost, or somebody changed it. */
export function unbookedOf(living: readonly LivingPod[], now: DeviceCheckpoint): Unbooked {
  const found: PodDevicesEntry[] = [];
  const unknown = new Map<string, string[]>();
  for (const { uid, pod, seen } of living) {
    for (const [containerName, amounts] of wantedDevices(pod)) {
      const runs = seen?.containers.find(({ name, state }) => name === containerName && state !== "exited");
      if (runs === undefined) continue;
      for (const resourceName of amounts.keys()) {
        const named = { podUid: uid, containerName, resourceName };
        if (entryOf(now, named) !== undefined) continue;
        const deviceIds = readMark(runs.annotations).get(resourceName);
        // its plugin is asked again before it starts again
        if (deviceIds !== undefined) found.push({ ...named, deviceIds, allocResp: null });
        else if (runs.state !== "created") {
          const name = `${pod.namespace}/${pod.name}`;
          unknown.set(resourceName, [...new Set([...(unknown.get(resourceName) ?? []), name])]);
        }
      }
    }
  }
  return { found, unknown };
}

export const notKnown = (resource: string, pods: readonly string[]): string =>
  `devices of ${resource} are not given away while pods run whose devices are not known: ${pods.join(", ")} (once their containers are restarted, or the pods removed, it is known)`;
