import { err, ok, type Result } from "../../base/result.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { jsonText, parseGoJson } from "../go/json.ts";
import { CORRUPTED } from "../go/state-data.ts";
import { type ClaimInfo, ClaimInfoCache, type DriverState, driversOf, type PreparedDevice } from "./claim-info.ts";

/** The name of the kubelet's file. */
export const DRA_STATE_FILE = "dra_manager_state";

/**
 * The file's text, except for the order of claims, which follows a Go map in the kubelet. kubelet 1.37:
 * state.NewCheckpoint.
 */
export function writeClaims(cache: ClaimInfoCache): string {
  const claims = cache.list().map((claim) => claimText(claim, cache.behaviour));
  const data = `${HEAD}[${claims.join(",")}]}`;
  return `{"Data":${jsonText(data)},"Checksum":${crc32(data)}}`;
}
/** The file's text before the first claim. kubelet 1.37: GetOrCreate. */
export const noClaims = (): string => {
  const data = `${HEAD}null}`;
  return `{"Data":${jsonText(data)},"Checksum":${crc32(data)}}`;
};
const HEAD = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":';

function claimText(claim: ClaimInfo, behaviour: Behaviour["claims"]): string {
  const { uid, name, namespace, podUids, drivers } = claim;
  const pods = [...podUids].sort().map((pod) => `${jsonText(pod)}:{}`);
  const states = driversOf(claim).map((driver) => {
    const { devices, skips } = drivers.get(driver) as DriverState;
    const list = devices === null ? "null" : `[${devices.map((device) => deviceText(device, behaviour)).join(",")}]`;
    const skipped =
      behaviour.nodeOperationsSkipped && skips.length > 0 ? `,"skipNodeOperations":${textsText(skips)}` : "";
    return `${jsonText(driver)}:{"Devices":${list}${skipped}}`;
  });
  return (
    `{"ClaimUID":${jsonText(uid)},"ClaimName":${jsonText(name)},"Namespace":${jsonText(namespace)},` +
    `"PodUIDs":{${pods.join(",")}},"DriverState":{${states.join(",")}}}`
  );
}
function deviceText(device: PreparedDevice, { shareIds }: Behaviour["claims"]): string {
  const { poolName, deviceName, shareId, requestNames, cdiDeviceIds } = device;
  const share = shareIds ? `"ShareID":${shareId === null ? "null" : jsonText(shareId)},` : "";
  return (
    `{"PoolName":${jsonText(poolName)},"DeviceName":${jsonText(deviceName)},${share}` +
    `"RequestNames":${textsText(requestNames)},"CDIDeviceIDs":${textsText(cdiDeviceIds)}}`
  );
}
const textsText = (list: readonly string[] | null): string =>
  list === null ? "null" : `[${list.map(jsonText).join(",")}]`;

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c;
});
/** CRC-32 (IEEE) of a text in UTF-8. */
function crc32(text: string): number {
  let crc = ~0;
  for (const byte of new TextEncoder().encode(text)) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] as number);
  return ~crc >>> 0;
}

const TEXT: GoType = { kind: "string", name: "string" };
const UID: GoType = { kind: "string", name: "types.UID" };
const TEXTS: GoType = { kind: "slice", name: "[]string", of: TEXT };
const CHECKPOINT: GoType = {
  kind: "struct",
  name: "state.Checkpoint",
  fields: { Data: TEXT, Checksum: { kind: "uint32", name: "uint32" } },
};
const PODS: GoType = {
  kind: "map",
  name: "sets.Set[string]",
  keys: "string",
  of: { kind: "struct", name: "sets.Empty", fields: {} },
};
const SKIPS: GoType = {
  kind: "slice",
  name: "[]v1.SkipNodeOperation",
  of: { kind: "string", name: "v1.SkipNodeOperation" },
};

function dataType({ shareIds, nodeOperationsSkipped }: Behaviour["claims"]): GoType {
  const device: GoType = {
    kind: "struct",
    name: "state.Device",
    fields: {
      PoolName: TEXT,
      DeviceName: TEXT,
      ...(shareIds ? { ShareID: { kind: "pointer", name: "*types.UID", to: UID } as const } : {}),
      RequestNames: TEXTS,
      CDIDeviceIDs: TEXTS,
    },
  };
  const driver: GoType = {
    kind: "struct",
    name: "state.DriverState",
    fields: {
      Devices: { kind: "slice", name: "[]state.Device", of: device },
      ...(nodeOperationsSkipped ? { skipNodeOperations: SKIPS } : {}),
    },
  };
  const claim: GoType = {
    kind: "struct",
    name: "state.ClaimInfoState",
    fields: {
      ClaimUID: UID,
      ClaimName: TEXT,
      Namespace: TEXT,
      PodUIDs: PODS,
      DriverState: { kind: "map", name: "map[string]state.DriverState", keys: "string", of: driver },
    },
  };
  return {
    kind: "struct",
    name: "state.CheckpointData",
    fields: { ClaimInfoStateList: { kind: "slice", name: "state.ClaimInfoStateList", of: claim } },
    embedded: { name: "TypeMeta", fields: { kind: TEXT, apiVersion: TEXT } },
  };
}

interface ReadDevice {
  readonly PoolName: string;
  readonly DeviceName: string;
  readonly ShareID?: string | null;
  readonly RequestNames: readonly string[] | null;
  readonly CDIDeviceIDs: readonly string[] | null;
}
interface ReadDriver {
  readonly Devices: readonly ReadDevice[] | null;
  readonly skipNodeOperations?: readonly string[] | null;
}
interface ReadClaim {
  readonly ClaimUID: string;
  readonly ClaimName: string;
  readonly Namespace: string;
  readonly PodUIDs: ReadonlyMap<string, unknown> | null;
  readonly DriverState: ReadonlyMap<string, ReadDriver> | null;
}

/**
 * Reads the claims of a dra_manager_state, none of them prepared yet. Undefined: there is no file. Errors: why the
 * kubelet does not start, in its words. kubelet 1.37: newClaimInfoCache.
 */
export function readClaims(text: string | undefined, behaviour: Behaviour["claims"]): Result<ClaimInfoCache, string> {
  const failed = (what: string): Result<never, string> => err(`create ResourceClaim cache: ${what}`);
  if (text === undefined) return ok(new ClaimInfoCache(behaviour));
  const data = dataOf(text);
  if (!data.ok)
    return failed(`GetOrCreate() on checkpoint state: failed to get checkpoint ${DRA_STATE_FILE}: ${data.error}`);
  const json = parseGoJson(data.value);
  if (!json.ok) return failed(`GetEntries() on checkpoint: ${json.error}`);
  const start: GoValue = { kind: "", apiVersion: "", ClaimInfoStateList: null };
  const { value, error } = decodeGo(json.value, dataType(behaviour), start);
  if (error !== undefined) return failed(`GetEntries() on checkpoint: ${error}`);
  const { ClaimInfoStateList: list } = value as unknown as { readonly ClaimInfoStateList: readonly ReadClaim[] | null };
  return ok(new ClaimInfoCache(behaviour, (list ?? []).map(claimOf)));
}

/** The kubelet decodes into an empty checkpoint, so missing members have the values of that one. */
function dataOf(text: string): Result<string, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  const data = `${HEAD}null}`;
  const { value, error } = decodeGo(json.value, CHECKPOINT, { Data: data, Checksum: BigInt(crc32(data)) });
  if (error !== undefined) return err(error);
  const read = value as unknown as { readonly Data: string; readonly Checksum: bigint };
  return read.Checksum === BigInt(crc32(read.Data)) ? ok(read.Data) : err(CORRUPTED);
}

const claimOf = ({ ClaimUID, ClaimName, Namespace, PodUIDs, DriverState }: ReadClaim): ClaimInfo => ({
  uid: ClaimUID,
  name: ClaimName,
  namespace: Namespace,
  podUids: new Set(PodUIDs?.keys()),
  drivers: new Map([...(DriverState ?? [])].map(([driver, state]) => [driver, driverOf(state)])),
  prepared: false,
  unpreparing: false,
});
const driverOf = ({ Devices, skipNodeOperations }: ReadDriver): DriverState => ({
  devices:
    Devices?.map(({ PoolName, DeviceName, ShareID, RequestNames, CDIDeviceIDs }) => ({
      poolName: PoolName,
      deviceName: DeviceName,
      shareId: ShareID ?? null,
      requestNames: RequestNames,
      cdiDeviceIds: CDIDeviceIDs,
    })) ?? null,
  skips: skipNodeOperations ?? [],
});
