import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import {
  literally,
  observedResourceList,
  optional,
  pathPart,
  quantity,
  resourceList,
  text,
  textMap,
  timestamp,
  wholeNumber,
} from "./fields.ts";
import { namespacedName, type PodRef } from "./forms.ts";
import {
  APP_ARMOR_ANNOTATION,
  affinity,
  containerPorts,
  containerSecurityContext,
  ephemeralContainers,
  nodeSelector,
  OS_LABEL,
  podSecurityContext,
  tolerations,
  volumeMounts,
} from "./placement.ts";
import { podProbe } from "./probe-spec.ts";

/** The priority classes that every cluster has, and their values. kubernetes 1.36: scheduling.SystemPriorityClasses. */
export const SYSTEM_PRIORITY_CLASSES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
]);

/** `resources` of a container, of a pod, or of a container's status. */
export const resourceRequirements = z.object({ requests: optional(resourceList), limits: optional(resourceList) });
export type ResourceRequirements = z.output<typeof resourceRequirements>;

/** A claim of the pod that a container uses, and the one request of it that it is for; without a request all of them. */
const containerClaims = z.array(z.object({ name: text, request: optional(text) })).max(LIMITS.resourcesPerList);
/** Whether a container has to start again for another amount of a resource. */
const resizePolicy = optional(
  z.array(z.object({ resourceName: text, restartPolicy: optional(text) })).max(LIMITS.resourcesPerList),
);
export const container = z.object({
  name: pathPart,
  image: optional(text),
  resources: optional(resourceRequirements.extend({ claims: optional(containerClaims) })),
  /** `Always` on an init container makes it a sidecar. */
  restartPolicy: optional(text),
  resizePolicy,
  restartPolicyRules: optional(z.array(z.object({ action: text })).max(64)),
  ports: optional(containerPorts),
  securityContext: optional(containerSecurityContext),
  volumeMounts: optional(volumeMounts),
  startupProbe: optional(podProbe),
  livenessProbe: optional(podProbe),
  readinessProbe: optional(podProbe),
});
export type Container = z.output<typeof container>;

const containerState = z.object({
  running: optional(z.object({ startedAt: optional(timestamp) })),
  terminated: optional(z.object({ exitCode: optional(z.number().int()) })),
});
const observedRequirements = z.object({
  requests: optional(observedResourceList),
  limits: optional(observedResourceList),
});
/** Devices of one resource of a plugin, or of one claim (`claim:NAME`), and their health. */
const deviceHealth = z.object({
  name: text,
  resources: optional(z.array(z.object({ resourceID: text, health: optional(text) })).max(LIMITS.devices)),
});
export const containerStatus = z.object({
  name: pathPart,
  containerID: optional(text),
  state: optional(containerState),
  restartCount: optional(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
  /** It runs, and its startup probe has succeeded. */
  started: optional(z.boolean()),
  /** Requests that the kubelet has allocated; differs from the spec while a resize is pending. */
  allocatedResources: optional(observedResourceList),
  /** The resources in force on the node. */
  resources: optional(observedRequirements),
  allocatedResourcesStatus: optional(z.array(deviceHealth).max(LIMITS.deviceResources)),
});
export type ContainerStatus = z.output<typeof containerStatus>;

const containers = z.array(container).max(LIMITS.containersPerPod);
const statuses = z.array(containerStatus).max(LIMITS.containersPerPod);
/**
 * A volume, with only the fields that make it local storage, and the image that it mounts. A source that is present is an empty
 * object.
 */
const volume = z.object({
  name: text,
  emptyDir: optional(z.object({ medium: optional(text), sizeLimit: optional(quantity) })),
  hostPath: optional(z.object({})),
  gitRepo: optional(z.object({})),
  configMap: optional(z.object({})),
  image: optional(z.object({ reference: optional(text) })),
});
/** Extended resources that a claim holds, so that the node need not list them. */
const claimMappings = z
  .array(z.object({ containerName: text, resourceName: text, requestName: optional(text) }))
  .max(LIMITS.resourcesPerList);
const podClaim = z.object({
  name: optional(text),
  resourceClaimName: optional(text),
  resourceClaimTemplateName: optional(text),
});
export type PodClaim = z.output<typeof podClaim>;
/** The claims that were made of the pod's templates; one without a name was not needed. */
const podClaimStatuses = z
  .array(z.object({ name: text, resourceClaimName: optional(text) }))
  .max(LIMITS.resourcesPerList);
const CONFIG_ANNOTATION = "kubernetes.io/config.";
/** The annotations that a decision reads. */
export const READ_ANNOTATIONS = new RegExp(
  `^(?:${[CONFIG_ANNOTATION, APP_ARMOR_ANNOTATION].map(literally).join("|")})`,
);
/** On the API's image of a static pod: the uid that the node knows the pod by. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

const claimed = <S extends z.ZodRawShape>(amounts: S) =>
  optional(z.array(z.object({ name: text, ...amounts })).max(LIMITS.resourcesPerList));
/** kubernetes 1.37: NodeAllocatableResourceClaimStatus; 1.36 has the sums, under `resources`. */
const nodeClaimStatus = z.object({
  resourceClaimName: optional(text),
  /** The names of the containers that refer to the claim. */
  containers: optional(z.array(text).max(2 * LIMITS.containersPerPod)),
  resources: optional(observedResourceList),
  mapping: claimed({ quantity: optional(quantity) }),
  overhead: claimed({ perPod: optional(quantity), perContainer: optional(quantity) }),
});

/** A text of which the beginning is kept. */
const truncatedText = (most: number) =>
  z.string().transform((text) => (text.length > most ? `${text.slice(0, most - 1)}…` : text));
const LONGEST_REASON = 128;
const LONGEST_MESSAGE = 1024;

/**
 * A condition; its message is kept only where a resize is stuck (PodResizeInProgress, reason Error). INVARIANT: the stored form of any
 * other has none, as the id of a snapshot is the hash of that form.
 */
const condition = z
  .object({
    type: text,
    status: optional(text),
    reason: optional(text),
    message: optional(truncatedText(LONGEST_MESSAGE)),
    lastTransitionTime: optional(timestamp),
  })
  .transform((whole): typeof whole => {
    const { message, ...rest } = whole;
    const isKept = rest.type === "PodResizeInProgress" && rest.reason === "Error" && message;
    return message === undefined || isKept ? whole : rest;
  });
/** The condition of a pod's status of this type, unless it is False. */
export const conditionIn = ({ status }: Pod, type: string): z.output<typeof condition> | undefined =>
  status?.conditions?.find((one) => one.type === type && one.status !== "False");

const podStatus = z.object({
  phase: optional(text),
  reason: optional(truncatedText(LONGEST_REASON)),
  message: optional(truncatedText(LONGEST_MESSAGE)),
  qosClass: optional(z.enum(["Guaranteed", "Burstable", "BestEffort", ""])),
  containerStatuses: optional(statuses),
  initContainerStatuses: optional(statuses),
  conditions: optional(z.array(condition).max(64)),
  /** For a pod with pod-level resources: those that the kubelet has allocated, and those in force. */
  allocatedResources: optional(observedResourceList),
  resources: optional(observedRequirements),
  resourceClaimStatuses: optional(podClaimStatuses),
  /** Claims that give CPU, memory and the like of the node itself. */
  nodeAllocatableResourceClaimStatuses: optional(z.array(nodeClaimStatus).max(LIMITS.resourcesPerList)),
  extendedResourceClaimStatus: optional(
    z.object({ resourceClaimName: optional(text), requestMappings: optional(claimMappings) }),
  ),
});
type PodStatus = z.output<typeof podStatus>;
/**
 * Keeps `reason` and `message` only of a failed pod. INVARIANT: the stored form of any other status has neither
 * field, as the id of a snapshot is the hash of that form.
 */
function wordsOfFailed(status: PodStatus): PodStatus {
  const { reason, message, ...rest } = status;
  if (reason === undefined && message === undefined) return status;
  return status.phase === "Failed" && reason ? status : rest;
}

/** The fields of v1.Pod that a decision reads, and why one failed; the rest is ignored and so never stored. */
export const pod = z.object({
  metadata: z.object({
    name: pathPart,
    namespace: optional(pathPart),
    uid: optional(pathPart),
    creationTimestamp: optional(timestamp),
    annotations: optional(textMap(READ_ANNOTATIONS)),
    deletionTimestamp: optional(timestamp),
    labels: optional(textMap(new RegExp(`^${literally(OS_LABEL)}$`))),
  }),
  spec: z.object({
    containers: containers.min(1, "a pod has at least one container"),
    initContainers: optional(containers),
    ephemeralContainers: optional(ephemeralContainers),
    overhead: optional(resourceList),
    runtimeClassName: optional(text),
    resources: optional(resourceRequirements),
    priority: optional(wholeNumber(-2147483648, 2147483647)),
    priorityClassName: optional(text),
    nodeName: optional(text),
    restartPolicy: optional(text),
    terminationGracePeriodSeconds: optional(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    volumes: optional(z.array(volume).max(LIMITS.volumesPerPod)),
    nodeSelector: optional(nodeSelector),
    affinity: optional(affinity),
    tolerations: optional(tolerations),
    hostNetwork: optional(z.boolean()),
    hostIPC: optional(z.boolean()),
    hostUsers: optional(z.boolean()),
    os: optional(z.object({ name: text })),
    resourceClaims: optional(z.array(podClaim).max(LIMITS.resourcesPerList)),
    schedulingGroup: optional(z.object({ podGroupName: optional(text) })),
    securityContext: optional(podSecurityContext),
  }),
  status: optional(podStatus.transform(wordsOfFailed)),
});
export type Pod = z.output<typeof pod>;

/** It is being deleted. */
export const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
export const isSidecar = (c: Container): boolean => c.restartPolicy === "Always";
/** Before a refusal's words in the status of its pod; the event has them without it. kubelet 1.36: rejectPod. */
export const REJECTED = "Pod was rejected: ";
/** Why a pod is over. */
export interface PodEnd {
  readonly pod: Pod;
  /** Such as `Evicted`, `OutOfcpu`. */
  readonly reason: string;
  /** As its status has it, at most 1024 characters. */
  readonly message: string;
  /** Its kubelet did not let it in. */
  readonly isRefusal: boolean;
}
/** The end of a pod whose status tells why it failed, such as one that its kubelet refused or evicted; null: it does not. */
export function endOf(pod: Pod): PodEnd | null {
  const { reason, message = "" } = pod.status ?? {};
  return reason === undefined ? null : { pod, reason, message, isRefusal: message.startsWith(REJECTED) };
}

export const isTerminal = (p: Pod): boolean => p.status?.phase === "Succeeded" || p.status?.phase === "Failed";

/**
 * Whether a pod still counts: all but the ended ones, and of those the ones whose containers are still being stopped.
 * kubelet 1.36: filterOutInactivePods.
 */
export const isActive = (pod: Pod): boolean => !isTerminal(pod) || isStopping(pod);
function isStopping({ status }: Pod): boolean {
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return all.some(({ state }) => state?.running !== undefined);
}

/**
 * The uid under which the node runs the pod: a mirror pod stands for the static pod whose hash its annotation holds.
 * `undefined` where the object has none.
 */
export function podUid(p: Pod): string | undefined {
  return p.metadata.annotations?.[MIRROR_ANNOTATION] ?? p.metadata.uid ?? undefined;
}
export const podNamespace = (p: Pod): string => p.metadata.namespace ?? "default";

/** cpu, memory and huge pages may be set for a whole pod. kubernetes 1.36: IsSupportedPodLevelResource. */
export const isPodLevelResource = (name: string): boolean =>
  name === "cpu" || name === "memory" || name.startsWith("hugepages-");

/** All containers of a pod in the order in which they start: init containers first. */
export const containersOf = ({ spec }: Pod): readonly Container[] => [
  ...(spec.initContainers ?? []),
  ...spec.containers,
];

/** How answers name a pod. */
export const podRef = (p: Pod): PodRef => ({
  namespace: podNamespace(p),
  name: p.metadata.name,
  uid: podUid(p) ?? "",
});
/** `NAMESPACE/NAME` */
export const namespacedPodName = (p: Pod): string => namespacedName(podRef(p));
