import { type Fields, fieldsOf } from "../../../api/base/own.ts";
import type { ClaimHealth } from "../../../api/decide/dra/health.ts";
import type { RuntimePod } from "../../containerd/cri.ts";
import { activeSandboxOf, latestOf } from "../instances.ts";
import type { RunnablePod } from "../pod.ts";

/** Limit of all termination messages of a pod together. */
const MAX_BYTES = 12 * 1024;

/** Truncates each container's share of the pod's termination messages. kubelet 1.36: normalizeStatus. */
export function cutMessages(statuses: readonly ContainerStatus[], containers: number): readonly ContainerStatus[] {
  const most = Math.trunc(MAX_BYTES / Math.max(1, containers));
  return statuses.map((s) => ({ ...s, state: cutState(s.state, most), lastState: cutState(s.lastState, most) }));
}

function cutState(state: ContainerState, most: number): ContainerState {
  const message = state.terminated?.message;
  if (state.terminated === undefined || message === undefined || message.length * 3 <= most) return state;
  return { terminated: { ...state.terminated, message: cutText(message, most) } };
}

/** The beginning of a text, at most `most` bytes of UTF-8, in whole characters. */
function cutText(text: string, most: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) return text;
  return new TextDecoder().decode(bytes.subarray(0, most), { stream: true });
}

/** v1.PodStatus as JSON; fields without a value are absent. Times are RFC 3339, in whole seconds, UTC. */
export interface PodStatus {
  readonly observedGeneration?: number;
  readonly phase: Phase;
  readonly conditions: readonly PodCondition[];
  readonly message?: string;
  readonly reason?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses: readonly ContainerStatus[];
  /** The claim statuses from the pod's source. */
  readonly resourceClaimStatuses?: unknown;
  readonly extendedResourceClaimStatus?: unknown;
  readonly nodeAllocatableResourceClaimStatuses?: unknown;
  readonly qosClass: QosClass;
}
export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";
export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

export interface PodCondition {
  readonly type: string;
  readonly observedGeneration?: number;
  readonly status: "True" | "False";
  readonly lastTransitionTime?: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly started: boolean;
  /** Requests, as they are allocated. */
  readonly allocatedResources?: Readonly<Record<string, unknown>>;
  readonly resources?: Resources;
  /** The health of the container's devices, from plugins and claims. */
  readonly allocatedResourcesStatus?: readonly ClaimHealth[];
}
/** Device health by container. */
export type ContainerHealth = Readonly<Record<string, readonly ClaimHealth[]>>;
/**
 * The statuses with device health; devices that claims no longer report keep their last health. kubelet 1.37:
 * UpdateAllocatedResourcesStatus.
 */
export const withHealth = (statuses: readonly ContainerStatus[], health: ContainerHealth): readonly ContainerStatus[] =>
  statuses.map((status) => {
    const claims = Object.hasOwn(health, status.name) ? (health[status.name] ?? []) : [];
    const before = (status.allocatedResourcesStatus ?? []).filter(
      (old) => !claims.some(({ name }) => name === old.name),
    );
    return claims.length === 0 ? status : { ...status, allocatedResourcesStatus: [...before, ...claims] };
  });

/** One of the three states; none of them: not known. */
export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt: string };
  readonly terminated?: Terminated;
}
interface Terminated {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly containerID?: string;
}
/** `requests` and `limits` as a v1.Container has them. */
export type Resources = Readonly<Record<string, unknown>>;

export const isOverPhase = (phase: string | undefined): phase is "Succeeded" | "Failed" =>
  phase === "Succeeded" || phase === "Failed";

/** A time as v1.Time is written: whole seconds, truncated. */
export const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

type Addresses = Pick<PodStatus, "hostIP" | "hostIPs" | "podIP" | "podIPs">;

const isV6 = (ip: string): boolean => ip.includes(":");

/**
 * `hostIPs`: the node's, the preferred family first, two at most. A pod has one address of each family, in the node's
 * order; on the host's network it has the node's. kubelet 1.36: sortPodIPs, generateAPIPodStatus.
 */
export function addressesOf(pod: RunnablePod, runtimePod: RuntimePod, hostIPs: readonly string[]): Addresses {
  const host = hostIPs.slice(0, 2);
  const own = activeSandboxOf(runtimePod)?.ips ?? [];
  const isV6First = host[0] !== undefined && isV6(host[0]);
  const sorted = [own.find((ip) => isV6(ip) === isV6First), own.find((ip) => isV6(ip) !== isV6First)];
  const ips = pod.spec.hostNetwork ? host : sorted.filter((ip) => ip !== undefined);
  const listOf = (list: readonly string[]): readonly { ip: string }[] => list.map((ip) => ({ ip }));
  return {
    ...(host[0] !== undefined && { hostIP: host[0], hostIPs: listOf(host) }),
    ...(ips[0] !== undefined && { podIP: ips[0], podIPs: listOf(ips) }),
  };
}

/** Reads unchecked JSON as an object: a missing value, or one of another kind, is empty. */

/**
 * Adds a container's allocated resources, from the admitted v1.Pod, and those in force: `inForce` by
 * container if they are known to differ. Only a container with an instance has resources. kubelet 1.36:
 * convertContainerStatusResources.
 */
export function withResources(
  statuses: readonly ContainerStatus[],
  object: Fields,
  runtimePod: RuntimePod,
  inForce: Readonly<Record<string, Resources>>,
): readonly ContainerStatus[] {
  const spec = fieldsOf(object["spec"]);
  const containers = [spec["initContainers"], spec["containers"]].flatMap((list) => (Array.isArray(list) ? list : []));
  return statuses.map((status) => {
    const latest = latestOf(runtimePod, status.name);
    const container = containers.find((c) => fieldsOf(c)["name"] === status.name);
    if (latest === undefined || container === undefined) return status;
    const allocated = fieldsOf(fieldsOf(container)["resources"]);
    const requests = fieldsOf(allocated["requests"]);
    return {
      ...status,
      ...(Object.keys(requests).length > 0 && { allocatedResources: requests }),
      resources: (latest.state === "running" ? inForce[status.name] : undefined) ?? allocated,
    };
  });
}

/** The generation of the pod's object; 0: it has none. */
export function generationOf(object: Fields): number {
  const generation = fieldsOf(object["metadata"])["generation"];
  return typeof generation === "number" ? generation : 0;
}
