import { err, ok, type Result } from "../../model/result.ts";
import { fieldsOf, type Slice, textOf, type WireFault } from "./wire.ts";

export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
}
export interface DeviceSpec {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Permissions in the devices cgroup: some of `r`, `w` and `m`. */
  readonly permissions: string;
}
/** v1beta1.ContainerAllocateResponse: what a plugin wants a container to have for its devices. */
export interface AllocateResponse {
  readonly envs: ReadonlyMap<string, string>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly DeviceSpec[];
  readonly annotations: ReadonlyMap<string, string>;
  readonly cdiDevices: readonly string[];
}

/**
 * Reads the message from base64, of the form that a checkpoint is let in with. Unknown fields are skipped, and a known one of another wire type
 * counts as unknown, as in Go. Error: where the bytes are no such message; the kubelet then drops the checkpoint's entry.
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

interface Building {
  readonly envs: Map<string, string>;
  readonly mounts: Mount[];
  readonly devices: DeviceSpec[];
  readonly annotations: Map<string, string>;
  readonly cdiDevices: string[];
}
function addTo(response: Building, number: number, slice: Slice): WireFault | undefined {
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
/** Which fields of each part are texts: envs, mounts, devices, annotations, CDI devices. */
const TEXTS: readonly (readonly number[])[] = [[], [1, 2], [1, 2], [1, 2, 3], [1, 2], [1]];

/** The texts of a part, the last of each; and its varints. */
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
