import type { TestedResource } from "../../model/admission.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Preemption, Shortage } from "../../model/preemption.ts";
import { gateOn } from "../config.ts";
import { preemptFor } from "../preemption/handler.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { podRequests } from "../resources/pod-resources.ts";
import type { Admitting, Refused } from "./admitting.ts";
import { withoutMissingResources } from "./extended-resources.ts";
import { mismatches } from "./node-match.ts";
import { incompatibilities } from "./operating-system.ts";
import { nodeRoom, testResources } from "./resource-fit.ts";

/** What fails of the predicates, each part in the kubelet's order. */
export interface Failures {
  /** Found before anything else; nobody is ended for such a pod. */
  readonly incompatible: readonly Refused[];
  readonly resources: readonly TestedResource[];
  readonly short: readonly Shortage[];
  /** The node is not one for this pod. */
  readonly unmatched: readonly Refused[];
}
/** What the predicate handler found. */
export interface Predicates {
  /** In the kubelet's order. */
  readonly refusals: readonly Refused[];
  readonly resources: readonly TestedResource[];
  /** How room is made for a critical pod that lacks something, if nothing else refuses it. */
  readonly preemption: Preemption | null;
}

/**
 * Operating system, room, affinity, name, ports and taints. `devices`: how many of each resource containers hold, where
 * the pod holds some. kubelet 1.36: predicateAdmitHandler.
 */
export function findFailures(
  admitting: Admitting,
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

/** What the handler makes of the failures: room for a critical pod, else a refusal for each. */
export function checkPredicates({ pod, others }: Admitting, failures: Failures): Predicates {
  const { incompatible, resources, short, unmatched } = failures;
  if (!isCriticalPod(pod) || short.length === 0) {
    return { refusals: [...incompatible, ...short.map(outOf), ...unmatched], resources, preemption: null };
  }
  // a critical pod is never refused for want of resources as such
  const preemption = preemptFor(pod, others, short);
  const failed = preemption.error === null ? [] : [notRecovered(preemption.error)];
  return { refusals: [...incompatible, ...unmatched, ...failed], resources, preemption };
}

function testedResources(
  { pod, others, config, reasons }: Admitting,
  allocatable: ResourceList,
  devices: ReadonlyMap<string, number>,
): readonly TestedResource[] {
  const room = nodeRoom(allocatable, others, gateOn(config, "InPlacePodLevelResourcesVerticalScaling"));
  for (const [resource, held] of devices) {
    const listed = room.allocatable.get(resource);
    if (listed === undefined || listed < held) room.allocatable.set(resource, held);
  }
  const kept = withoutMissingResources(
    pod,
    (resource) => room.allocatable.has(resource),
    gateOn(config, "DRAExtendedResource"),
    (resource) => reasons.add("extended_resource_not_counted", resource, "requested"),
  );
  const tested = testResources(podRequests(kept), room);
  for (const { resource, requested, used, capacity, insufficient } of tested) {
    const code = insufficient > 0 ? "resource_short" : "resource_fits";
    reasons.add(code, resource, "requested", { requested, used, capacity });
  }
  return tested;
}

/** kubelet 1.36: InsufficientResourceError. */
export const outOf = ({ resource, requested, used, capacity }: Shortage): Refused => ({
  reason: `OutOf${resource}`,
  message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
});
export const NOT_RECOVERED = "UnexpectedAdmissionError";
const notRecovered = (error: string): Refused => ({
  reason: NOT_RECOVERED,
  message: `Unexpected error while attempting to recover from admission failure: ${error}`,
});
