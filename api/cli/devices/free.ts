import { withoutPods } from "../../../actuator/pods/devices/checkpoint-entries.ts";
import { type DeviceEvent, DeviceHistory, MAX_NAMED } from "../../../actuator/pods/devices/history.ts";
import { persistDeviceCheckpoint, readDeviceCheckpoint } from "../../../actuator/pods/devices/manager-files.ts";
import { systemClock } from "../../../actuator/pods/pod-clock.ts";
import { ok, type Result } from "../../base/result.ts";
import type { PodDevicesEntry } from "../../decide/devices/checkpoint.ts";
import { many } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import { allocatedOf, type FreeFlags } from "./container-devices.ts";
import { type DevicePaths, openPlace } from "./place.ts";

/** `nodewise devices free`: frees a pod's devices. No plugin is called: the device plugin API has no such call. */
export async function free(wanted: string, given: FreeFlags, { terminal, env }: Cli): Promise<Outcome> {
  const place = await openPlace(given, env);
  if (!place.ok) return place;
  try {
    return freeIn(place.value, wanted, given, terminal);
  } finally {
    place.value.release();
  }
}

function freeIn(place: DevicePaths, wanted: string, { output }: FreeFlags, terminal: Terminal): Outcome {
  const { files, pods, config } = place;
  const read = readDeviceCheckpoint(files);
  if (!read.ok) return fault(EXIT.failed, files.explained(read.error.message));
  const found = uidOf(place, wanted, read.value?.entries ?? []);
  if (!found.ok) return found;
  const uid = found.value;
  const known = pods.byHand.get(uid);
  const pod = known === undefined ? uid : `${known.namespace}/${known.name}`;
  const held = (read.value?.entries ?? []).filter(({ podUid }) => podUid === uid);
  // in this order: a crash then leaves a pod without devices, and not devices without a pod
  if (read.value !== undefined && held.length > 0) {
    const kept = persistDeviceCheckpoint(files, withoutPods(read.value, new Set([uid])));
    if (!kept.ok) return fault(EXIT.failed, kept.error);
  }
  const removed = pods.remove(uid);
  if (!removed.ok) return fault(EXIT.failed, removed.error);
  const onFault = (message: string): void => terminal.warn(`nodewise: ${message}`);
  const history = new DeviceHistory({ stateDir: config.stateDir, clock: systemClock, onFault });
  history.add(held.map((entry) => eventOf(entry, pod)));
  const freed = held.map((entry) => ({ container: entry.containerName, ...allocatedOf(entry) }));
  if (output !== "table") printData(terminal, { pod, uid, freed }, output);
  else printText(terminal, freed.length === 0 ? `${printable(pod)} held no device\n` : freed.map(lineOf).join(""));
  return ok(EXIT.ok);
}

const lineOf = ({
  container,
  resource,
  ids,
}: { readonly container: string } & ReturnType<typeof allocatedOf>): string =>
  printable(`freed: ${many(ids.length, "device")} of ${resource} of container ${container}: ${ids.join(" ")}`).concat(
    "\n",
  );

function eventOf(entry: PodDevicesEntry, pod: string): DeviceEvent {
  const { resource, ids } = allocatedOf(entry);
  const { podUid, containerName: container } = entry;
  const devices = ids.slice(0, MAX_NAMED);
  return { kind: "given-back", resource, count: ids.length, devices, podUid, pod, container };
}

/** Finds the uid of a pod by NAMESPACE/NAME or uid, even if the pod is unknown but still has devices. */
function uidOf({ pods }: DevicePaths, wanted: string, entries: readonly PodDevicesEntry[]): Result<string, Fault> {
  const known = [...pods.byHand.values()].filter(
    ({ namespace, name, uid }) => wanted === uid || wanted === `${namespace}/${name}`,
  );
  const uid = known[0]?.uid ?? wanted;
  if (pods.ofDaemon.has(uid))
    return fault(
      EXIT.badInput,
      `${wanted} is run by the daemon of this state directory: end it there, and its devices are freed`,
    );
  if (known.length > 0 || entries.some(({ podUid }) => podUid === uid)) return ok(uid);
  const names = [...pods.byHand.values()].map(({ namespace, name }) => `${namespace}/${name}`);
  const there = names.length === 0 ? "no pod was given any by hand" : `these were: ${names.join(", ")}`;
  return fault(EXIT.failed, printable(`no pod \`${wanted}\` holds devices here; ${there}`));
}
