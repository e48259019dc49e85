import type { Amounts } from "../../model/aggregate.ts";
import { compare } from "../../model/amount.ts";
import type { AllocatedPodsState } from "../../model/assignments.ts";
import type { KeptIn } from "../../model/cache.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { own } from "../../model/own.ts";
import {
  type Container,
  type ContainerStatus,
  isActive,
  type Pod,
  podUid,
  type ResourceRequirements,
} from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { cgroupClaimsOf } from "../resources/node-claims.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { type QosClass, qosClass } from "../resources/qos.ts";

const RESIZABLE = ["cpu", "memory"] as const;
type Maybe<T> = T | null | undefined;

/**
 * The pod with the resources that the kubelet has allocated, which is what its cgroups get while a resize is pending.
 * They come from allocated_pods_state where it is posted, else from the containers' status.
 * kubelet 1.36: allocation manager UpdatePodFromAllocation.
 */
export function allocatedPod(
  pod: Pod,
  state: AllocatedPodsState | undefined,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): Pod {
  const entry = own(state?.entries, podUid(pod) ?? "");
  const statuses = statusesByName(pod);
  const substitute = (c: Container): Container => {
    const fromState = own(entry?.ContainerResources, c.name);
    // a posted state that does not name the pod says that nothing else than the spec was allocated
    const resources = state === undefined ? fromStatus(c, statuses.get(c.name)) : fromState;
    if (resources === undefined || sameResources(c.resources, resources)) return c;
    reasons.add("resize_pending", at, "resources", { container: c.name });
    return { ...c, resources };
  };
  const containers = pod.spec.containers.map(substitute);
  const initContainers = pod.spec.initContainers?.map(substitute);
  const podLevel = entry?.PodLevelResources ?? pod.spec.resources;
  const changed =
    containers.some((c, i) => c !== pod.spec.containers[i]) ||
    initContainers?.some((c, i) => c !== pod.spec.initContainers?.[i]);
  if (changed !== true && sameResources(podLevel, pod.spec.resources)) return pod;
  return { ...pod, spec: { ...pod.spec, containers, initContainers, resources: podLevel } };
}

export function statusesByName(pod: Pod): ReadonlyMap<string, ContainerStatus> {
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return new Map(all.map((s) => [s.name, s]));
}

/** The status tells allocated requests, and limits only as they are in force. */
function fromStatus(c: Container, status: ContainerStatus | undefined): ResourceRequirements | undefined {
  const allocated = status?.allocatedResources;
  if (allocated === null || allocated === undefined) return undefined;
  const requests = c.resources?.requests;
  if (RESIZABLE.every((name) => sameQuantity(allocated[name], requests?.[name]))) return undefined;
  return {
    requests: { ...requests, ...allocated },
    limits: { ...c.resources?.limits, ...status?.resources?.limits },
  };
}

function sameResources(a: Maybe<ResourceRequirements>, b: Maybe<ResourceRequirements>): boolean {
  return RESIZABLE.every(
    (name) =>
      sameQuantity(a?.requests?.[name], b?.requests?.[name]) && sameQuantity(a?.limits?.[name], b?.limits?.[name]),
  );
}
type HasAmount = { readonly amount: number | bigint };
const sameQuantity = (a: HasAmount | undefined, b: HasAmount | undefined): boolean =>
  a === undefined || b === undefined ? a === b : compare(a.amount, b.amount) === 0;

/** A pod that holds resources on the node, with what every level of the tree asks of it worked out once. */
export interface NodePod {
  /** With its allocated resources. */
  readonly pod: Pod;
  readonly uid: string;
  readonly qos: QosClass;
  /** Requests of the allocated resources, which the pod's own cgroup gets. */
  readonly requests: Amounts;
  /** Requests of the resources asked for, which the QoS tiers count while a resize is pending. kubelet 1.36: GetActivePods. */
  readonly asked: Amounts;
  /** Path of its cgroup. */
  readonly path: string;
  /** Others than the posted resources are allocated, which is told. */
  readonly isPending: boolean;
}

/** Pods that are not another node's and not of none yet (a whole cluster's list may be posted). */
export function podsOfNode(snapshot: Snapshot): readonly Pod[] {
  const name = snapshot.node?.metadata.name;
  const isHere = (p: Pod): boolean => {
    const bound = p.spec.nodeName ?? "";
    return bound === "" ? !awaitsScheduling(p) : name === undefined || bound === name;
  };
  return (snapshot.pods ?? []).filter(isHere);
}
/** A pod that the API server keeps and that is bound to no node yet, so no kubelet has heard of it; a manifest is none. */
export const awaitsScheduling = ({ metadata, spec, status }: Pod): boolean =>
  (spec.nodeName ?? "") === "" &&
  ((status?.phase === "Pending" && metadata.creationTimestamp !== undefined) ||
    status?.conditions?.some(({ type, status: is }) => type === "PodScheduled" && is === "False") === true);
/** Those of them that still hold what they have. */
export const podsHere = (snapshot: Snapshot): readonly Pod[] => podsOfNode(snapshot).filter(isActive);

/** The path of the first pod here without a uid, which names its cgroup; undefined when all have one. */
export function missingUid(snapshot: Snapshot): string | undefined {
  const pod = podsHere(snapshot).find((p) => podUid(p) === undefined);
  return pod === undefined ? undefined : `pods[${snapshot.pods?.indexOf(pod)}].metadata.uid`;
}

/**
 * `pathOf`: of a pod's cgroup. `kept`: of pods that are as they were posted, of which there is nothing to tell, while that, the
 * configuration and the assignments are the same. INVARIANT: every pod here has a uid (`missingUid`).
 */
export function nodePods(
  snapshot: EffectiveSnapshot,
  pathOf: (qos: QosClass, uid: string) => string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
  kept: KeptIn | undefined,
): readonly NodePod[] {
  const state = snapshot.assignments?.allocated_pods_state;
  const podLevel = gateOn(snapshot.kubeletConfiguration, "PodLevelResources");
  const claims = cgroupClaimsOf(snapshot.kubeletConfiguration);
  return podsHere(snapshot).map((given) => {
    const known = kept?.get<NodePod>(given);
    if (known !== undefined) return known;
    const posted = podLevel ? given : withoutPodLevel(given);
    const uid = podUid(posted) as string;
    const qos = qosClass(posted);
    const path = pathOf(qos, uid);
    const pod = allocatedPod(posted, state, path, reasons);
    const asked = podRequests(posted, claims);
    const isPending = pod !== posted;
    const own = { pod, uid, qos, requests: isPending ? podRequests(pod, claims) : asked, asked, path, isPending };
    if (pod === given) kept?.set(given, own);
    return own;
  });
}

/** The pod as a kubelet sees it whose gate PodLevelResources is off. */
export function withoutPodLevel(pod: Pod): Pod {
  const { resources, ...spec } = pod.spec;
  return resources === undefined ? pod : { ...pod, spec };
}
