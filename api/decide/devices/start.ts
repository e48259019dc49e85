import { value } from "../../model/amount.ts";
import type { DeviceOptions } from "../../model/device-decision.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { AllocateError, TopologyHint } from "../topology/hint.ts";
import { readAllocateResponse } from "./allocate-response.ts";
import { containerOptions } from "./container-options.ts";
import { isKnown } from "./inventory.ts";
import { limitsOf, uidOf } from "./limits.ts";
import type { DeviceManager } from "./manager.ts";

/** A PreStartContainer call that a plugin wants; the kubelet waits 30 s for it. */
export interface PreStartCall {
  readonly resource: string;
  readonly deviceIds: readonly string[];
}
export interface ContainerStart {
  /** To be called before the container starts; a plugin that stopped fails it, and with it the start. */
  readonly preStart: readonly PreStartCall[];
  /** Devices were given only now: the kubelet restarted while the container ran, and so passed it over. */
  readonly reallocated: boolean;
  /** Undefined: the container holds no device. */
  readonly options: DeviceOptions | undefined;
  /** Resources whose plugin has not said yet what the container gets; `options` lacks them. */
  readonly pending: readonly string[];
}

/**
 * What a container that is about to start gets for its devices, the calls due before, and devices where it has none yet while
 * its pod is active. The error is the kubelet's text. kubelet 1.36: GetDeviceRunContainerOptions.
 */
export function startContainer(
  manager: DeviceManager,
  pod: Pod,
  container: Container,
  affinity: TopologyHint,
  podActive: boolean,
): Result<ContainerStart, AllocateError> {
  const { state } = manager;
  const preStart: PreStartCall[] = [];
  let reallocated = false;
  for (const [resource, amount] of limitsOf(container)) {
    if (!state.isDeviceResource(resource) || value(amount) === 0) continue;
    const held = state.holding(uidOf(pod), container.name, resource)?.ids;
    const call = preStartCall(manager, pod, container, resource, held);
    if (!call.ok) return call;
    if (call.value !== undefined) preStart.push(call.value);
    reallocated ||= podActive && held === undefined;
  }
  if (reallocated) {
    const allocated = manager.allocate(pod, container, affinity);
    if (!allocated.ok) return allocated;
  }
  return ok({ preStart, reallocated, ...containerDevices(manager, uidOf(pod), container.name) });
}

/** kubelet 1.36: callPreStartContainerIfNeeded. */
function preStartCall(
  { inventories }: DeviceManager,
  pod: Pod,
  container: Container,
  resource: string,
  held: ReadonlySet<string> | undefined,
): Result<PreStartCall | undefined, AllocateError> {
  const inventory = inventories.get(resource);
  if (!isKnown(inventory)) {
    return err({ message: `endpoint not found in cache for a registered resource: ${resource}` });
  }
  if (inventory.options.preStartRequired !== true) return ok(undefined);
  if (held === undefined) {
    const where = `pod ${uidOf(pod)}, container ${container.name}, resource ${resource}`;
    return err({ message: `no devices found allocated in local cache for ${where}` });
  }
  return ok({ resource, deviceIds: [...held] });
}

/** What the container's plugins have answered, put together. */
export function containerDevices(
  { state }: DeviceManager,
  podUid: string,
  container: string,
): Pick<ContainerStart, "options" | "pending"> {
  const resources = [...(state.pods.get(podUid)?.get(container) ?? [])];
  const pending = resources.filter(([, { allocResp }]) => allocResp === null).map(([resource]) => resource);
  const responses = resources.flatMap(([resource, { allocResp }]) => {
    // those that are no message were dropped when the checkpoint was read
    const response = allocResp === null ? undefined : readAllocateResponse(allocResp);
    return response?.ok ? [{ resource, response: response.value }] : [];
  });
  return { options: resources.length === 0 ? undefined : containerOptions(responses), pending };
}
