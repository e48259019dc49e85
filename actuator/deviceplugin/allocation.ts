import { type AllocateResponse, readAllocateResponse } from "../../api/decide/devices/allocate-response.ts";
import { fieldsOf } from "../../api/decide/devices/wire.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { quoted } from "./names.ts";

/** A plugin's answer for the devices of one container. */
export interface Allocation {
  readonly response: AllocateResponse;
  /** The same as the plugin sent it: v1beta1.ContainerAllocateResponse in base64, as a checkpoint keeps it. */
  readonly base64: string;
}

/** More than this of anything in an answer is no container's. */
const MAX_PARTS = 4096;
/** Limit of the answer for one container: it is stored in the node's checkpoint, which all plugins share. */
export const MAX_ANSWER_BYTES = 256 * 1024;
/** `NAME=value` and its end: no kernel starts a program with more (MAX_ARG_STRLEN). */
const MAX_VARIABLE_BYTES = 128 * 1024;

/**
 * Reads an AllocateResponse to a request for as many containers. Error: what in it is not to be used, so that none of it
 * is: another number of containers, more bytes than are kept of one, a path that is not absolute or climbs out, a name
 * that cannot be.
 */
export function readAllocations(bytes: Buffer, containers: number): Result<readonly Allocation[], string> {
  const data = bytes.toString("latin1");
  const fields = fieldsOf({ data, start: 0, end: data.length });
  if (!fields.ok) return err("the answer is no AllocateResponse");
  const answers = fields.value.filter(({ number, slice }) => number === 1 && slice !== undefined);
  if (answers.length === 0) return err("no containers return in allocation response");
  if (answers.length !== containers) {
    return err(`the answer is for ${answers.length} containers, asked was for ${containers}`);
  }
  const allocations: Allocation[] = [];
  for (const { slice } of answers) {
    const answer = data.slice(slice?.start, slice?.end);
    if (answer.length > MAX_ANSWER_BYTES) {
      return err(`the answer for a container has ${answer.length} bytes, more than ${MAX_ANSWER_BYTES}`);
    }
    const base64 = Buffer.from(answer, "latin1").toString("base64");
    const response = readAllocateResponse(base64);
    if (!response.ok) return err("the answer is no AllocateResponse");
    const fault = faultIn(response.value);
    if (fault !== undefined) return err(fault);
    allocations.push({ response: response.value, base64 });
  }
  return ok(allocations);
}

function faultIn({ envs, mounts, devices, annotations, cdiDevices }: AllocateResponse): string | undefined {
  const parts = envs.size + mounts.length + devices.length + annotations.size + cdiDevices.length;
  if (parts > MAX_PARTS) return `the answer has ${parts} parts, more than ${MAX_PARTS}`;
  for (const [name, value] of envs) {
    if (name === "" || /[=\0]/.test(name) || value.includes("\0"))
      return `the environment variable ${quoted(name)} cannot be`;
    const bytes = Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
    if (bytes > MAX_VARIABLE_BYTES) {
      return `the environment variable ${quoted(name)} takes ${bytes} bytes, and no program starts with one of more than ${MAX_VARIABLE_BYTES}`;
    }
  }
  for (const { hostPath, containerPath } of mounts) {
    const fault = pathFault("the mount's path on the host", hostPath) ?? pathFault("the mount's path", containerPath);
    if (fault !== undefined) return fault;
  }
  for (const { hostPath, containerPath, permissions } of devices) {
    const fault = pathFault("the device's path on the host", hostPath) ?? pathFault("the device's path", containerPath);
    if (fault !== undefined) return fault;
    if (!/^[rwm]*$/.test(permissions))
      return `the permissions ${quoted(permissions)} of ${quoted(hostPath)} are not of r, w and m`;
  }
  if ([...annotations.keys()].includes("")) return "an annotation has no name";
  return cdiDevices.includes("") ? "a CDI device has no name" : undefined;
}

function pathFault(what: string, path: string): string | undefined {
  if (!path.startsWith("/") || path.includes("\0")) return `${what} ${quoted(path)} is not absolute`;
  return path.split("/").includes("..") ? `${what} ${quoted(path)} climbs out with \`..\`` : undefined;
}
