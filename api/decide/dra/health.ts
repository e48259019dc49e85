import { byText } from "../../base/order.ts";
import type { Fields } from "../../base/own.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { podNamespace } from "../../model/pod.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { type ClaimInfo, type ClaimInfoCache, type DriverState, driversOf } from "./claim-info.ts";
import { claimName } from "./claim-name.ts";

/** The health states, indexed by the drivers' numbers. kubelet 1.37: dra-health v1, HealthStatus. */
export const HEALTHS = ["Unknown", "Healthy", "Unhealthy"] as const;
type Health = (typeof HEALTHS)[number];
/** A device of dra_health_state. */
export interface DeviceState {
  readonly poolName: string;
  readonly deviceName: string;
  readonly health: Health;
  readonly updatedAt: EpochMs;
  /** The timeout in nanoseconds; zero: 30 s. */
  readonly timeoutNs: bigint;
  readonly message: string;
}
/** Device states by driver, then by `POOL/DEVICE`. */
export type HealthState = ReadonlyMap<string, ReadonlyMap<string, DeviceState>>;
/** Looks up what a driver reported about a device. */
export type HealthInfo = (driver: string, pool: string, device: string) => Pick<DeviceState, "health" | "message">;

const UNKNOWN = { health: "Unknown", message: "" } as const;
export const HEALTH_TIMEOUT_NS = 30_000_000_000n;
const members = (v: unknown): Fields => (typeof v === "object" && v !== null ? (v as Fields) : {});

/** Reads a dra_health_state; a file that cannot be read counts as absent. kubelet 1.37: loadFromCheckpoint. */
export function readHealth(text: string | undefined, { healthTimeouts }: Behaviour["claims"]): HealthState {
  let file: Fields = {};
  try {
    file = members(JSON.parse(text ?? "{}"));
  } catch {
    // the kubelet logs the error and starts without health data
  }
  const deviceOf = (said: Fields): DeviceState => {
    const timeout = Number(said["HealthCheckTimeout"] ?? 0);
    const updated = Date.parse(String(said["LastUpdated"]));
    return {
      poolName: String(said["PoolName"] ?? ""),
      deviceName: String(said["DeviceName"] ?? ""),
      health: HEALTHS.find((one) => one === said["Health"]) ?? "Unknown",
      updatedAt: epochMs(Number.isNaN(updated) ? 0 : updated),
      timeoutNs: healthTimeouts && Number.isFinite(timeout) ? BigInt(Math.trunc(timeout)) : 0n,
      message: String(said["Message"] ?? ""),
    };
  };
  const entries = (v: unknown): [string, Fields][] => Object.entries(members(v)).map(([k, one]) => [k, members(one)]);
  return new Map(
    entries(file).map(([driver, of]) => [
      driver,
      new Map(entries(of["Devices"]).map(([key, said]) => [key, deviceOf(said)])),
    ]),
  );
}

/** Whether the driver has not reported the device's health for longer than its timeout. */
export const isStale = ({ updatedAt, timeoutNs }: DeviceState, now: EpochMs): boolean =>
  !(now - updatedAt <= Number(timeoutNs === 0n ? HEALTH_TIMEOUT_NS : timeoutNs) / 1e6);

/** kubelet 1.37: getHealthInfo. */
export const healthAt =
  (state: HealthState, now: EpochMs): HealthInfo =>
  (driver, pool, device) => {
    const known = state.get(driver)?.get(`${pool}/${device}`);
    return known === undefined || isStale(known, now) ? UNKNOWN : known;
  };

/** `allocatedResourcesStatus` of a container's status. kubelet 1.37: UpdateAllocatedResourcesStatus. */
export interface ClaimHealth {
  /** `claim:NAME` or `claim:NAME/REQUEST`; for a device plugin, the resource's name. */
  readonly name: string;
  readonly resources: readonly { readonly resourceID: string; readonly health: Health; readonly message?: string }[];
}
/** The health of a container's claims, sorted by name. `messages`: the gate ResourceHealthStatusMessage. */
export function claimHealth(
  cache: ClaimInfoCache,
  pod: Pod,
  container: Container,
  health: HealthInfo,
  messages: boolean,
): readonly ClaimHealth[] {
  const byResource = new Map<string, ClaimHealth>();
  if (
    cache.behaviour.healthOf === "claim-names" &&
    !(pod.spec.resourceClaims ?? []).every((one) => claimName(pod, one).ok)
  ) {
    return [];
  }
  for (const { name, request = "" } of usedClaims(container, cache.behaviour)) {
    const info = infoOf(cache, pod, name);
    if (info === undefined) continue;
    const resource = request === "" ? `claim:${name}` : `claim:${name}/${request}`;
    const resources = resourcesOf(info, request, health, messages, cache.behaviour);
    if (resources.length > 0) byResource.set(resource, { name: resource, resources });
    else byResource.delete(resource);
  }
  return [...byResource.values()].sort((a, b) => byText(a.name, b.name));
}

/**
 * The claims that a container uses. The oldest kubelets list each claim once, with the first request that the
 * container names.
 */
function usedClaims({ resources }: Container, { healthOf }: Behaviour["claims"]) {
  const all = resources?.claims ?? [];
  return healthOf === "claim-names"
    ? all.filter((one, i) => all.findIndex(({ name }) => name === one.name) === i)
    : all;
}

/**
 * The known claim that a container uses. Older kubelets look only in the status, which lists claims made from
 * templates; the oldest use the name in the container.
 */
function infoOf(cache: ClaimInfoCache, pod: Pod, used: string): ClaimInfo | undefined {
  const namespace = podNamespace(pod);
  const { healthOf } = cache.behaviour;
  const entry = pod.spec.resourceClaims?.find(({ name }) => name === used);
  const made = pod.status?.resourceClaimStatuses?.findLast(({ name }) => name === used)?.resourceClaimName;
  if (healthOf !== "claim-names" && made !== undefined && made !== "") return cache.get(namespace, made);
  if (healthOf === "status" || entry === undefined) return undefined;
  const named = claimName(pod, entry);
  if (!named.ok || named.value.name === null) return undefined;
  return healthOf === "claim-names" && named.value.name !== used ? undefined : cache.get(namespace, named.value.name);
}

function resourcesOf(
  info: ClaimInfo,
  request: string,
  health: HealthInfo,
  messages: boolean,
  { healthOf }: Behaviour["claims"],
): ClaimHealth["resources"] {
  const base = request.split("/")[0] as string;
  const all = driversOf(info).flatMap((driver) =>
    ((info.drivers.get(driver) as DriverState).devices ?? [])
      .filter(
        ({ requestNames }) =>
          healthOf !== "requests" ||
          request === "" ||
          (requestNames ?? []).length === 0 ||
          requestNames?.includes(base),
      )
      .map(({ poolName, deviceName, cdiDeviceIds }) => {
        const { health: state, message } = health(driver, poolName, deviceName);
        return {
          resourceID: cdiDeviceIds?.[0] ?? `${driver}/${poolName}/${deviceName}`,
          health: state,
          ...(messages && message !== "" ? { message } : {}),
        };
      }),
  );
  return healthOf === "requests"
    ? all.filter((one, i) => all.findIndex((o) => o.resourceID === one.resourceID) === i)
    : all;
}
