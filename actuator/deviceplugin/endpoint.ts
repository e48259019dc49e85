import type { Client } from "@grpc/grpc-js";
import { err, map, ok } from "../../api/model/result.ts";
import { type Allocation, readAllocations } from "./allocation.ts";
import { type Answered, nonsense, type PluginCall } from "./fault.ts";
import { type ListStreamOptions, openListStream } from "./list-stream.ts";
import type { DevicePluginOptions, PluginCalls, PluginMethod } from "./messages.ts";
import { callOnce, dial } from "./plugin-client.ts";

/** How long a plugin may take, ms. The kubelet has the first and the last; with its other calls it waits for ever. */
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

/** What a plugin is asked before devices are chosen. Ids in natural order. */
export interface PreferredQuestion {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  /** How many devices the container gets in all. */
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
