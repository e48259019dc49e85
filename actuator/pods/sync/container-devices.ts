import { err, ok, type Result } from "../../../api/base/result.ts";
import type { DeviceOptions } from "../../../api/model/devices.ts";
import type { PodActions } from "../../lifecycle/actions.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import { deviceRequirements } from "../devices/device-requirements.ts";
import type { ClaimFault, ContainerClaims } from "../devices/pod-claims.ts";
import type { ContainerDevices, DeviceFault } from "../devices/port.ts";
import type { ContainerFault } from "./images.ts";

/** The reason for a container's device fault that has no reason of its own. */
const REASON = "CreateContainerConfigError";

/** Why a pod with claims does not start if this daemon serves no DRA drivers. */
const NO_DRIVERS = "ResourceClaims are not prepared by this daemon (draDrivers: off)";
function hasClaims({ object }: RunnablePod): boolean {
  const { spec, status } = decodedPod(object) ?? {};
  return (spec?.resourceClaims ?? []).length > 0 || status?.extendedResourceClaimStatus !== undefined;
}

/** Prepares the pod's claims before its sandbox is made. Null: they are prepared, or the pod has none. */
export async function prepareClaims(
  claims: ContainerClaims | undefined,
  pod: RunnablePod,
  signal: AbortSignal,
): Promise<ClaimFault | null> {
  if (claims !== undefined) return claims.prepare(pod, signal);
  return hasClaims(pod) ? { message: NO_DRIVERS, waits: null } : null;
}

/** The CDI devices of the pod's claims for a container that is about to be created. Error: why it cannot be created. */
export function claimedDevices(
  claims: ContainerClaims | undefined,
  pod: RunnablePod,
  container: PodContainer,
): Result<readonly string[], string> {
  if (claims !== undefined) return claims.devices(pod, container);
  return hasClaims(pod) ? err(NO_DRIVERS) : ok([]);
}

/** Allocates the devices of the `starting` containers before anything of the pod is made. Null: they are ready, or none is requested. */
export async function allocateDevices(
  devices: ContainerDevices | undefined,
  pod: RunnablePod,
  signal: AbortSignal,
  starting: ReadonlySet<string>,
): Promise<DeviceFault | null> {
  if (devices === undefined || deviceRequirements(pod).size === 0) return null;
  const prepared = await devices.allocate(pod, signal, starting);
  return prepared.ok ? null : prepared.error;
}

/**
 * Lists the containers that start. For a new pod these are all of its containers: a failing plugin is reported before the
 * first container starts.
 */
export function startingContainers({ spec }: RunnablePod, actions: PodActions): ReadonlySet<string> {
  const starts = [...actions.initToStart, ...actions.toStart];
  const all = [...spec.initContainers, ...spec.containers];
  return new Set((actions.createSandbox ? all : starts).map(({ name }) => name));
}

/** Options for the devices of a container that is about to be created; null: it requests none. Error: why it cannot be created. */
export async function containerDevices(
  devices: ContainerDevices | undefined,
  pod: RunnablePod,
  container: PodContainer,
): Promise<Result<DeviceOptions | null, ContainerFault>> {
  const requirements = deviceRequirements(pod).get(container.name);
  if (requirements === undefined) return ok(null);
  const resources = [...requirements.keys()].join(", ");
  if (devices === undefined) {
    const message = `${resources}: device plugins are not served by this daemon (devicePlugins: off)`;
    return err({ reason: REASON, message });
  }
  const options = await devices.runContainerOptions(pod, container);
  if (!options.ok) return err({ reason: options.error.reason || REASON, message: options.error.message });
  // the kubelet would start the container without the device
  if (options.value === null) return err({ reason: REASON, message: `no device of ${resources} is given to it` });
  return options;
}
