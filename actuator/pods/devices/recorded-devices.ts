import { type DeviceCheckpoint, idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { perObject } from "../../../api/model/cache.ts";
import type { Device } from "../../../api/model/machine.ts";
import type { RuntimePod } from "../../containerd/cri.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { entryOf, isSameDevices, keyOf, readDevicesAnnotation } from "./checkpoint-entries.ts";
import { deviceRequirements } from "./device-requirements.ts";
import { MAX_NAMED } from "./history.ts";

export interface VanishedDevices {
  readonly podUid: string;
  readonly container: string;
  /** A sentence, without the pod's name. */
  readonly message: string;
}

/** Devices that containers hold and that their registered plugin no longer lists. */
export function vanishedDevices(now: DeviceCheckpoint, states: readonly PluginState[]): readonly VanishedDevices[] {
  const listed = new Map(states.filter((s) => s.state === "registered" && s.listed).map((s) => [s.resource, s]));
  return (now.entries ?? []).flatMap((entry) => {
    const devices = listed.get(entry.resourceName)?.devices;
    if (devices === undefined) return [];
    const here = idsIn(devices);
    const gone = idsOf(entry).filter((id) => !here.has(id));
    if (gone.length === 0) return [];
    const names = `${gone.slice(0, MAX_NAMED).join(", ")}${gone.length > MAX_NAMED ? ", ..." : ""}`;
    const what = gone.length === 1 ? "device" : `${gone.length} devices`;
    const is = gone.length === 1 ? "is" : "are";
    const message = `${what} ${names} of ${entry.resourceName}, held by container ${entry.containerName}, ${is} not in the list of the device plugin any more`;
    return [{ podUid: entry.podUid, container: entry.containerName, message }];
  });
}

const idsIn = perObject((devices: readonly Device[]): ReadonlySet<string> => new Set(devices.map(({ id }) => id)));

/** A pod that is on the node. */
export interface LivingPod {
  readonly uid: string;
  readonly pod: RunnablePod;
  /** Null: the runtime has nothing of the pod. */
  readonly runtimePod: RuntimePod | null;
}
export interface UnrecordedAllocations {
  /** Allocations listed by running containers that the checkpoint lacks or contradicts. */
  readonly found: readonly PodDevicesEntry[];
  /** The checkpoint's entries that contradict `found`. */
  readonly wrong: readonly PodDevicesEntry[];
  /** Entries for containers of other pods that do not run, with devices that are in `found`. */
  readonly taken: readonly PodDevicesEntry[];
  /** Resource -> NAMESPACE/NAME of pods that run with unknown devices of it. */
  readonly unknown: ReadonlyMap<string, readonly string[]>;
}

/**
 * Devices of running containers that the checkpoint does not have as theirs, because it was lost, is outdated, or was
 * changed by somebody. The running containers are right.
 */
export function unrecordedAllocations(living: readonly LivingPod[], now: DeviceCheckpoint): UnrecordedAllocations {
  const found: PodDevicesEntry[] = [];
  const wrong: PodDevicesEntry[] = [];
  const unknown = new Map<string, string[]>();
  const running = new Set<string>();
  for (const { uid, pod, runtimePod } of living) {
    for (const [containerName, amounts] of deviceRequirements(pod)) {
      const runs = runtimePod?.containers.find(({ name, state }) => name === containerName && state !== "exited");
      if (runs === undefined) continue;
      const mark = readDevicesAnnotation(runs.annotations);
      for (const resourceName of amounts.keys()) {
        const named = { podUid: uid, containerName, resourceName };
        running.add(keyOf(named));
        const entry = entryOf(now, named);
        const deviceIds = mark.get(resourceName);
        // without a response: the plugin is asked again before the container's next start
        const recorded = deviceIds === undefined ? undefined : { ...named, deviceIds, allocResp: null };
        if (recorded !== undefined && (entry === undefined || !isSameDevices(entry, recorded))) {
          found.push(recorded);
          if (entry !== undefined) wrong.push(entry);
        } else if (entry === undefined && runs.state !== "created") {
          const name = `${pod.namespace}/${pod.name}`;
          unknown.set(resourceName, [...new Set([...(unknown.get(resourceName) ?? []), name])]);
        }
      }
    }
  }
  return { found, wrong, taken: takenFrom(now, found, running), unknown };
}

function takenFrom(now: DeviceCheckpoint, found: readonly PodDevicesEntry[], running: ReadonlySet<string>) {
  if (found.length === 0) return [];
  const holders = new Map(
    found.flatMap((entry) =>
      idsOf(entry).map((id) => [JSON.stringify([entry.resourceName, id]), entry.podUid] as const),
    ),
  );
  return (now.entries ?? []).filter((entry) => {
    if (running.has(keyOf(entry))) return false;
    const owners = idsOf(entry).map((id) => holders.get(JSON.stringify([entry.resourceName, id])));
    // containers of one pod may use the same devices one after the other
    return owners.some((uid) => uid !== undefined && uid !== entry.podUid);
  });
}

export const notKnown = (resource: string, pods: readonly string[]): string =>
  `devices of ${resource} are not given away while pods run whose devices are not known: ${pods.join(", ")} (once their containers are restarted, or the pods removed, it is known)`;

/** Text for a container whose devices differ from the checkpoint. */
export function allocationMismatch(pod: string, was: PodDevicesEntry, runs: PodDevicesEntry): string {
  const { containerName, resourceName } = was;
  return `the checkpoint had devices ${named(was)} of ${resourceName} as those of container ${containerName} of pod ${pod}, which runs with ${named(runs)}: what runs counts. Was the file put back from a copy? Leave it to the daemon`;
}
function named(entry: PodDevicesEntry): string {
  const ids = idsOf(entry);
  return `${ids.slice(0, MAX_NAMED).join(", ")}${ids.length > MAX_NAMED ? ", ..." : ""}`;
}
