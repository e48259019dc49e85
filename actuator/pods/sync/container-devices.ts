import type { DeviceOptions } from "../../../api/model/managers.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { PodActions } from "../../lifecycle/actions.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import { deviceRequirements } from "../devices/device-requirements.ts";
import type { ClaimFault, ContainerClaims } from "../devices/pod-claims.ts";
import type { ContainerDevices, DeviceFault } from "../devices/port.ts";
import type { ContainerFault } from "./images.ts";

/** Reason of a container whose devices give no better one. */
const REASON = "CreateContainerConfigError";

/** Why a pod with claims does not start where no DRA drivers are served. */
const NO_DRIVERS = "ResourceClaims are not prepared by this daemon (draDrivers: off)";
function hasClaims({ object }: RunnablePod): boolean {
  const { spec, status } = decodedPod(object) ?? {};
  return (spec?.resourceClaims ?? []).length > 0 || status?.extendedResourceClaimStatus !== undefined;
}

/** Before the sandbox of a pod. Null: its claims are prepared, or it has none. */
export async function prepareClaims(
  claims: ContainerClaims | undefined,
  pod: RunnablePod,
  signal: AbortSignal,
): Promise<ClaimFault | null> {
  if (claims !== undefined) return claims.prepare(pod, signal);
  return hasClaims(pod) ? { message: NO_DRIVERS, waits: null } : null;
}

/** The CDI devices that a container which is about to be made receives of the pod's claims. Error: why it is not made. */
export function claimedDevices(
  claims: ContainerClaims | undefined,
  pod: RunnablePod,
  container: PodContainer,
): Result<readonly string[], string> {
  if (claims !== undefined) return claims.devices(pod, container);
  return hasClaims(pod) ? err(NO_DRIVERS) : ok([]);
}

/** Before anything of a pod is made; `starting`: its containers that are. Null: their devices are ready, or they want none. */
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
 * Lists the containers that start. For a pod that begins these are all that it has: a plugin that fails is reported before its
 * first container starts.
 */
export function startingContainers({ spec }: RunnablePod, actions: PodActions): ReadonlySet<string> {
  const starts = [...actions.initToStart, ...actions.toStart];
  const all = [...spec.initContainers, ...spec.containers];
  return new Set((actions.createSandbox ? all : starts).map(({ name }) => name));
}

/** Gets what a container that is about to be made receives for its devices; null: it wants none. Error: why it is not made. */
export async function containerDevices(
  devices: ContainerDevices | undefined,
  pod: RunnablePod,
  container: PodContainer,
): Promise<Result<DeviceOptions | null, ContainerFault>> {
  const wanted = deviceRequirements(pod).get(container.name);
  if (wanted === undefined) return ok(null);
  const resources = [...wanted.keys()].join(", ");
  if (devices === undefined) {
    const message = `${resources}: device plugins are not served by this daemon (devicePlugins: off)`;
    return err({ reason: REASON, message });
  }
  const options = await devices.runContainerOptions(pod, container);
  if (!options.ok) return err({ reason: options.error.reason || REASON, message: options.error.message });
  // the kubelet starts it without
  if (options.value === null) return err({ reason: REASON, message: `no device of ${resources} is given to it` });
  return options;
}
