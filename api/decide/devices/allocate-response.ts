import { byKey, byText } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { DeviceConflict, DeviceOptions, NameValue } from "../../model/devices.ts";
import { fieldsOf, type Slice, textOf, type WireFault } from "./wire.ts";

interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
}
interface DeviceSpec {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Permissions in the devices cgroup: some of `r`, `w` and `m`. */
  readonly permissions: string;
}
/** v1beta1.ContainerAllocateResponse: what a plugin wants a container to get for its devices. */
export interface AllocateResponse {
  readonly envs: ReadonlyMap<string, string>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly DeviceSpec[];
  readonly annotations: ReadonlyMap<string, string>;
  readonly cdiDevices: readonly string[];
}

/**
 * Reads the message from base64 in the form that checkpoints allow. Unknown fields, and known ones of another wire
 * type, are skipped, as in Go. Error: where the bytes are no such message; the kubelet then drops the checkpoint's
 * entry.
 */
export function readAllocateResponse(base64: string): Result<AllocateResponse, WireFault> {
  const data = atob(base64);
  const fields = fieldsOf({ data, start: 0, end: data.length });
  if (!fields.ok) return fields;
  const response = {
    envs: new Map<string, string>(),
    mounts: [] as Mount[],
    devices: [] as DeviceSpec[],
    annotations: new Map<string, string>(),
    cdiDevices: [] as string[],
  };
  for (const { number, slice } of fields.value) {
    if (slice === undefined) continue;
    const fault = addTo(response, number, slice);
    if (fault !== undefined) return err(fault);
  }
  return ok(response);
}

interface RunContainerOptionsDraft {
  readonly envs: Map<string, string>;
  readonly mounts: Mount[];
  readonly devices: DeviceSpec[];
  readonly annotations: Map<string, string>;
  readonly cdiDevices: string[];
}
function addTo(response: RunContainerOptionsDraft, number: number, slice: Slice): WireFault | undefined {
  if (number < 1 || number > 5) return undefined;
  const message = messageOf(slice, TEXTS[number] as readonly number[]);
  if (!message.ok) return message.error;
  const { texts, flags } = message.value;
  const text = (field: number): string => texts.get(field) ?? "";
  const path = { containerPath: text(1), hostPath: text(2) };
  if (number === 1) response.envs.set(text(1), text(2));
  else if (number === 2) response.mounts.push({ ...path, readOnly: flags.get(3) ?? false });
  else if (number === 3) response.devices.push({ ...path, permissions: text(3) });
  else if (number === 4) response.annotations.set(text(1), text(2));
  else response.cdiDevices.push(text(1));
  return undefined;
}
/** The text fields of each part: envs, mounts, devices, annotations, CDI devices. */
const TEXTS: readonly (readonly number[])[] = [[], [1, 2], [1, 2], [1, 2, 3], [1, 2], [1]];

/** The text fields of a part (the last of each number), and its varints. */
function messageOf(
  slice: Slice,
  textFields: readonly number[],
): Result<{ readonly texts: ReadonlyMap<number, string>; readonly flags: ReadonlyMap<number, boolean> }, WireFault> {
  const fields = fieldsOf(slice);
  if (!fields.ok) return fields;
  const texts = new Map<number, string>();
  const flags = new Map<number, boolean>();
  for (const field of fields.value) {
    if (field.flag !== undefined) flags.set(field.number, field.flag);
    if (field.slice === undefined || !textFields.includes(field.number)) continue;
    const text = textOf(field.slice);
    if (!text.ok) return text;
    texts.set(field.number, text.value);
  }
  return ok({ texts, flags });
}

export interface ResourceResponse {
  readonly resource: string;
  readonly response: AllocateResponse;
}

/**
 * Joins the answers of several plugins: if two use one name, the first counts, and different values are a conflict
 * (for mounts and devices: their host paths). The kubelet follows Go maps of resources, environment and annotations;
 * here they are sorted by name. kubelet 1.36: deviceRunContainerOptions.
 */
export function containerOptions(responses: readonly ResourceResponse[]): DeviceOptions {
  const conflicts: DeviceConflict[] = [];
  const envs = merging("env", conflicts);
  const mounts = merging("mount", conflicts);
  const devices = merging("device", conflicts);
  const annotations = merging("annotation", conflicts);
  const options = {
    envs: [] as NameValue[],
    mounts: [] as Mount[],
    devices: [] as DeviceOptions["devices"][number][],
    annotations: [] as NameValue[],
    cdiDevices: new Set<string>(),
  };
  for (const { resource, response } of [...responses].sort((a, b) => byText(a.resource, b.resource))) {
    for (const [name, value] of [...response.envs].sort(byKey)) {
      if (envs(name, value, resource)) options.envs.push({ name, value });
    }
    for (const { containerPath, hostPath, permissions } of response.devices) {
      if (!devices(containerPath, hostPath, resource)) continue;
      options.devices.push({ pathOnHost: hostPath, pathInContainer: containerPath, permissions });
    }
    for (const mount of response.mounts) {
      if (mounts(mount.containerPath, mount.hostPath, resource)) options.mounts.push(mount);
    }
    for (const [name, value] of [...response.annotations].sort(byKey)) {
      if (annotations(name, value, resource)) options.annotations.push({ name, value });
    }
    for (const name of response.cdiDevices) options.cdiDevices.add(name);
  }
  return { ...options, cdiDevices: [...options.cdiDevices], conflicts };
}

/** Remembers the value of each name; returns true for the first. */
function merging(kind: DeviceConflict["kind"], conflicts: DeviceConflict[]) {
  const first = new Map<string, { readonly resource: string; readonly value: string }>();
  return (name: string, value: string, resource: string): boolean => {
    const kept = first.get(name);
    if (kept === undefined) {
      first.set(name, { resource, value });
      return true;
    }
    if (kept.value !== value) conflicts.push({ kind, name, kept, dropped: { resource, value } });
    return false;
  };
}
