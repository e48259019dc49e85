import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { map, ok, type Result } from "../base/result.ts";
import { type ClaimPart, usesClaims } from "../model/resource-claim.ts";
import type { ApiServer } from "./api-server.ts";
import type { ClusterFault } from "./fault.ts";

/** The lists of resource.k8s.io/v1 that a decision on claims reads, or why one could not be read. */
export type ClaimReadings = Readonly<Partial<Record<ClaimPart, Result<Fields, ClusterFault>>>>;

/** The most claims that are read at a time. */
const AT_A_TIME = 8;

/**
 * The API server's objects for the ResourceClaims of pods: the claims by name, the node's ResourceSlices with those of other pools
 * that devices are allocated from, and the DeviceClasses. A missing claim is in no list. Nothing is read if no pod uses claims.
 */
export async function readClaims(
  api: ApiServer,
  node: string,
  pods: readonly Fields[],
  signal?: AbortSignal,
): Promise<ClaimReadings> {
  if (!pods.some(usesClaims)) return {};
  const [claims, slices, classes] = await Promise.all([
    namedClaims(api, new Set(pods.flatMap(claimsOf)), signal),
    slicesWhere(api, `spec.nodeName=${node}`, signal),
    api.list({ resource: "deviceclasses" }, {}, signal),
  ]);
  const all = slices.ok && claims.ok ? await withOtherPools(api, slices.value, claims.value, signal) : slices;
  return {
    resourceClaims: listOf(claims, "ResourceClaimList"),
    resourceSlices: listOf(all, "ResourceSliceList"),
    deviceClasses: listOf(
      map(classes, ({ items }) => items),
      "DeviceClassList",
    ),
  };
}
type Objects = Result<readonly Fields[], ClusterFault>;

const listOf = (read: Objects, kind: string): Result<Fields, ClusterFault> =>
  map(read, (items) => ({ apiVersion: "resource.k8s.io/v1", kind, metadata: { resourceVersion: "" }, items }));

const objectsIn = (list: unknown): readonly Fields[] => (Array.isArray(list) ? list.filter(isObject) : []);
const textIn = (text: unknown): readonly string[] => (typeof text === "string" && text !== "" ? [text] : []);

/** `NAMESPACE/NAME` of each of a pod's claims: named by the pod, created from a template, or created for its extended resources. */
export function claimsOf({ metadata, spec, status }: Fields): readonly string[] {
  const { namespace } = fieldsOf(metadata);
  const { resourceClaimStatuses, extendedResourceClaimStatus } = fieldsOf(status);
  const naming = [
    ...objectsIn(fieldsOf(spec)["resourceClaims"]),
    ...objectsIn(resourceClaimStatuses),
    fieldsOf(extendedResourceClaimStatus),
  ];
  return naming.flatMap(({ resourceClaimName }) => textIn(resourceClaimName)).map((name) => `${namespace}/${name}`);
}

async function namedClaims(api: ApiServer, names: ReadonlySet<string>, signal?: AbortSignal): Promise<Objects> {
  const found: Fields[] = [];
  const all = [...names];
  for (let from = 0; from < all.length; from += AT_A_TIME) {
    const asked = all.slice(from, from + AT_A_TIME).map((key) => oneClaim(api, key, signal));
    for (const claim of await Promise.all(asked)) {
      if (!claim.ok) return claim;
      found.push(...claim.value);
    }
  }
  return ok(found);
}

/** A 404 for a missing claim names it; one for an API group that is not served has no name. */
async function oneClaim(api: ApiServer, key: string, signal?: AbortSignal): Promise<Objects> {
  const [namespace = "", name = ""] = key.split("/");
  const claim = await api.get({ resource: "resourceclaims", namespace }, name, signal);
  if (claim.ok) return ok([claim.value]);
  const { code, message } = claim.error;
  return code === "not-found" && message.endsWith(`"${name}" not found`) ? ok([]) : claim;
}

const slicesWhere = (api: ApiServer, fieldSelector: string, signal?: AbortSignal): Promise<Objects> =>
  api.list({ resource: "resourceslices" }, { fieldSelector }, signal).then((read) => map(read, ({ items }) => items));

/**
 * The slices, plus those of allocated pools that the node's own slices do not complete: network-attached devices, or devices of
 * another node.
 */
async function withOtherPools(
  api: ApiServer,
  own: readonly Fields[],
  claims: readonly Fields[],
  signal?: AbortSignal,
): Promise<Objects> {
  const byPool = Map.groupBy(own, poolOf);
  const pools = new Map(claims.flatMap(allocatedPools).filter(([pool]) => !isWhole(byPool.get(pool) ?? [])));
  const slices = new Map(own.map((slice) => [nameOf(slice), slice]));
  for (const driver of new Set(pools.values())) {
    const ofDriver = await slicesWhere(api, `spec.driver=${driver}`, signal);
    if (!ofDriver.ok) return ofDriver;
    for (const slice of ofDriver.value) if (pools.has(poolOf(slice))) slices.set(nameOf(slice), slice);
  }
  return ok([...slices.values()]);
}

const nameOf = ({ metadata }: Fields): string => String(fieldsOf(metadata)["name"]);
const poolKey = (driver: unknown, pool: unknown): string => `${driver}/${pool}`;
const poolOf = ({ spec }: Fields): string =>
  poolKey(fieldsOf(spec)["driver"], fieldsOf(fieldsOf(spec)["pool"])["name"]);
const allocatedPools = ({ status }: Fields): (readonly [pool: string, driver: string])[] =>
  objectsIn(fieldsOf(fieldsOf(fieldsOf(status)["allocation"])["devices"])["results"]).map(({ driver, pool }) => [
    poolKey(driver, pool),
    String(driver),
  ]);

/** Whether the slices of the newest generation are as many as the pool has. */
function isWhole(slices: readonly Fields[]): boolean {
  const pools = slices.map(({ spec }) => fieldsOf(fieldsOf(spec)["pool"]));
  const newest = Math.max(...pools.map(({ generation }) => Number(generation)));
  const current = pools.filter(({ generation }) => Number(generation) === newest);
  return current.length > 0 && current.length >= Number(current[0]?.["resourceSliceCount"]);
}
