import type { Amounts } from "../../model/aggregate.ts";
import { compare, milliValue, subToZero, ZERO } from "../../model/amount.ts";
import type { KeptIn } from "../../model/cache.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import { own } from "../../model/own.ts";
import {
  type Container,
  type ContainerStatus,
  conditionIn,
  isActive,
  type Pod,
  podUid,
  type ResourceRequirements,
} from "../../model/pod.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveConfiguration, type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { cgroupClaimsOf } from "../resources/node-claims.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { type QosClass, qosClass } from "../resources/qos.ts";

const RESIZABLE = ["cpu", "memory"] as const;
type Maybe<T> = T | null | undefined;

/**
 * The pod with the resources that the kubelet has allocated, which is what its cgroups get while a resize is pending.
 * They come from allocated_pods_state where it is posted, else from the pod's status. What a pod asks for as a whole is allocated
 * with the gate InPlacePodLevelResourcesVerticalScaling alone: else it is as the spec says. kubelet 1.36: allocation manager
 * UpdatePodFromAllocation.
 */
export function allocatedPod(
  given: Pod,
  { assignments, kubeletConfiguration: config }: EffectiveSnapshot,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): Pod {
  const pod = podLevelByGate(given, config);
  const state = assignments?.allocated_pods_state;
  const entry = own(state?.entries, podUid(pod) ?? "");
  const statuses = statusesByName(pod);
  const waits = conditionIn(pod, "PodResizePending") !== undefined;
  const substitute = (c: Container): Container => {
    const fromState = own(entry?.ContainerResources, c.name);
    // a posted state that does not name the pod says that nothing else than the spec was allocated
    const resources = state === undefined ? fromStatus(c.resources, statuses.get(c.name), waits) : fromState;
    if (resources === undefined || sameResources(c.resources, resources)) return c;
    reasons.add("resize_pending", at, "resources", { container: c.name });
    return { ...c, resources };
  };
  const containers = pod.spec.containers.map(substitute);
  const initContainers = pod.spec.initContainers?.map(substitute);
  const fromWhole =
    state === undefined ? fromStatus(pod.spec.resources, wholeFromStatus(pod), waits) : entry?.PodLevelResources;
  const isWhole =
    fromWhole !== undefined &&
    gateOn(config, "InPlacePodLevelResourcesVerticalScaling") &&
    !sameResources(fromWhole, pod.spec.resources);
  if (isWhole) reasons.add("resize_pending", at, "resources");
  const changed =
    containers.some((c, i) => c !== pod.spec.containers[i]) ||
    initContainers?.some((c, i) => c !== pod.spec.initContainers?.[i]);
  if (changed !== true && !isWhole) return pod;
  const { resources } = pod.spec;
  return { ...pod, spec: { ...pod.spec, containers, initContainers, resources: isWhole ? fromWhole : resources } };
}

export function statusesByName(pod: Pod): ReadonlyMap<string, ContainerStatus> {
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return new Map(all.map((s) => [s.name, s]));
}

/** What a status tells of the resources of a container, or of a pod. */
type Told = Pick<ContainerStatus, "allocatedResources" | "resources">;

/**
 * The status tells the requests that are allocated, and the limits as they are in force: those that are allocated, while a resize
 * waits. Undefined: it tells nothing else than the spec.
 */
function fromStatus(
  spec: Maybe<ResourceRequirements>,
  { allocatedResources, resources }: Told = {},
  waits: boolean,
): ResourceRequirements | undefined {
  // an empty list is left out, and then the requests in force are none either
  const isTold = allocatedResources !== undefined || (resources !== undefined && resources.requests === undefined);
  if (!isTold) return undefined;
  const isAllocated = RESIZABLE.every((name) => sameQuantity(allocatedResources?.[name], spec?.requests?.[name]));
  if (isAllocated && !waits) return undefined;
  const requests = isAllocated ? spec?.requests : replaced(spec?.requests, allocatedResources);
  const limits = resources === undefined ? spec?.limits : replaced(spec?.limits, resources.limits, isRounded);
  return { requests, limits };
}

/** The list with CPU and memory as told, but for amounts that are the `same`. */
function replaced(
  list: Maybe<ResourceList>,
  told: Maybe<ResourceList>,
  same: (told: Quantity, listed: Quantity) => boolean = sameQuantity,
): ResourceList {
  const all: Record<string, Quantity> = { ...list };
  for (const name of RESIZABLE) {
    const [amount, listed] = [told?.[name], list?.[name]];
    if (amount === undefined) delete all[name];
    else if (listed === undefined || !same(amount, listed)) all[name] = amount;
  }
  return all;
}
/** systemd keeps a CPU quota in steps of 10m, rounded up. */
const isRounded = (told: Quantity, listed: Quantity): boolean =>
  sameQuantity(told, listed) ||
  (told.format === "DecimalSI" && milliValue(told.amount) === 10 * Math.ceil(milliValue(listed.amount) / 10));

/**
 * What the status tells of the pod's own resources. Its lists are of the whole pod, whatever of it the spec names, and with the
 * overhead. kubelet 1.36: convertToAPIPodLevelResourcesStatus.
 */
function wholeFromStatus({ spec, status }: Pod): Told | undefined {
  const { resources, overhead } = spec;
  if (resources === undefined || status?.allocatedResources === undefined) return undefined;
  const own = (told: Maybe<ResourceList>, named: Maybe<ResourceList>): ResourceList => {
    const list: Record<string, Quantity> = {};
    for (const [name, { amount, format }] of Object.entries(told ?? {}))
      if (named?.[name] !== undefined)
        list[name] = quantityOf(subToZero(amount, overhead?.[name]?.amount ?? ZERO), format);
    return list;
  };
  const limits = status.resources === undefined ? undefined : own(status.resources.limits, resources.limits);
  return {
    allocatedResources: own(status.allocatedResources, resources.requests),
    resources: limits && { limits },
  };
}

/**
 * The pod with what its status tells is in force, while a resize that is allocated to it is not all written. What the pod requests as
 * a whole stays as it is allocated: the status reads it from a weight, which has no such steps.
 */
export function inForcePod(allocated: Pod): Pod {
  if (conditionIn(allocated, "PodResizeInProgress") === undefined) return allocated;
  const statuses = statusesByName(allocated);
  const each = (c: Container): Container => {
    const { requests, limits } = c.resources ?? {};
    const told = statuses.get(c.name)?.resources;
    if (told === undefined) return c;
    return {
      ...c,
      resources: { requests: replaced(requests, told.requests), limits: replaced(limits, told.limits, isRounded) },
    };
  };
  const { containers, initContainers, resources } = allocated.spec;
  const limits = wholeFromStatus(allocated)?.resources?.limits;
  return {
    ...allocated,
    spec: {
      ...allocated.spec,
      containers: containers.map(each),
      initContainers: initContainers?.map(each),
      ...(limits && { resources: { ...resources, limits: replaced(resources?.limits, limits, isRounded) } }),
    },
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
  const claims = cgroupClaimsOf(snapshot.kubeletConfiguration);
  return podsHere(snapshot).map((given) => {
    const known = kept?.get<NodePod>(given);
    if (known !== undefined) return known;
    const posted = podLevelByGate(given, snapshot.kubeletConfiguration);
    const uid = podUid(posted) as string;
    const qos = qosClass(posted);
    const path = pathOf(qos, uid);
    const pod = allocatedPod(posted, snapshot, path, reasons);
    const asked = podRequests(posted, claims);
    const isPending = pod !== posted;
    const own = { pod, uid, qos, requests: isPending ? podRequests(pod, claims) : asked, asked, path, isPending };
    if (pod === given) kept?.set(given, own);
    return own;
  });
}

/** The pod as its kubelet sees it: with resources of its own only where the gate PodLevelResources is on. */
export function podLevelByGate(pod: Pod, config: EffectiveConfiguration): Pod {
  if (pod.spec.resources === undefined || gateOn(config, "PodLevelResources")) return pod;
  const { resources: _, ...spec } = pod.spec;
  return { ...pod, spec };
}
