import type { Client } from "@grpc/grpc-js";
import { err, map, ok, type Result } from "../../api/base/result.ts";
import { type AllocateResponse, readAllocateResponse } from "../../api/decide/devices/allocate-response.ts";
import { fieldsOf } from "../../api/decide/devices/wire.ts";
import type { DeviceList, ListThrottle } from "./device-list.ts";
import { DeviceListReader } from "./device-list-reader.ts";
import { invalidAnswer, type PluginCall, type PluginFault, type PluginResult } from "./fault.ts";
import { openMessageStream } from "./message-stream.ts";
import { type DevicePluginOptions, type PluginCalls, type PluginMethod, quoted } from "./names.ts";
import { callOnce, dial, LIST_AND_WATCH } from "./plugin-client.ts";

/** A plugin's answer for the devices of one container. */
export interface Allocation {
  readonly response: AllocateResponse;
  /** The answer as the plugin sent it: v1beta1.ContainerAllocateResponse in base64, as in a checkpoint. */
  readonly base64: string;
}

/** The maximum number of parts in one container's response. */
const MAX_PARTS = 4096;
/** Limit of the answer for one container: it is stored in the node's checkpoint, which all plugins share. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** `NAME=value` and its end: no kernel starts a program with more (MAX_ARG_STRLEN). */
const MAX_VARIABLE_BYTES = 128 * 1024;

/**
 * Reads an AllocateResponse for `containers` containers. Error: why the whole response is unusable: another number of
 * containers, too many bytes for one, a path that is not absolute or contains `..`, an impossible
 * name.
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

interface ListAndWatchStreamOptions {
  /** How long after its first list a stream counts as stable, in ms. */
  readonly aliveAfterMs: number;
  readonly load: ListThrottle;
  /** Devices that it may list. */
  readonly most: () => number;
  readonly onList: () => void;
  readonly onStreamAlive: () => void;
  readonly onEnd: (fault: PluginFault) => void;
}

/** The stream of one plugin: its last list, and whether it has lived for a while. */
export class ListAndWatchStream {
  readonly resource: string;
  readonly socketPath: string;
  readonly endpoint: Endpoint;
  /** The plugin's generation while it is registered by this stream; 0: it is not registered. */
  generation = 0;
  #list: DeviceList | undefined;
  #aliveTimer: NodeJS.Timeout | undefined;

  constructor(resource: string, socketPath: string, endpoint: Endpoint) {
    this.resource = resource;
    this.socketPath = socketPath;
    this.endpoint = endpoint;
  }

  get list(): DeviceList | undefined {
    return this.#list;
  }
  /** The fault about the ignored part of the last list; null: nothing was ignored. */
  get leftOut(): PluginFault | null {
    const message = this.#list?.remarks.join("; ") ?? "";
    const { resource, socketPath: endpoint } = this;
    return message === ""
      ? null
      : { resource, endpoint, call: "ListAndWatch", code: "LEFT_OUT", message, stands: true };
  }

  open({ aliveAfterMs, load, most, onList, onStreamAlive, onEnd }: ListAndWatchStreamOptions): void {
    this.endpoint.watch({
      most,
      load,
      onList: (list) => {
        this.#list = list;
        this.#aliveTimer ??= setTimeout(() => onStreamAlive(), aliveAfterMs).unref();
        onList();
      },
      onEnd: (fault) => {
        clearTimeout(this.#aliveTimer);
        onEnd(fault);
      },
    });
  }
  close(): void {
    clearTimeout(this.#aliveTimer);
    this.endpoint.close();
  }
}

interface ListStreamOptions {
  readonly client: Client;
  readonly of: PluginCall;
  /** Devices that the plugin may list. */
  readonly most: () => number;
  /** The throttle of all streams together. */
  readonly load: ListThrottle;
  readonly onList: (list: DeviceList) => void;
  /** Called once when the stream ends, unless it was stopped before. */
  readonly onEnd: (fault: PluginFault) => void;
}

/** Opens ListAndWatch, whose lists are complete; a list equal to the last is ignored. */
function openListStream({ client, of, most, load, onList, onEnd }: ListStreamOptions): {
  readonly stop: () => void;
} {
  const reader = new DeviceListReader(of.resource);
  let last: Buffer | undefined;
  const read = (bytes: Buffer): Result<boolean, string> => {
    if (last?.equals(bytes) === true) return ok(false);
    last = bytes;
    return map(reader.read(bytes, most), (list) => {
      onList(list);
      return true;
    });
  };
  return openMessageStream({ client, of, path: LIST_AND_WATCH, load, read, onEnd });
}

/** Time limits of a plugin's calls, in ms. The kubelet has the first and the last; for its other calls it waits for ever. */
export interface PluginTimeouts {
  /** From a plugin's registration until it serves. kubelet 1.36: dial. */
  readonly dialMs: number;
  readonly optionsMs: number;
  readonly preferredMs: number;
  readonly allocateMs: number;
  /** kubelet 1.36: KubeletPreStartContainerRPCTimeoutInSecs. */
  readonly preStartMs: number;
}
export const PLUGIN_TIMEOUTS: PluginTimeouts = {
  dialMs: 10_000,
  optionsMs: 10_000,
  preferredMs: 10_000,
  allocateMs: 60_000,
  preStartMs: 30_000,
};

/** The request to a plugin before devices are chosen. Ids are in natural order. */
export interface PreferredAllocationRequest {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  /** The number of devices that the container gets in all. */
  readonly size: number;
}

/** One plugin at its socket. Every call has a deadline, and every fault names the plugin and its resource. */
export interface Endpoint {
  readonly options: DevicePluginOptions;
  watch(listener: Omit<ListStreamOptions, "client" | "of">): void;
  allocate(ids: readonly string[]): PluginResult<Allocation>;
  /** Asks for preferred devices; null: the plugin does not offer GetPreferredAllocation. */
  preferred(question: PreferredAllocationRequest): PluginResult<readonly string[] | null>;
  /** Calls PreStartContainer, if the plugin wants it. */
  preStart(ids: readonly string[]): PluginResult<null>;
  /** Cancels running calls. */
  close(): void;
}
interface EndpointOptions {
  readonly resource: string;
  readonly socketPath: string;
  readonly timeouts: PluginTimeouts;
  readonly signal: AbortSignal;
}

/** Dials a plugin and asks for its options, which the kubelet does before it counts the plugin as registered. */
export async function openEndpoint(given: EndpointOptions): PluginResult<Endpoint> {
  const { resource, socketPath, timeouts, signal } = given;
  const of = (call: string): PluginCall => ({ resource, endpoint: socketPath, call });
  const calling = { of: of("GetDevicePluginOptions"), timeoutMs: timeouts.optionsMs, signal };
  const dialed = await dial(calling, timeouts.dialMs, "/v1beta1.DevicePlugin/GetDevicePluginOptions", {});
  if (dialed.ok) return ok(endpointOver(dialed.value.client, dialed.value.answer, timeouts, of));
  const { code, message } = dialed.error;
  const failed = code === "UNAVAILABLE" ? message : `failed to get device plugin options: ${message}`;
  return err({ ...dialed.error, message: failed });
}

function endpointOver(
  client: Client,
  options: DevicePluginOptions,
  timeouts: PluginTimeouts,
  of: (call: string) => PluginCall,
): Endpoint {
  let stream: { readonly stop: () => void } | undefined;
  const life = new AbortController();
  const call = <M extends PluginMethod>(method: M, request: PluginCalls[M][0], ms: number) =>
    callOnce(client, { of: of(nameOf(method)), timeoutMs: ms, signal: life.signal }, method, request);
  return {
    options,
    watch: (listener) => {
      stream?.stop();
      stream = openListStream({ client, of: of("ListAndWatch"), ...listener });
    },
    allocate: async (ids) => {
      const request = { containerRequests: [{ devicesIds: ids }] };
      const answer = await call("/v1beta1.DevicePlugin/Allocate", request, timeouts.allocateMs);
      if (!answer.ok) return answer;
      const read = readAllocations(answer.value, request.containerRequests.length);
      return read.ok ? ok(read.value[0] as Allocation) : err(invalidAnswer(of("Allocate"), read.error));
    },
    preferred: async ({ available, mustInclude, size }) => {
      if (!options.getPreferredAllocationAvailable) return ok(null);
      const asked = { availableDeviceIDs: available, mustIncludeDeviceIDs: mustInclude, allocationSize: size };
      const request = { containerRequests: [asked] };
      const answer = await call("/v1beta1.DevicePlugin/GetPreferredAllocation", request, timeouts.preferredMs);
      if (!answer.ok) return answer;
      const known = new Set([...available, ...mustInclude]);
      const ids = [...new Set(answer.value.containerResponses[0]?.deviceIDs ?? [])];
      return ok(ids.filter((id) => known.has(id)));
    },
    preStart: async (ids) => {
      if (!options.preStartRequired) return ok(null);
      const answer = await call("/v1beta1.DevicePlugin/PreStartContainer", { devicesIds: ids }, timeouts.preStartMs);
      return map(answer, () => null);
    },
    close: () => {
      stream?.stop();
      life.abort();
      client.close();
    },
  };
}
const nameOf = (method: string): string => method.slice(method.lastIndexOf("/") + 1);
