import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { type MethodDefinition, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { perObject } from "../../api/base/cache.ts";
import { byText } from "../../api/base/order.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { naturalOrder } from "../../api/decide/devices/natural-order.ts";
import { type ClaimInfo, driversOf } from "../../api/decide/dra/claim-info.ts";
import type { Block } from "../../api/decide/memory/machine-memory.ts";
import { type Container, isSidecar, type Pod, podNamespace, podUid } from "../../api/model/pod.ts";
import { authorityFixSocket } from "../grpc/authority-fix-socket.ts";
import { type Listener, listenRebinding } from "../grpc/listener.ts";
import { type Refusal, type UnaryHandler, unaryMethod, unaryServer } from "../grpc/unary-server.ts";
import type { AllocatedDevices, PodResourcesSource } from "./live-source.ts";

/** The NUMA node of devices without a node. kubelet 1.36: nodeWithoutTopology. */
const NO_NODE = -1;

/**
 * Resources that each active pod holds, by namespace, name and uid; the kubelet's own order is that of a Go map.
 * kubelet 1.36: v1PodResourcesServer.List.
 */
export const podResources = (source: PodResourcesSource): ListPodResourcesResponse => ({
  podResources: source.activePods.toSorted(byName).map((pod) => resourcesOf(source, pod)),
});
const byName = (a: Pod, b: Pod): number =>
  byText(podNamespace(a), podNamespace(b)) || byText(a.metadata.name, b.metadata.name) || byText(uidOf(a), uidOf(b));
const uidOf = (pod: Pod): string => podUid(pod) ?? "";

/**
 * The answer of v1alpha1: the regular containers of all known pods and their devices, without topology. Ended
 * containers hold nothing. kubelet 1.36: v1alpha1PodResourcesServer.List.
 */
export const alphaPodResources = (source: PodResourcesSource): AlphaListPodResourcesResponse => ({
  podResources: source.pods.toSorted(byName).map((pod) => ({
    name: pod.metadata.name,
    namespace: podNamespace(pod),
    containers: pod.spec.containers.map(({ name }) => ({
      name,
      devices: devicesOf(source, uidOf(pod), name).map(({ resourceName, deviceIds }) => ({ resourceName, deviceIds })),
    })),
  })),
});

/**
 * Resources that one active pod holds; of two pods with the same name, the later in the list. The error is the kubelet's text.
 * kubelet 1.36: v1PodResourcesServer.Get.
 */
export function podResourcesOf(
  source: PodResourcesSource,
  { podName, podNamespace: namespace }: GetPodResourcesRequest,
): Result<GetPodResourcesResponse, string> {
  const pod = source.activePods.findLast((p) => p.metadata.name === podName && podNamespace(p) === namespace);
  if (pod === undefined) return err(`pod ${podName} in namespace ${namespace} not found`);
  return ok({ podResources: resourcesOf(source, pod) });
}

/** Resources that the node could give if none were held. kubelet 1.36: v1PodResourcesServer.GetAllocatableResources. */
export const allocatableResources = ({ allocatable }: PodResourcesSource): AllocatableResourcesResponse => ({
  devices: allocatable.devices
    .toSorted((a, b) => byText(a.resource, b.resource))
    .flatMap(({ resource, devices }) =>
      devices
        .toSorted((a, b) => naturalOrder(a.id, b.id))
        .flatMap(({ id, numaNodes }) => rowsOf(resource, id, numaNodes?.toSorted(ascending))),
    ),
  cpuIds: [...allocatable.cpus].sort(ascending),
  memory: allocatable.memory.map(memoryOf),
});

/** The resources of a pod's containers, sidecars first; other init containers are left out. */
function resourcesOf(source: PodResourcesSource, pod: Pod): PodResources {
  const { initContainers = [], containers } = pod.spec;
  const reportedContainers = [...initContainers.filter(isSidecar), ...containers];
  return {
    name: pod.metadata.name,
    namespace: podNamespace(pod),
    containers: reportedContainers.map((container) => containerOf(source, pod, container)),
  };
}

/** kubelet 1.36: getContainerResources. */
function containerOf(source: PodResourcesSource, pod: Pod, container: Container): ContainerResources {
  const { name } = container;
  const uid = uidOf(pod);
  return {
    name,
    devices: devicesOf(source, uid, name),
    cpuIds: [...source.cpus(uid, name)].sort(ascending),
    memory: source.memory(uid, name).map(memoryOf),
    dynamicResources: source.claims(pod, container).map(claimOf),
  };
}

/** A claim's devices; like a kubelet, lists a driver's CDI devices cumulatively. kubelet 1.37: GetDynamicResources. */
function claimOf(info: ClaimInfo): DynamicResource {
  const claimResources = driversOf(info).flatMap((driverName) => {
    const cdiDevices: { readonly name: string }[] = [];
    return (info.drivers.get(driverName)?.devices ?? []).map(({ poolName, deviceName, cdiDeviceIds, shareId }) => {
      cdiDevices.push(...(cdiDeviceIds ?? []).map((name) => ({ name })));
      const share = shareId === null ? {} : { shareId };
      return { cdiDevices: [...cdiDevices], driverName, poolName, deviceName, ...share };
    });
  });
  return { claimName: info.name, claimNamespace: info.namespace, claimResources };
}
const devicesOf = (source: PodResourcesSource, podUid: string, name: string): readonly ContainerDevices[] =>
  source
    .devices(podUid, name)
    .toSorted((a, b) => byText(a.resource, b.resource))
    .flatMap(containerDevices);
const ascending = (a: number, b: number): number => a - b;

/** Device by device. kubelet 1.36: getContainerDevices. */
function containerDevices({ resource, perNuma }: AllocatedDevices): readonly ContainerDevices[] {
  const nodesOf = new Map<string, number[]>();
  for (const node of [...perNuma.keys()].sort(ascending)) {
    for (const id of perNuma.get(node) ?? []) {
      const nodes = nodesOf.get(id) ?? [];
      if (node !== NO_NODE) nodes.push(node);
      nodesOf.set(id, nodes);
    }
  }
  const ids = [...nodesOf.keys()].sort(naturalOrder);
  return ids.flatMap((id) => {
    const nodes = nodesOf.get(id) ?? [];
    return rowsOf(resource, id, nodes.length === 0 ? undefined : nodes);
  });
}

/**
 * One row for each NUMA node of a device; without a reported topology, one row without a node; with an empty one, none.
 * kubelet 1.36: containerDevicesFromResourceDeviceInstances.
 */
const rowsOf = (resourceName: string, id: string, nodes: readonly number[] | undefined): readonly ContainerDevices[] =>
  nodes?.map((node) => ({ resourceName, deviceIds: [id], topology: topologyOf([node]) })) ?? [
    { resourceName, deviceIds: [id] },
  ];

/** kubelet 1.36: containerMemoryFromBlock. */
const memoryOf = ({ type, size, numaAffinity }: Block): ContainerMemory => ({
  memoryType: type,
  size,
  topology: topologyOf(numaAffinity),
});
const topologyOf = (nodes: readonly number[]): TopologyInfo => ({ nodes: nodes.map((ID) => ({ ID })) });

/** Calls a second that are answered for good. kubelet 1.36: podresources.DefaultQPS. */
const CALLS_PER_SECOND = 100;
/** Number of calls in a burst. kubelet 1.36: podresources.DefaultBurstTokens. */
const BURST = 10;

/**
 * A token bucket that starts full; true: the call may proceed. `nowMs`: a monotonic clock. kubelet 1.36:
 * LimiterUnaryServerInterceptor.
 */
export function rateLimit(nowMs: () => number): () => boolean {
  let tokens = BURST;
  let last = nowMs();
  return () => {
    const now = nowMs();
    const left = Math.min(BURST, tokens + ((now - last) * CALLS_PER_SECOND) / 1000);
    if (left < 1) return false;
    tokens = left - 1;
    last = now;
    return true;
  };
}

/** kubelet 1.36: podresources.Socket. */
const SOCKET = "kubelet.sock";
/** Each exporter has one or two connections. */
const MAX_CONNECTIONS = 256;
const LIMITS = {
  // two names
  maxMessageBytes: 16 * 1024,
  maxStreams: 64,
  // an answer about a full node has a few
  sessionMegabytes: 64,
};

/** Methods of v1, and the one of v1alpha1. */
export type PodResourcesMethod = "List" | "GetAllocatableResources" | "Get" | "v1alpha1.List";
export interface PodResourcesServing {
  /** The directory where exporters look for the socket. */
  readonly directory: string;
  /** Returns the current source; error: why it is not known (yet). Answers are cached per source. */
  readonly source: () => Result<PodResourcesSource, string>;
  /** Called for each call, with gRPC's code name. */
  readonly onCall?: (method: PodResourcesMethod, code: string) => void;
  /** Called with a sentence when the socket was removed while in use. */
  readonly onFault?: (message: string) => void;
}
type Answer = (source: PodResourcesSource, request: object) => Result<object, Refusal>;

/**
 * Serves the podresources API, v1 and v1alpha1, on `kubelet.sock`. The error is a sentence: the socket cannot be bound.
 * kubelet 1.36: ListenAndServePodResources.
 */
export function servePodResources(serving: PodResourcesServing): Promise<Result<Listener, string>> {
  const server = unaryServer({ handlers: handlers(serving), ...LIMITS });
  return listenRebinding({
    onFault: serving.onFault ?? (() => undefined),
    path: join(serving.directory, SOCKET),
    maxConnections: MAX_CONNECTIONS,
    onConnection: (socket) => server.accept(authorityFixSocket(socket)),
  });
}

function handlers({ source, onCall }: PodResourcesServing): Readonly<Record<string, UnaryHandler>> {
  const isAllowed = rateLimit(() => performance.now());
  const unary = (method: PodResourcesMethod, definition: Definition, answer: Answer) => {
    const responseSerialize = perObject(definition.responseSerialize);
    const handler = unaryMethod({ ...definition, responseSerialize }, (request) => {
      const answered = isAllowed() ? asked(source(), request, answer) : err(TOO_MANY);
      onCall?.(method, answered.ok ? "OK" : (status[answered.error.code] as string));
      return answered;
    });
    return [definition.path, handler] as const;
  };
  const v1 = definitions("podresources.proto", "v1.PodResourcesLister");
  const alpha = definitions("podresources-v1alpha1.proto", "v1alpha1.PodResourcesLister");
  // a source does not change, so its answers are computed and encoded once
  const listed = perObject(podResources);
  const alphaListed = perObject(alphaPodResources);
  const allocatable = perObject(allocatableResources);
  return Object.fromEntries([
    unary("v1alpha1.List", alpha("List"), (now) => ok(alphaListed(now))),
    unary("List", v1("List"), (now) => ok(listed(now))),
    unary("GetAllocatableResources", v1("GetAllocatableResources"), (now) => ok(allocatable(now))),
    unary("Get", v1("Get"), (now, request) => {
      const found = podResourcesOf(now, request as GetPodResourcesRequest);
      return found.ok ? found : err({ code: status.UNKNOWN, message: found.error });
    }),
  ]);
}
/** kubelet 1.36: ErrorLimitExceeded. */
const TOO_MANY: Refusal = { code: status.RESOURCE_EXHAUSTED, message: "rejected by rate limit" };

const asked = (source: Result<PodResourcesSource, string>, request: object, answer: Answer): ReturnType<Answer> =>
  source.ok ? answer(source.value, request) : err({ code: status.UNAVAILABLE, message: source.error });

type Definition = MethodDefinition<object, object>;

function definitions(file: string, service: string): (method: string) => Definition {
  const loaded = loadSync(join(import.meta.dirname, file), { longs: String, defaults: true })[service];
  return (method) => (loaded as unknown as Readonly<Record<string, Definition>>)[method] as Definition;
}

/** The messages of podresources.proto and of its v1alpha1 predecessor, for proto-loader. */

interface TopologyInfo {
  readonly nodes: readonly { readonly ID: number }[];
}
interface ContainerDevices {
  readonly resourceName: string;
  readonly deviceIds: readonly string[];
  /** Absent: the plugin does not report where the device is. */
  readonly topology?: TopologyInfo;
}
interface ContainerMemory {
  /** `memory`, `hugepages-2Mi`. */
  readonly memoryType: string;
  /** Bytes. */
  readonly size: number;
  readonly topology: TopologyInfo;
}
interface ContainerResources {
  readonly name: string;
  readonly devices: readonly ContainerDevices[];
  /** The CPUs that the container has exclusively. */
  readonly cpuIds: readonly number[];
  readonly memory: readonly ContainerMemory[];
  readonly dynamicResources: readonly DynamicResource[];
}
interface DynamicResource {
  readonly claimName: string;
  readonly claimNamespace: string;
  readonly claimResources: readonly {
    readonly cdiDevices: readonly { readonly name: string }[];
    readonly driverName: string;
    readonly poolName: string;
    readonly deviceName: string;
    readonly shareId?: string;
  }[];
}
interface PodResources {
  readonly name: string;
  readonly namespace: string;
  readonly containers: readonly ContainerResources[];
}

interface ListPodResourcesResponse {
  readonly podResources: readonly PodResources[];
}
interface AllocatableResourcesResponse {
  readonly devices: readonly ContainerDevices[];
  readonly cpuIds: readonly number[];
  readonly memory: readonly ContainerMemory[];
}
interface GetPodResourcesRequest {
  readonly podName: string;
  readonly podNamespace: string;
}
interface GetPodResourcesResponse {
  readonly podResources: PodResources;
}

/** v1alpha1.ListPodResourcesResponse. */
interface AlphaListPodResourcesResponse {
  readonly podResources: readonly {
    readonly name: string;
    readonly namespace: string;
    readonly containers: readonly {
      readonly name: string;
      readonly devices: readonly Pick<ContainerDevices, "resourceName" | "deviceIds">[];
    }[];
  }[];
}
