import type { PerOwnerEntries } from "../../base/cache.ts";
import { own } from "../../base/own.ts";
import type { Amounts } from "../../model/aggregate.ts";
import { compare, milliValue, subToZero, ZERO } from "../../model/amount.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
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
 * The pod with its allocated resources, which its cgroups have while a resize is pending: from allocated_pods_state if
 * posted, else from the pod's status. Pod-level resources are allocated separately only with the gate
 * InPlacePodLevelResourcesVerticalScaling; else they are those of the spec. kubelet 1.36: allocation manager
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
    // if a posted state does not list the pod, what the spec says is allocated
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

/** The resources that a status reports for a container or a pod. */
type ReportedResources = Pick<ContainerStatus, "allocatedResources" | "resources">;

/**
 * The allocated resources according to the status, which lists the allocated requests and the limits in force (the
 * allocated ones, while a resize is pending). Undefined: they equal the spec.
 */
function fromStatus(
  spec: Maybe<ResourceRequirements>,
  { allocatedResources, resources }: ReportedResources = {},
  waits: boolean,
): ResourceRequirements | undefined {
  // an empty list is left out, and then the requests in force are none either
  const isReported = allocatedResources !== undefined || (resources !== undefined && resources.requests === undefined);
  if (!isReported) return undefined;
  const isAllocated = RESIZABLE.every((name) => sameQuantity(allocatedResources?.[name], spec?.requests?.[name]));
  if (isAllocated && !waits) return undefined;
  const requests = isAllocated ? spec?.requests : replaced(spec?.requests, allocatedResources);
  const limits = resources === undefined ? spec?.limits : replaced(spec?.limits, resources.limits, isRounded);
  return { requests, limits };
}

/** The list with the reported CPU and memory, except amounts that are equal. */
function replaced(
  list: Maybe<ResourceList>,
  actual: Maybe<ResourceList>,
  same: (actual: Quantity, listed: Quantity) => boolean = sameQuantity,
): ResourceList {
  const all: Record<string, Quantity> = { ...list };
  for (const name of RESIZABLE) {
    const [amount, listed] = [actual?.[name], list?.[name]];
    if (amount === undefined) delete all[name];
    else if (listed === undefined || !same(amount, listed)) all[name] = amount;
  }
  return all;
}
/** systemd keeps a CPU quota in steps of 10m, rounded up. */
const isRounded = (actual: Quantity, listed: Quantity): boolean =>
  sameQuantity(actual, listed) ||
  (actual.format === "DecimalSI" && milliValue(actual.amount) === 10 * Math.ceil(milliValue(listed.amount) / 10));

/**
 * The pod-level resources that the status reports; they cover the whole pod, overhead included, whatever the spec
 * sets. kubelet 1.36: convertToAPIPodLevelResourcesStatus.
 */
function wholeFromStatus({ spec, status }: Pod): ReportedResources | undefined {
  const { resources, overhead } = spec;
  if (resources === undefined || status?.allocatedResources === undefined) return undefined;
  const own = (actual: Maybe<ResourceList>, named: Maybe<ResourceList>): ResourceList => {
    const list: Record<string, Quantity> = {};
    for (const [name, { amount, format }] of Object.entries(actual ?? {}))
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
 * The pod with the resources that its status reports as in force, while an allocated resize is not fully applied.
 * Pod-level requests stay as allocated, since the status computes them from a weight, which is less exact.
 */
export function inForcePod(allocated: Pod): Pod {
  if (conditionIn(allocated, "PodResizeInProgress") === undefined) return allocated;
  const statuses = statusesByName(allocated);
  const each = (c: Container): Container => {
    const { requests, limits } = c.resources ?? {};
    const actual = statuses.get(c.name)?.resources;
    if (actual === undefined) return c;
    return {
      ...c,
      resources: { requests: replaced(requests, actual.requests), limits: replaced(limits, actual.limits, isRounded) },
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
  /** The pod with its allocated resources. */
  readonly pod: Pod;
  readonly uid: string;
  readonly qos: QosClass;
  /** Requests of the allocated resources, which the pod's own cgroup gets. */
  readonly requests: Amounts;
  /** Requests in the spec, which the QoS tiers count while a resize is pending. kubelet 1.36: GetActivePods. */
  readonly asked: Amounts;
  /** Path of its cgroup. */
  readonly path: string;
  /** True: the allocated resources differ from the spec. */
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
/** Whether a pod of the API server is not bound to a node yet, so that no kubelet knows it; a manifest never is. */
export const awaitsScheduling = ({ metadata, spec, status }: Pod): boolean =>
  (spec.nodeName ?? "") === "" &&
  ((status?.phase === "Pending" && metadata.creationTimestamp !== undefined) ||
    status?.conditions?.some(({ type, status: is }) => type === "PodScheduled" && is === "False") === true);
/** The node's pods that still hold their resources. */
export const podsHere = (snapshot: Snapshot): readonly Pod[] => podsOfNode(snapshot).filter(isActive);

/** The path of the first pod here without a uid, which names its cgroup; undefined when all have one. */
export function missingUid(snapshot: Snapshot): string | undefined {
  const pod = podsHere(snapshot).find((p) => podUid(p) === undefined);
  return pod === undefined ? undefined : `pods[${snapshot.pods?.indexOf(pod)}].metadata.uid`;
}

/**
 * Reads the node's pods. `pathOf`: the path of a pod's cgroup. `kept`: cached results for unchanged pods without
 * reasons, valid while the configuration and the assignments are the same. INVARIANT: every pod here has a uid
 * (`missingUid`).
 */
export function nodePods(
  snapshot: EffectiveSnapshot,
  pathOf: (qos: QosClass, uid: string) => string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
  kept: PerOwnerEntries | undefined,
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

/** The pod as its kubelet sees it: pod-level resources count only if the gate PodLevelResources is on. */
export function podLevelByGate(pod: Pod, config: EffectiveConfiguration): Pod {
  if (pod.spec.resources === undefined || gateOn(config, "PodLevelResources")) return pod;
  const { resources: _, ...spec } = pod.spec;
  return { ...pod, spec };
}
