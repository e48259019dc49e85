import type { Fields } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { parseGoJson } from "../go/json.ts";
import { checksumOf, type DeviceCheckpoint, type DevicesPerNuma, type PodDevicesEntry } from "./checkpoint.ts";

/** Why a kubelet_internal_checkpoint is not used. The kubelet logs it, and continues as if no devices were held. */
export type CheckpointFault =
  | { readonly code: "empty"; readonly message: string }
  | { readonly code: "not_json"; readonly message: string }
  /** `path` has a value of another type. */
  | { readonly code: "malformed"; readonly path: string; readonly message: string }
  /** The form of older kubelets, which lists devices without NUMA nodes: 1.36 does not read it. */
  | { readonly code: "old_version"; readonly path: string; readonly message: string }
  /** `expected`: the checksum in the file; `actual`: that of its content. */
  | { readonly code: "checksum"; readonly expected: number; readonly actual: number; readonly message: string };

/** Reads the text of a checkpoint and verifies its checksum. kubelet 1.36: getCheckpoint. */
export function readCheckpoint(text: string): Result<DeviceCheckpoint, CheckpointFault> {
  // Go's own words
  if (text.trim() === "") return err({ code: "empty", message: "unexpected end of JSON input" });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    const parsed = parseGoJson(text);
    return err({ code: "not_json", message: parsed.ok ? "the text is not JSON" : parsed.error });
  }
  return checkCheckpoint(json);
}

/**
 * Checks parsed JSON like `readCheckpoint`. Missing members have the values of an empty checkpoint, as in the kubelet:
 * no entries, nothing registered.
 */
export function checkCheckpoint(json: unknown): Result<DeviceCheckpoint, CheckpointFault> {
  const faults: CheckpointFault[] = [];
  const file = objectAt(json, "", faults) ?? {};
  const data = objectAt(file["Data"], "Data", faults) ?? {};
  const checkpoint = {
    entries: entriesAt(data["PodDeviceEntries"], faults),
    registered: registeredAt(data["RegisteredDevices"], faults),
  };
  const expected = checksumAt(file["Checksum"], faults);
  const [first] = faults;
  if (first !== undefined) return err(first);
  const actual = checksumOf(checkpoint);
  // the kubelet's own words
  if (actual !== expected) return err({ code: "checksum", expected, actual, message: "checkpoint is corrupted" });
  return ok(checkpoint);
}

type FaultList = CheckpointFault[];
const malformed = (faults: FaultList, path: string, expected: string): void => {
  faults.push({ code: "malformed", path, message: `expected ${expected}` });
};
/** Go reads null as if nothing were there. */
const isAbsent = (v: unknown): v is undefined | null => v === undefined || v === null;

function objectAt(v: unknown, path: string, faults: FaultList): Fields | undefined {
  if (isAbsent(v)) return undefined;
  if (typeof v === "object" && !Array.isArray(v)) return v as Fields;
  malformed(faults, path, "an object");
  return undefined;
}
function textAt(v: unknown, path: string, faults: FaultList): string {
  if (typeof v === "string") return v.toWellFormed();
  if (!isAbsent(v)) malformed(faults, path, "text");
  return "";
}
function checksumAt(v: unknown, faults: FaultList): number {
  if (typeof v === "number" && Number.isInteger(v) && v >= 0) return v;
  if (!isAbsent(v)) malformed(faults, "Checksum", "a whole number");
  return 0;
}
function idsAt(v: unknown, path: string, faults: FaultList): readonly string[] | null {
  if (Array.isArray(v)) return v.map((id, i) => textAt(id, `${path}[${i}]`, faults));
  if (v !== null) malformed(faults, path, "a list of device ids");
  return null;
}

function entriesAt(v: unknown, faults: FaultList): readonly PodDevicesEntry[] | null {
  if (Array.isArray(v)) return v.map((entry, i) => entryAt(entry, `Data.PodDeviceEntries[${i}]`, faults));
  if (!isAbsent(v)) malformed(faults, "Data.PodDeviceEntries", "a list");
  return v === null ? null : [];
}
function entryAt(v: unknown, path: string, faults: FaultList): PodDevicesEntry {
  const entry = objectAt(v, path, faults) ?? {};
  return {
    podUid: textAt(entry["PodUID"], `${path}.PodUID`, faults),
    containerName: textAt(entry["ContainerName"], `${path}.ContainerName`, faults),
    resourceName: textAt(entry["ResourceName"], `${path}.ResourceName`, faults),
    deviceIds: perNumaAt(entry["DeviceIDs"], `${path}.DeviceIDs`, faults),
    allocResp: base64At(entry["AllocResp"], `${path}.AllocResp`, faults),
  };
}

function perNumaAt(v: unknown, path: string, faults: FaultList): DevicesPerNuma | null {
  if (Array.isArray(v)) {
    faults.push({ code: "old_version", path, message: V1_MESSAGE });
    return null;
  }
  const perNuma = objectAt(v, path, faults);
  if (perNuma === undefined) return null;
  const read = new Map<number, readonly string[] | null>();
  for (const [key, ids] of Object.entries(perNuma)) {
    const node = Number(key);
    if (/^[+-]?\d+$/.test(key) && Number.isSafeInteger(node)) read.set(node, idsAt(ids, `${path}.${key}`, faults));
    else malformed(faults, `${path}.${key}`, "the number of a NUMA node");
  }
  return read;
}
/** Go's own words. */
const V1_MESSAGE =
  "json: cannot unmarshal array into Go struct field PodDevicesEntry.Data.PodDeviceEntries.DeviceIDs of type checkpoint.DevicesPerNUMA";

/** Padded base64 in the only form that Go writes; it may contain line ends. */
function base64At(v: unknown, path: string, faults: FaultList): string | null {
  if (isAbsent(v)) return null;
  const text = textAt(v, path, faults).replace(/[\r\n]+/g, "");
  // unused bits may only be at the end
  const end = text.slice(-4);
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text.slice(0, -4) + btoa(atob(end));
  malformed(faults, path, "base64");
  return null;
}

function registeredAt(v: unknown, faults: FaultList): DeviceCheckpoint["registered"] {
  if (v === null) return null;
  const listed = Object.entries(objectAt(v, "Data.RegisteredDevices", faults) ?? {});
  return new Map(listed.map(([name, ids]) => [name, idsAt(ids, `Data.RegisteredDevices.${name}`, faults)]));
}
