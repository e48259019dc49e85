import type { ClaimWarning } from "../../model/claims.ts";
import {
  type Container,
  isTerminal,
  isTerminating,
  namespacedPodName,
  type Pod,
  podNamespace,
} from "../../model/pod.ts";
import type { Dra, DraDriver, ResourceClaim } from "../../model/resource-claim.ts";
import type { ClaimInfo, ClaimInfoCache } from "./claim-info.ts";
import { claimName, podClaims } from "./claim-name.ts";
import { isForRequest, usedRequests } from "./container-devices.ts";
import { registeredService } from "./registration.ts";

/** Whether the kubelet terminates the pod and so prepares nothing for it. kubelet 1.37: podWorkers.UpdatePod. */
export const isLeaving = (pod: Pod): boolean => isTerminal(pod) || isTerminating(pod);

/**
 * Why nothing is prepared for the asked pod; undefined: it has claims to prepare. `served`: the kubelet prepares
 * claims at all; `holds` null: not known.
 */
export function nothingPrepared(
  pod: Pod,
  { served, extended, holds }: { readonly served: boolean; readonly extended: boolean; readonly holds: boolean | null },
): ClaimWarning | undefined {
  const about = namespacedPodName(pod);
  const back =
    holds === false
      ? "it holds none that would be given back"
      : "what it holds is given back once its containers have stopped";
  if (isTerminal(pod))
    return {
      about,
      warning: "ended",
      message: `the pod has ended (${pod.status?.phase}): no claim is prepared, and ${back}`,
    };
  if (isLeaving(pod))
    return { about, warning: "being-deleted", message: `the pod is being deleted: no claim is prepared, and ${back}` };
  const claims = podClaims(pod, extended);
  if (claims.length === 0)
    return { about, warning: "no-claims", message: "the pod has no claims: nothing is prepared" };
  if (!served) {
    const message =
      "the gate DynamicResourceAllocation is off: no claim is prepared, and the pod starts without their devices";
    return { about, warning: "gate-off", message };
  }
  const names = claims.map((podClaim) => claimName(pod, podClaim));
  return names.every((named) => named.ok && named.value.name === null)
    ? {
        about,
        warning: "no-claims",
        message: "none of the pod's claims was needed, and none made: nothing is prepared",
      }
    : undefined;
}

/** Claims that a pod names and that exist only in another namespace. */
export function claimsElsewhere(pod: Pod, { resourceClaims = [] }: Dra, extended: boolean): readonly ClaimWarning[] {
  const namespace = podNamespace(pod);
  return podClaims(pod, extended).flatMap((podClaim): readonly ClaimWarning[] => {
    const named = claimName(pod, podClaim);
    const same = resourceClaims.filter(({ metadata }) => named.ok && metadata.name === named.value.name);
    const others = same.map(({ metadata }) => metadata.namespace);
    if (others.length === 0 || others.some((other = DEFAULT) => other === namespace)) return [];
    const where = others.map((other) => (other === undefined ? `${DEFAULT} (it names none)` : other));
    const message = `no ResourceClaim ${same[0]?.metadata.name} is posted in namespace ${namespace}, and one of that name is in ${where.join(", ")}`;
    return [{ about: namespacedPodName(pod), warning: "claim-elsewhere", message }];
  });
}
const DEFAULT = "default";

interface RequestSources {
  claim(namespace: string, name: string): ResourceClaim | undefined;
  /** The gate DRAExtendedResource is on. */
  readonly extended: boolean;
  /** Whether some driver's answer for the claim is unknown. */
  isOpen(info: ClaimInfo): boolean;
}
/**
 * Requests for which a container gets no device, though its claim is prepared: the kubelet compares request names
 * exactly, so a driver that answers for a subrequest (`gpu/big`) does not match a container that names `gpu`. kubelet
 * 1.37: cdiDevicesAsList.
 */
export function requestsWithoutDevice(
  cache: ClaimInfoCache,
  pod: Pod,
  container: Container,
  { claim: find, extended, isOpen }: RequestSources,
): readonly ClaimWarning[] {
  const used = usedRequests(pod, container, extended, cache.behaviour);
  return (used.ok ? used.value : []).flatMap(({ claim, request, resource }): readonly ClaimWarning[] => {
    const info = cache.get(podNamespace(pod), claim);
    // the scheduler writes the claim of an extended resource, not a person
    if (info === undefined || request === "" || resource !== undefined) return [];
    const allocated = [...info.drivers.values()].flatMap(({ devices }) => devices ?? []);
    if (allocated.some((device) => isForRequest(device, request))) return [];
    const has = find(podNamespace(pod), claim)?.spec?.devices?.requests?.map(({ name }) => name) ?? [];
    if (isOpen(info) && (has.length === 0 || has.includes(request))) return [];
    const named = [...new Set(allocated.flatMap(({ requestNames }) => requestNames ?? []))];
    const why =
      has.length > 0 && !has.includes(request)
        ? `the claim has no such request, only ${has.join(", ")}`
        : named.length === 0
          ? "no driver answers with one"
          : `its drivers answer for ${named.join(", ")} alone, and the kubelet compares whole names`;
    const message = `container ${container.name} gets no device for request ${request} of ResourceClaim ${claim}: ${why}`;
    return [{ about: namespacedPodName(pod), warning: "request-without-device", message }];
  });
}

/**
 * Posted driver data that will not have the expected effect. `claims`: the claims that the drivers still have to
 * prepare.
 */
export function driverWarnings(
  { drivers = [], resourceClaims }: Dra,
  claims: readonly ResourceClaim[],
  cache: ClaimInfoCache,
): readonly ClaimWarning[] {
  const uids = new Set([
    ...(resourceClaims ?? []).map(({ metadata }) => metadata.uid),
    ...cache.list().map(({ uid }) => uid),
  ]);
  return drivers.flatMap((driver) => {
    const service = registeredService(driver);
    const messages: Omit<ClaimWarning, "about">[] = [];
    if (driver.registered !== false && !service.ok)
      messages.push({
        warning: "driver-not-registered",
        message: `the kubelet does not register it: ${service.error}`,
      });
    for (const { claim: uid, error, devices = [] } of driver.answers ?? []) {
      if (resourceClaims !== undefined && !uids.has(uid)) messages.push(forNoClaim(uid, resourceClaims));
      const claim = claims.find(({ metadata }) => metadata.uid === uid);
      if (claim !== undefined && (error ?? "") === "")
        messages.push(...devices.flatMap((one) => deviceWarnings(driver, claim, one)));
    }
    return messages.map((one) => ({ about: driver.name, ...one }));
  });
}
type DeviceAnswer = NonNullable<NonNullable<DraDriver["answers"]>[number]["devices"]>[number];
const claimText = ({ metadata }: ResourceClaim): string => `${metadata.namespace ?? DEFAULT}/${metadata.name}`;

function forNoClaim(uid: string, resourceClaims: readonly ResourceClaim[]): Omit<ClaimWarning, "about"> {
  const named = resourceClaims.filter((claim) => [claim.metadata.name, claimText(claim)].includes(uid));
  const of = named.map(
    (claim) => `; that of ResourceClaim ${claimText(claim)} is ${claim.metadata.uid ?? "not given"}`,
  );
  return {
    warning: "answer-for-no-claim",
    message: `no ResourceClaim has the uid ${uid}, of which it answers${of.join("")}`,
  };
}

/** The kubelet does not check devices and CDI devices that drivers report. kubelet 1.37: prepareResources. */
function deviceWarnings(
  { name: driver }: DraDriver,
  claim: ResourceClaim,
  { poolName, deviceName, cdiDeviceIds = [] }: DeviceAnswer,
): readonly Omit<ClaimWarning, "about">[] {
  const results = claim.status?.allocation?.devices?.results ?? [];
  const isAllocated = results.some(
    (one) => one.driver === driver && (one.pool ?? "") === poolName && (one.device ?? "") === deviceName,
  );
  const of = `its answer of ResourceClaim ${claimText(claim)}`;
  const unallocated = `${of} has device ${poolName}/${deviceName}, which is not allocated to that claim; the kubelet does not check it, and gives it`;
  return [
    ...(isAllocated ? [] : [{ warning: "device-not-allocated", message: unallocated } as const]),
    ...cdiDeviceIds
      .filter((id) => !CDI_DEVICE.test(id))
      .map((id) => ({
        warning: "no-cdi-device" as const,
        message: `${of} has \`${id}\`, which is no CDI device (VENDOR/CLASS=NAME); the kubelet does not check it, and the runtime creates no container with it`,
      })),
  ];
}
/** tags.cncf.io/container-device-interface: ParseQualifiedName. */
const CDI_DEVICE =
  /^[A-Za-z](?:[\w.-]*[A-Za-z0-9])?\/[A-Za-z](?:[\w-]*[A-Za-z0-9])?=[A-Za-z0-9](?:[\w.:-]*[A-Za-z0-9])?$/;
