import { own } from "../../base/own.ts";
import type { TestedResource } from "../../model/admission.ts";
import type { Amounts } from "../../model/aggregate.ts";
import type { ResourceList } from "../../model/fields.ts";
import { OS_LABEL, type Taint, type Toleration } from "../../model/placement.ts";
import { type Container, isSidecar, type Pod, podNamespace } from "../../model/pod.ts";
import { NOT_RECOVERED, type Preemption, type Shortage } from "../../model/preemption.ts";
import { isDraResource, isExtendedResource } from "../../model/resource-name.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { parseWhole } from "../go/strconv.ts";
import { isHugePage } from "../hugepages.ts";
import { preemptFor } from "../preemption/handler.ts";
import { nodeClaimsOf, reportClaimed } from "../resources/node-claims.ts";
import { claimedParts, podRequests, unitsOf } from "../resources/pod-resources.ts";
import { isCriticalPod, isStaticPod } from "../resources/qos.ts";
import { countedRequests } from "./counted.ts";
import { type Labels, selectsNode } from "./node-affinity.ts";
import type { AdmissionContext, Refused } from "./prepare.ts";

/** Nodewise speaks of Linux nodes. */
const OS = "linux";

/**
 * Lists refusals that preemption cannot resolve: the wrong operating system, or groups that the runtime cannot set.
 * kubelet 1.36: predicateAdmitHandler.Admit.
 */
function incompatibilities({ pod, node, needs }: AdmissionContext): readonly Refused[] {
  const refused: Refused[] = [];
  const label = own(pod.metadata.labels, OS_LABEL);
  if (label !== undefined && label !== OS) {
    refused.push({
      reason: "PodOSSelectorNodeLabelDoesNotMatch",
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    });
  }
  if (pod.spec.os !== undefined && pod.spec.os.name !== OS) {
    refused.push({
      reason: "PodOSNotSupported",
      message: "Failed to admit pod as the OS field doesn't match node OS",
    });
  }
  const strict = pod.spec.securityContext?.supplementalGroupsPolicy === "Strict";
  // the kubelet treats absent features of its own node as unsupported; a node written by hand may just lack them
  if (strict && node.status?.features === undefined) needs.add("node.status.features");
  if (strict && node.status?.features?.supplementalGroupsPolicy !== true) {
    refused.push({
      reason: "SupplementalGroupsPolicyNotSupported",
      message: "SupplementalGroupsPolicy=Strict is not supported in this node",
    });
  }
  return refused;
}

/** The kubelet corrects the label of its own copy of the node before it looks at affinity. kubelet 1.36: rejectPodAdmissionBasedOnOSSelector. */
const correctedLabels = (labels: Labels): Labels =>
  Object.keys(labels).length === 0 ? labels : { ...labels, [OS_LABEL]: OS };

/**
 * Whether one of the tolerations tolerates the taint. `comparing`: the gate TaintTolerationComparisonOperators is on.
 * kubernetes 1.36: TolerationsTolerateTaint.
 */
export const tolerates = (tolerations: readonly Toleration[], taint: Taint, comparing: boolean): boolean =>
  tolerations.some((t) => toleratesOne(t, taint, comparing));

/** Whether the toleration tolerates the taint: an empty effect or key matches any; an empty operator is Equal. */
function toleratesOne({ key, operator, value, effect }: Toleration, taint: Taint, comparing: boolean): boolean {
  if (isSet(effect) && effect !== taint.effect) return false;
  if (isSet(key) && key !== taint.key) return false;
  switch (operator ?? "") {
    case "":
    case "Equal":
      return (value ?? "") === (taint.value ?? "");
    case "Exists":
      return true;
    case "Lt":
    case "Gt":
      return comparing && compares(operator === "Lt", taint.value ?? "", value ?? "");
    default:
      return false;
  }
}
const isSet = (text: string | undefined): boolean => text !== undefined && text !== "";

const DECIMAL = /^(?:0|-?[1-9]\d*)$/;
function compares(less: boolean, taint: string, toleration: string): boolean {
  const [a, b] = [parseWhole(taint), parseWhole(toleration)];
  if (!DECIMAL.test(taint) || !DECIMAL.test(toleration) || !a.ok || !b.ok) return false;
  return less ? a.value < b.value : a.value > b.value;
}

/** A host port that a pod binds. */
interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}
const ANY_IP = "0.0.0.0";

/** Lists the host ports of the containers that run as long as the pod. kubernetes 1.36: GetHostPorts. */
function hostPorts({ spec }: Pod): readonly HostPort[] {
  const containers = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers];
  return containers.flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP, protocol }) =>
      hostPort > 0 ? [{ ip: hostIP || ANY_IP, protocol: protocol || "TCP", port: hostPort }] : [],
    ),
  );
}

/**
 * Whether two host ports conflict: same port and protocol, and the same address or one of them on all addresses.
 * kubernetes 1.36: HostPortInfo.CheckConflict.
 */
export const conflicts = (a: HostPort, b: HostPort): boolean =>
  a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === ANY_IP || b.ip === ANY_IP);

const failed = (name: string, what: string): Refused => ({
  reason: name,
  message: `Predicate ${name} failed: ${what}`,
});
const AFFINITY = failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
const NAME = failed("NodeName", "node(s) didn't match the requested node name");
const PORTS = failed("NodePorts", "node(s) didn't have free ports for the requested pod ports");
const TAINTS = failed("TaintToleration", "node(s) had taints that the pod didn't tolerate");

/**
 * Lists the predicates that fail for reasons other than resources. `onlyThis`: nothing else fails. In that case the
 * kubelet rereads the node before it checks affinity, so the labels are the node's own and not the corrected ones.
 * kubelet 1.36: generalFilter.
 */
function mismatches(admitting: AdmissionContext, onlyThis: boolean): readonly Refused[] {
  const labels = admitting.node.metadata.labels ?? {};
  const found = withLabels(admitting, correctedLabels(labels));
  return onlyThis && found.length === 1 && found[0] === AFFINITY ? withLabels(admitting, labels) : found;
}

function withLabels(admitting: AdmissionContext, labels: Labels): readonly Refused[] {
  const { pod, node } = admitting;
  const name = node.metadata.name;
  const wanted = pod.spec.nodeName ?? "";
  return [
    ...(selectsNode(pod, labels, name) ? [] : [AFFINITY]),
    ...(wanted === "" || name === undefined || wanted === name ? [] : [NAME]),
    ...(portTaken(admitting) ? [PORTS] : []),
    ...(untolerated(admitting) ? [TAINTS] : []),
  ];
}

/** Reports each conflicting pod with the address that it binds, since the asked pod may bind several. */
function portTaken({ pod, others, reasons }: AdmissionContext): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  let taken = false;
  for (const other of others) {
    for (const held of hostPorts(other)) {
      if (!wanted.some((port) => conflicts(port, held))) continue;
      taken = true;
      const by = `${podNamespace(other)}/${other.metadata.name}`;
      reasons.add("host_port_taken", "predicates", "NodePorts", { ...held, by });
    }
  }
  return taken;
}

/** Refuses for untolerated NoExecute taints; static pods are exempt. */
function untolerated({ pod, node, config, reasons }: AdmissionContext): boolean {
  if (isStaticPod(pod)) return false;
  const comparing = gateOn(config, "TaintTolerationComparisonOperators");
  const taints = (node.spec?.taints ?? []).filter(
    (taint) => taint.effect === "NoExecute" && !tolerates(pod.spec.tolerations ?? [], taint, comparing),
  );
  for (const { key, value, effect } of taints) {
    reasons.add("taint_not_tolerated", "predicates", "TaintToleration", { key, value, effect });
  }
  return taints.length > 0;
}

/** Resource -> thousandths of a CPU, or whole units. */
type Units = ReadonlyMap<string, number>;

const FIRST = ["cpu", "memory", "ephemeral-storage"];

/**
 * Whether a resource is counted beside cpu, memory and ephemeral-storage; other names are ignored. kubernetes 1.36:
 * IsScalarResourceName.
 */
const isScalar = (name: string): boolean =>
  isExtendedResource(name) ||
  isHugePage(name) ||
  name.includes("kubernetes.io/") ||
  name.startsWith("attachable-volumes-");

/** The amounts that a node can allocate, and those in use. kubernetes 1.36: NodeInfo. */
interface NodeInfo {
  /** The kubelet may raise this to what is already allocated. */
  readonly allocatable: Map<string, number>;
  readonly used: Units;
  readonly pods: number;
}

/** `pods`: the pods that count on the node. */
function nodeInfoOf(allocatable: ResourceList, pods: readonly Pod[], config: EffectiveConfiguration): NodeInfo {
  const used = new Map<string, number>();
  for (const pod of pods) {
    for (const [name, amount] of countedRequests(pod, config)) {
      used.set(name, (used.get(name) ?? 0) + unitsOf(name, amount));
    }
  }
  const units = Object.entries(allocatable).map(([name, { amount }]) => [name, unitsOf(name, amount)] as const);
  return { allocatable: new Map(units), used, pods: pods.length };
}

/**
 * Tests resources in the kubelet's order: the number of pods always, the others if they are requested. For scalar
 * resources the kubelet follows a Go map; here they are sorted by name. kubernetes 1.36: noderesources.Fits.
 */
function testResources(requests: Amounts, nodeInfo: NodeInfo): readonly TestedResource[] {
  const tested = (resource: string, requested: number, used: number, capacity: number): TestedResource => ({
    resource,
    requested,
    used,
    capacity,
    insufficient: Math.max(0, requested - (capacity - used)),
  });
  const names = [...requests.keys()].filter((name) => !FIRST.includes(name) && isScalar(name)).sort();
  const asked = [...FIRST, ...names].flatMap((name) => {
    const requested = unitsOf(name, requests.get(name) ?? 0);
    return requested === 0
      ? []
      : [tested(name, requested, nodeInfo.used.get(name) ?? 0, nodeInfo.allocatable.get(name) ?? 0)];
  });
  return [tested("pods", 1, nodeInfo.pods, nodeInfo.allocatable.get("pods") ?? 0), ...asked];
}

/** The failed predicates, each part in the kubelet's order. */
interface Failures {
  /** Checked before anything else; no pod is preempted for a pod with such a failure. */
  readonly incompatible: readonly Refused[];
  readonly resources: readonly TestedResource[];
  readonly short: readonly Shortage[];
  /** Why the node does not match this pod. */
  readonly unmatched: readonly Refused[];
}
/** The findings of the predicate handler. */
export interface Predicates {
  /** The refusals in the kubelet's order. */
  readonly refusals: readonly Refused[];
  readonly resources: readonly TestedResource[];
  /** The preemption for a critical pod that lacks resources and has no other failure. */
  readonly preemption: Preemption | null;
}

/**
 * Checks operating system, resources, affinity, name, ports and taints. `devices`: the number of each resource that
 * containers hold, if the pod holds any. kubelet 1.36: predicateAdmitHandler.
 */
export function findFailures(
  admitting: AdmissionContext,
  allocatable: ResourceList,
  devices: ReadonlyMap<string, number>,
): Failures {
  const incompatible = incompatibilities(admitting);
  const resources = testedResources(admitting, allocatable, devices);
  const short = resources
    .filter(({ insufficient }) => insufficient > 0)
    .map(({ resource, requested, used, capacity }) => ({ resource, requested, used, capacity }));
  return { incompatible, resources, short, unmatched: mismatches(admitting, short.length === 0) };
}

/** Turns the failures into the handler's result: preemption for a critical pod, else one refusal for each. */
export function checkPredicates({ pod, active }: AdmissionContext, failures: Failures, preempts: boolean): Predicates {
  const { incompatible, resources, short, unmatched } = failures;
  if (!preempts || !isCriticalPod(pod) || short.length === 0) {
    return {
      refusals: [...incompatible, ...short.map(insufficientResource), ...unmatched],
      resources,
      preemption: null,
    };
  }
  // a critical pod is never refused directly for lack of resources
  const preemption = preemptFor(pod, active, short);
  const failed = preemption.error === null ? [] : [notRecovered(preemption.error)];
  return { refusals: [...incompatible, ...unmatched, ...failed], resources, preemption };
}

function testedResources(
  { pod, others, config, reasons }: AdmissionContext,
  allocatable: ResourceList,
  devices: ReadonlyMap<string, number>,
): readonly TestedResource[] {
  const nodeInfo = nodeInfoOf(allocatable, others, config);
  for (const [resource, held] of devices) {
    const listed = nodeInfo.allocatable.get(resource);
    if (listed === undefined || listed < held) nodeInfo.allocatable.set(resource, held);
  }
  const kept = withoutMissingResources(
    pod,
    (resource) => nodeInfo.allocatable.has(resource),
    config.profile.behaviour.claimedNotCounted && gateOn(config, "DRAExtendedResource"),
    (resource) => reasons.add("extended_resource_not_counted", resource, "requested"),
  );
  const claims = nodeClaimsOf(config);
  const [requests, parts] = [podRequests(kept, claims), claimedParts(kept, claims)?.requests];
  for (const name of [...requests.keys()].filter((name) => isLeftToClaims(name, nodeInfo, config))) {
    requests.delete(name);
    reasons.add("extended_resource_not_counted", name, "requested");
  }
  const tested = testResources(requests, nodeInfo);
  for (const { resource, requested, used, capacity, insufficient } of tested) {
    const code = insufficient > 0 ? "resource_short" : "resource_fits";
    reasons.add(code, resource, "requested", { requested, used, capacity });
    reportClaimed(reasons, resource, "requested", resource, parts?.get(resource));
  }
  return tested;
}

/** kubernetes 1.35: shouldDelegateResourceToDRA. */
function isLeftToClaims(name: string, { allocatable }: NodeInfo, config: EffectiveConfiguration): boolean {
  const { leftToClaims } = config.profile.behaviour;
  if (leftToClaims === "none" || FIRST.includes(name) || !isScalar(name)) return false;
  const has = allocatable.get(name);
  return gateOn(config, "DRAExtendedResource") && (leftToClaims === "zero" ? (has ?? 0) === 0 : has === undefined);
}

/** kubelet 1.36: InsufficientResourceError. */
export const insufficientResource = ({ resource, requested, used, capacity }: Shortage): Refused => ({
  reason: `OutOf${resource}`,
  message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
});
const notRecovered = (error: string): Refused => ({
  reason: NOT_RECOVERED,
  message: `Unexpected error while attempting to recover from admission failure: ${error}`,
});

/**
 * The pod without requests for extended resources that the node does not list (cluster-level resources, or those of a
 * claim); `drop` is called for each. `claims`: resources that a claim provides are dropped even if the node lists
 * them. kubelet 1.36: removeMissingExtendedResources.
 */
function withoutMissingResources(
  pod: Pod,
  listed: (resource: string) => boolean,
  claims: boolean,
  drop: (resource: string) => void,
): Pod {
  const mappings = claims ? (pod.status?.extendedResourceClaimStatus?.requestMappings ?? []) : [];
  const keep = (c: Container, name: string): boolean => {
    const isClaimed = mappings.some((m) => m.resourceName === name && m.containerName === c.name);
    if (isClaimed && isDraResource(name)) return false;
    return !isExtendedResource(name) || listed(name);
  };
  const filtered = (c: Container): Container => {
    const requests = c.resources?.requests;
    const dropped = Object.keys(requests ?? {}).filter((name) => !keep(c, name));
    if (requests === undefined || dropped.length === 0) return c;
    for (const name of dropped) drop(name);
    const kept: ResourceList = Object.fromEntries(Object.entries(requests).filter(([name]) => !dropped.includes(name)));
    return { ...c, resources: { ...c.resources, requests: kept } };
  };
  const { containers, initContainers } = pod.spec;
  return {
    ...pod,
    spec: { ...pod.spec, containers: containers.map(filtered), initContainers: initContainers?.map(filtered) },
  };
}
