import { readAllocateResponse } from "../../../api/decide/devices/allocate-response.ts";
import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { containerOptions, type ResourceResponse } from "../../../api/decide/devices/container-options.ts";
import type { DeviceConflict, DeviceOptions } from "../../../api/model/device-decision.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { DeviceBook } from "./book.ts";
import type { PluginCalls } from "./calls.ts";
import { entriesOf, idsOf } from "./held.ts";
import { DEVICES, markOf } from "./mark.ts";
import type { PluginLook } from "./plugin-look.ts";
import type { DeviceFault } from "./port.ts";
import { wantedDevices } from "./wanted.ts";
import { goText, nothingAllocated, notStarted, waitsFor } from "./words.ts";

export interface StarterPorts {
  readonly host: Pick<DevicePluginHost, "preStart">;
  readonly book: DeviceBook;
  readonly plugins: PluginLook;
  readonly waitMs: number;
  readonly calls: PluginCalls;
  readonly onConflict: (conflict: DeviceConflict) => void;
}
type Fault = Result<never, DeviceFault>;

/**
 * What a container that is about to be made gets for its devices, after the calls that its plugins want before; null: it
 * wants none. kubelet 1.36: GetDeviceRunContainerOptions, which allocates again what is missing: here the pod comes in anew.
 */
export async function startOf(
  ports: StarterPorts,
  pod: RunnablePod,
  { name }: Pick<PodContainer, "name">,
): Promise<Result<DeviceOptions | null, DeviceFault>> {
  const wanted = wantedDevices(pod).get(name);
  if (wanted === undefined) return ok(null);
  const ofContainer = (): readonly PodDevicesEntry[] =>
    entriesOf(ports.book.now(), pod.uid).filter(({ containerName }) => containerName === name);
  for (const resource of wanted.keys()) {
    const fault = await preStart(ports, pod, name, resource, ofContainer());
    if (fault !== null) return fault;
  }
  // as it is now: a call may have taken half a minute
  const held = ofContainer();
  const responses: ResourceResponse[] = [];
  for (const resource of wanted.keys()) {
    const entry = held.find(({ resourceName }) => resourceName === resource);
    const response = responseOf(pod.uid, name, resource, entry);
    if (!response.ok) return err(notStarted(response.error));
    responses.push(response.value);
  }
  const options = containerOptions(responses);
  for (const conflict of options.conflicts) ports.onConflict(conflict);
  const given = held.filter(({ resourceName }) => wanted.has(resourceName));
  const annotations = [...options.annotations.filter(({ name: own }) => own !== DEVICES), markOf(given)];
  return ok({ ...options, annotations });
}

/** Null: the container may start. kubelet 1.36: callPreStartContainerIfNeeded. */
async function preStart(
  { host, plugins, waitMs, calls }: StarterPorts,
  pod: RunnablePod,
  container: string,
  resource: string,
  held: readonly PodDevicesEntry[],
): Promise<Fault | null> {
  const state = plugins.stateOf(resource);
  // whether it wants the call, nobody knows before it is here
  if (state === undefined && plugins.isEarly) return err(waitsFor([resource], waitMs));
  if (!plugins.isKnown(resource)) {
    return err(notStarted(`endpoint not found in cache for a registered resource: ${resource}`));
  }
  const entry = held.find(({ resourceName }) => resourceName === resource);
  if (entry === undefined) return err(notStarted(nothingAllocated(pod.uid, container, resource)));
  if (state?.options.preStartRequired !== true) return null;
  const called = await calls.during(pod.uid, resource, "PreStartContainer", host.preStart(resource, idsOf(entry)));
  if (called.ok) return null;
  return err(notStarted(`device plugin PreStartContainer rpc failed with err: ${goText(called.error)}`));
}

function responseOf(
  podUid: string,
  container: string,
  resource: string,
  entry: PodDevicesEntry | undefined,
): Result<ResourceResponse, string> {
  if (entry === undefined) return err(nothingAllocated(podUid, container, resource));
  const its = `the devices of ${resource} of container ${container}`;
  if (entry.allocResp === null) return err(`the device plugin has not been asked for ${its} yet`);
  const response = readAllocateResponse(entry.allocResp);
  return response.ok
    ? ok({ resource, response: response.value })
    : err(`what the checkpoint has for ${its} is no ContainerAllocateResponse: ${response.error.code}`);
}
