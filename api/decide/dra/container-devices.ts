import { byText } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { value } from "../../model/amount.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { podNamespace } from "../../model/pod.ts";
import { isDraResource, isExtendedResource } from "../../model/resource-name.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { type ClaimInfo, type ClaimInfoCache, type DriverState, driversOf, type PreparedDevice } from "./claim-info.ts";
import { claimName } from "./claim-name.ts";

/** A claim that a container uses, and one request of it; an empty one means all. */
interface UsedRequest {
  readonly claim: string;
  readonly request: string;
  /** The extended resource that the claim provides. */
  readonly resource?: string;
}

/** Whether a device is for a request, according to its driver; `""` means all. */
export const isForRequest = ({ requestNames }: PreparedDevice, request: string): boolean =>
  request === "" || (requestNames ?? []).length === 0 || requestNames?.includes(request) === true;

/** The CDI devices of one request of a claim, driver by driver. kubelet 1.37: cdiDevicesAsList. */
const cdiDevices = (info: ClaimInfo, request: string): readonly string[] =>
  driversOf(info)
    .flatMap((driver) => (info.drivers.get(driver) as DriverState).devices ?? [])
    .filter((device) => isForRequest(device, request))
    .flatMap(({ cdiDeviceIds }) => cdiDeviceIds ?? []);

/**
 * The CDI devices of a container, claim by claim in the pod's order; newer kubelets follow a Go map of claims. Errors:
 * why the container does not start, in the kubelet's words. `extended`: the gate DRAExtendedResource is on. kubelet
 * 1.37: GetResources.
 */
export function containerDevices(
  cache: ClaimInfoCache,
  pod: Pod,
  container: Container,
  extended: boolean,
): Result<readonly string[], string> {
  const used = usedRequests(pod, container, extended, cache.behaviour);
  if (!used.ok) return used;
  const namespace = podNamespace(pod);
  const unknown = used.value.filter(({ claim }) => cache.get(namespace, claim) === undefined);
  // if there are several, Go's map order picks one
  if (cache.behaviour.extendedRequests === "mapped") unknown.sort((a, b) => byText(a.claim, b.claim));
  const [first] = unknown;
  if (first !== undefined) {
    return err(cache.behaviour.unknownClaim(first.claim, namespace, first.resource !== undefined));
  }
  const devices = used.value.map(({ claim, request }) =>
    request === NOTHING ? [] : cdiDevices(cache.get(namespace, claim) as ClaimInfo, request),
  );
  return ok(devices.flat());
}
/** A request that matches nothing: the claim must be known, but no device is used. */
const NOTHING = "\0";

/** The claims and requests that a container uses. Errors: the kubelet's message for an unknown claim. */
export function usedRequests(
  pod: Pod,
  container: Container,
  extended: boolean,
  behaviour: Behaviour["claims"],
): Result<readonly UsedRequest[], string> {
  const claims = container.resources?.claims ?? [];
  const used: UsedRequest[] = [];
  for (const podClaim of pod.spec.resourceClaims ?? []) {
    const own = claims.filter(({ name }) => name === podClaim.name);
    if (own.length === 0 && behaviour.extendedRequests === "mapped") continue;
    const named = claimName(pod, podClaim);
    if (!named.ok) return err(named.error);
    const { name } = named.value;
    if (name !== null) used.push(...own.map(({ request = "" }) => ({ claim: name, request })));
  }
  return ok(extended ? [...used, ...extendedRequests(pod, container, behaviour)] : used);
}

/**
 * The claims that a container uses, for any requests. Errors: one of them is unknown. `extended`: the gate
 * DRAExtendedResource is on. kubelet 1.37: GetContainerClaimInfos.
 */
export function containerClaims(
  cache: ClaimInfoCache,
  pod: Pod,
  { name, resources }: Container,
  extended: boolean,
): Result<readonly ClaimInfo[], string> {
  const names: string[] = [];
  for (const podClaim of pod.spec.resourceClaims ?? []) {
    const own = (resources?.claims ?? []).filter((one) => one.name === podClaim.name);
    if (own.length === 0 && cache.behaviour.extendedRequests === "mapped") continue;
    const named = claimName(pod, podClaim);
    if (!named.ok) return named;
    const claim = named.value.name;
    // versions before the mappings list a claim once for each of its requests
    const times = cache.behaviour.extendedRequests === "mapped" ? 1 : own.length;
    if (claim !== null) names.push(...Array.from({ length: times }, () => claim));
  }
  const made = extended ? pod.status?.extendedResourceClaimStatus : undefined;
  const isMapped = made?.requestMappings?.some(({ containerName }) => containerName === name) === true;
  if (isMapped) names.push(made.resourceClaimName ?? "");
  const claims = names.map((claim) => cache.get(podNamespace(pod), claim));
  const unknown = claims.indexOf(undefined);
  if (unknown >= 0) return err(`unable to get information for ResourceClaim ${names[unknown]}`);
  return ok(claims as readonly ClaimInfo[]);
}

/** Whether a claim can provide a resource; the oldest kubelets do not know names of device classes. */
export const isClaimable = (name: string, { extendedRequests }: Behaviour["claims"]): boolean =>
  extendedRequests === "first" ? isExtendedResource(name) : isDraResource(name);

function extendedRequests(
  { status }: Pod,
  { name, resources }: Container,
  behaviour: Behaviour["claims"],
): readonly UsedRequest[] {
  const made = status?.extendedResourceClaimStatus;
  if (made === undefined) return [];
  const claim = made.resourceClaimName ?? "";
  const asked = Object.entries(resources?.requests ?? {})
    .filter(([resource, { amount }]) => value(amount) > 0 && isClaimable(resource, behaviour))
    .map(([resource]) => resource);
  const mapped = (made.requestMappings ?? []).filter(({ containerName }) => containerName === name);
  const used = ({ resourceName, requestName = "" }: (typeof mapped)[number]): UsedRequest => ({
    claim,
    request: requestName,
    resource: resourceName,
  });
  if (behaviour.extendedRequests === "mapped") {
    return mapped.filter(({ resourceName }) => asked.includes(resourceName)).map(used);
  }
  const of = asked.flatMap((resource) => {
    const all = mapped.filter(({ resourceName }) => resourceName === resource);
    return behaviour.extendedRequests === "each"
      ? all.map(used)
      : all
          .slice(0, 1)
          .filter(({ requestName = "" }) => requestName !== "")
          .map(used);
  });
  // the claim is looked up for every container, whether it uses it or not
  return of.length > 0 ? of : [{ claim, request: NOTHING, resource: "" }];
}
