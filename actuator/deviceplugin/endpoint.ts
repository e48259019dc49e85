import { type Client, getClientChannel, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { err, map, ok } from "../../api/model/result.ts";
import { type Allocation, readAllocations } from "./allocation.ts";
import type { DeviceList } from "./device-list.ts";
import { DeviceListReader } from "./device-list-reader.ts";
import { type Answered, faultOf, nonsense, type PluginCall, type PluginFault } from "./fault.ts";
import type { ListThrottle } from "./list-throttle.ts";
import type { DevicePluginOptions, PluginCalls, PluginMethod } from "./names.ts";
import { callOnce, dial } from "./plugin-client.ts";
import { LIST_AND_WATCH } from "./protocol.ts";

interface ListStreamOptions {
  readonly client: Client;
  readonly of: PluginCall;
  /** Devices that the plugin may list. */
  readonly most: () => number;
  /** The throttle of all streams together. */
  readonly load: ListThrottle;
  readonly onList: (list: DeviceList) => void;
  /** Told once, unless it is stopped before. */
  readonly onEnd: (fault: PluginFault) => void;
}

/** Bytes that are read of one plugin; beyond that its sending is held up. A list of 4,096 devices has 0.25 MB. */
const BYTES_PER_MS = 2 * 1024;
const BURST_BYTES = 4 * 1024 * 1024;
/** The cost of a message beside its bytes, so that endless small messages are held up too. */
const MESSAGE_BYTES = 2 * 1024;

/**
 * ListAndWatch, a message at a time: the next is asked for when the last is in hand, so that no queue forms here, and a
 * plugin that floods is slowed down by the stream's own window. Bytes are kept, not devices, until a list is due.
 */
function openListStream({ client, of, most, load, onList, onEnd }: ListStreamOptions): {
  readonly stop: () => void;
} {
  const reader = new DeviceListReader(of.resource);
  let newest: Buffer | undefined;
  let last: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let resume: NodeJS.Timeout | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  let isOver = false;
  const bucket = bucketOf(BURST_BYTES, BYTES_PER_MS);
  const call = getClientChannel(client).createCall(LIST_AND_WATCH, Number.POSITIVE_INFINITY, null, null, null);

  const stop = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    clearTimeout(resume);
    newest = last = undefined;
    call.cancelWithStatus(status.CANCELLED, "the node no longer listens");
  };
  const look = (hasWaited: boolean): void => {
    timer = undefined;
    const bytes = newest;
    newest = undefined;
    if (bytes === undefined || last?.equals(bytes) === true) return;
    const began = performance.now();
    last = bytes;
    const list = reader.read(bytes, most);
    if (list.ok) {
      onList(list.value);
      const endedAt = performance.now();
      dueAt = endedAt + load.restAfter(call, endedAt - began, hasWaited);
      return;
    }
    stop();
    onEnd(nonsense(of, list.error));
  };
  call.start(new Metadata(), {
    onReceiveMetadata: () => undefined,
    onReceiveMessage: (bytes: Buffer) => {
      if (isOver) return;
      newest = bytes;
      const waitMs = dueAt - performance.now();
      if (waitMs <= 0) look(false);
      else timer ??= setTimeout(look, waitMs, true);
      if (isOver) return;
      const heldMs = bucket.take(bytes.length + MESSAGE_BYTES);
      if (heldMs === 0) call.startRead();
      else resume = setTimeout(() => call.startRead(), heldMs);
    },
    onReceiveStatus: (ended: StatusObject) => {
      if (isOver) return;
      clearTimeout(timer);
      look(true);
      if (isOver) return;
      stop();
      onEnd(endOf(of, ended));
    },
  });
  call.sendMessageWithContext({}, Buffer.alloc(0));
  call.halfClose();
  call.startRead();
  return { stop };
}

/** Plugins may end their stream with a good word: it is the end all the same. */
const endOf = (of: PluginCall, ended: StatusObject): PluginFault =>
  ended.code === status.OK ? { ...of, code: "ENDED", message: "the plugin ended its stream" } : faultOf(of, ended, 0);

/** A token bucket; `take` answers the wait before the next, in ms. */
function bucketOf(burst: number, perMs: number): { take(amount: number): number } {
  let left = burst;
  let at = performance.now();
  return {
    take: (amount) => {
      const now = performance.now();
      left = Math.min(burst, left + (now - at) * perMs) - amount;
      at = now;
      return left >= 0 ? 0 : Math.ceil(-left / perMs);
    },
  };
}

/** The longest that a plugin may take, ms. The kubelet has the first and the last; with its other calls it waits for ever. */
export interface PluginTimeouts {
  /** Until it serves, from its registration on. kubelet 1.36: dial. */
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
export interface PreferredQuestion {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  /** The number of devices that the container gets in all. */
  readonly size: number;
}

/** One plugin at its socket. Every call has a deadline, every fault names the plugin and its resource. */
export interface Endpoint {
  readonly options: DevicePluginOptions;
  watch(listener: Omit<ListStreamOptions, "client" | "of">): void;
  allocate(ids: readonly string[]): Answered<Allocation>;
  /** Null: the plugin does not offer it. */
  preferred(question: PreferredQuestion): Answered<readonly string[] | null>;
  /** Nothing is called where the plugin does not want it. */
  preStart(ids: readonly string[]): Answered<null>;
  /** Calls that are under way hear their end. */
  close(): void;
}
export interface EndpointOptions {
  readonly resource: string;
  readonly socketPath: string;
  readonly timeouts: PluginTimeouts;
  readonly signal: AbortSignal;
}

/** Dials a plugin and asks for its options, which is what the kubelet does before it calls it registered. */
export async function openEndpoint(given: EndpointOptions): Answered<Endpoint> {
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
      return read.ok ? ok(read.value[0] as Allocation) : err(nonsense(of("Allocate"), read.error));
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
