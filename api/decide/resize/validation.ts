import { aggregateContainers } from "../../model/aggregate.ts";
import { compare, isZero, ZERO } from "../../model/amount.ts";
import {
  type Container,
  isPodLevelResource,
  isSidecar,
  MIRROR_ANNOTATION,
  type Pod,
  type ResourceRequirements,
} from "../../model/pod.ts";
import { canonicalText, type Quantity } from "../../model/quantity.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { computeQosClass, qosClass } from "../resources/qos.ts";
import { whyNotAdmitted } from "./admission-plugins.ts";
import {
  because,
  type Infeasible,
  isOther,
  isResizable,
  type List,
  pairsOf,
  RESIZABLE,
  type ResizeNode,
  sameAmounts,
} from "./refusals.ts";
import type { Volume } from "./volumes.ts";

type Resources = ResourceRequirements | undefined;
type Refusal = Infeasible | null;

/**
 * Why the API server refuses a resize: its first error; null: it accepts. A spec in the cluster has already passed; a
 * manifest never goes there, but the same rules apply. `before`: the pod with the resources of its spec. kubernetes
 * 1.36: ValidatePodResize, and the admission plugins NodeDeclaredFeatureValidator (from 1.35 on) and
 * PodResizeValidator (from 1.36 on).
 */
export function whyInvalid(desired: Pod, before: Pod, node: ResizeNode): Refusal {
  const { config } = node;
  const { podLevelResizesFirst, resizesWithNodeClaims } = config.profile.behaviour;
  const podLevel = whyNotPodLevel(desired, before, config);
  const mayMount = gateOn(config, "InPlacePodVerticalScalingMemoryBackedVolumes");
  return (
    (podLevelResizesFirst ? podLevel : null) ??
    (before.metadata.annotations?.[MIRROR_ANNOTATION] === undefined
      ? null
      : because("static_pod", "static pods cannot be resized")) ??
    (before.spec.os?.name === "windows" ? because("platform", "windows pods cannot be resized") : null) ??
    (mayMount ? whyNoVolume(desired, before) : null) ??
    whyContradictory(desired, before, config) ??
    (computeQosClass(desired) === qosClass(before)
      ? null
      : because("qos_class", "Pod QOS Class may not change as a result of resizing")) ??
    (runsWithoutResize(before, config) ? because("gate", "Pod running on node without support for resize") : null) ??
    podLevel ??
    (resizesWithNodeClaims || (before.status?.nodeAllocatableResourceClaimStatuses ?? []).length === 0
      ? null
      : because("claims", "pods with node allocatable resource claims cannot be resized")) ??
    whyNotContainers(desired, before, config) ??
    (mayMount ? whyNotVolumes(desired, before) : null) ??
    whyNotAdmitted(desired, before, node)
  );
}

/**
 * Whether a running container shows that the kubelet does not support resizes. The API server looks for resources in
 * the container statuses, which a kubelet reports only while its gate is on; a handwritten status without them says
 * nothing if the gate is on. kubernetes 1.36: isPodResizeRequestSupported.
 */
function runsWithoutResize({ status }: Pod, config: EffectiveConfiguration): boolean {
  if (gateOn(config, "InPlacePodVerticalScaling")) return false;
  const running = status?.containerStatuses?.find(({ state }) => state?.running !== undefined);
  return running !== undefined && running.resources === undefined;
}

/** Requests above limits, and containers that are more than their pod. kubernetes 1.36: validateResourceRequirements, validatePodResourceConsistency. */
function whyContradictory(desired: Pod, before: Pod, config: EffectiveConfiguration): Refusal {
  const { containers, initContainers = [], resources } = desired.spec;
  const mayRestart = !config.profile.behaviour.refusesRestartingInits || initRestarts(before);
  for (const c of [...containers, ...initContainers]) {
    const above = requestAboveLimit(c.resources);
    if (above !== null) return above;
    if (!mayRestart && initContainers.includes(c) && !isSidecar(c) && restarts(c))
      return because("init_container", "must not be set to 'RestartContainer' for non-sidecar initContainers");
  }
  if (resources === undefined || resources === null || !gateOn(config, "PodLevelResources")) return null;
  const other = Object.keys({ ...resources.limits, ...resources.requests }).some((name) => !isPodLevelResource(name));
  if (other) return because("other_resource", 'supported values: "cpu", "hugepages-", "memory"');
  const above = requestAboveLimit(resources);
  if (above !== null) return above;
  for (const [name, sum] of aggregateContainers(desired, "requests")) {
    const request = resources.requests?.[name];
    if (request === undefined || compare(sum, request.amount) <= 0) continue;
    const text = canonicalText(sum, name === "cpu" ? "DecimalSI" : "BinarySI");
    return because("bounds", `must be greater than or equal to aggregate container requests of ${text}`);
  }
  for (const { resources: own } of containers) {
    for (const [name, limit] of Object.entries(own?.limits ?? {})) {
      const most = resources.limits?.[name];
      if (most !== undefined && compare(limit.amount, most.amount) > 0)
        return because("bounds", `must be less than or equal to pod limits of ${canonical(most)}`);
    }
  }
  return null;
}
const canonical = ({ amount, format }: Quantity): string => canonicalText(amount, format);

function requestAboveLimit(resources: Resources): Refusal {
  for (const name of RESIZABLE) {
    const [request, limit] = [resources?.requests?.[name], resources?.limits?.[name]];
    if (request !== undefined && limit !== undefined && compare(request.amount, limit.amount) > 0)
      return because("bounds", `must be less than or equal to ${name} limit of ${canonical(limit)}`);
  }
  return null;
}

/** kubernetes 1.36: validatePodLevelResourcesResize. */
function whyNotPodLevel(desired: Pod, before: Pod, config: EffectiveConfiguration): Refusal {
  if (!isPodLevelResourcesSet(before) && !isPodLevelResourcesSet(desired)) return null;
  if (!gateOn(config, "InPlacePodLevelResourcesVerticalScaling"))
    return because("pod_level", config.profile.words.podLevelNotResized);
  const [now, then] = [before.spec.resources, desired.spec.resources];
  if (isTaken(now?.requests, then?.requests))
    return because("removed", "pod-level resource requests cannot be removed");
  if (isTaken(now?.limits, then?.limits)) return because("removed", "pod-level resource limits cannot be removed");
  return isOther(now, then)
    ? because("other_resource", "only cpu and memory resources are mutable at pod-level")
    : null;
}

function whyNotContainers(desired: Pod, before: Pod, config: EffectiveConfiguration): Refusal {
  const { addsToNone, resizesWithClaims } = config.profile.behaviour;
  const pairs = pairsOf(desired, before);
  // older API servers take a container's claims for a change
  const isFixed = ([now, then]: (typeof pairs)[number]): boolean =>
    otherPolicies(now, then) || (!resizesWithClaims && (now.resources?.claims ?? []).length > 0);
  for (const [now, then] of pairs) {
    if (!isResizable(then, desired, config)) continue;
    if (isTaken(now.resources?.requests, then.resources?.requests))
      return because("removed", "resource requests cannot be removed");
    if (isTaken(now.resources?.limits, then.resources?.limits))
      return because("removed", "resource limits cannot be removed");
  }
  const isMain = ([, then]: (typeof pairs)[number]): boolean => desired.spec.containers.includes(then);
  if (pairs.filter(isMain).some((pair) => isFixed(pair) || isOther(pair[0].resources, pair[1].resources, addsToNone)))
    return because("other_resource", "only cpu and memory resources are mutable");
  for (const pair of pairs.filter((one) => !isMain(one))) {
    const [now, then] = pair;
    const isOpen = isResizable(then, desired, config);
    if (isOpen && isFixed(pair)) return because("other_resource", config.profile.words.initNotResized);
    const why = whyNotInit(now, then, isOpen, config);
    if (why !== null) return why;
  }
  return null;
}
const restarts = ({ resizePolicy = [] }: Container): boolean =>
  resizePolicy.some(({ restartPolicy }) => restartPolicy === "RestartContainer");
/** A pod that has it already keeps it. */
const initRestarts = ({ spec }: Pod): boolean => (spec.initContainers ?? []).some((c) => !isSidecar(c) && restarts(c));

/** The subresource carries a patch's policies on to the check that finds them different. */
const otherPolicies = ({ resizePolicy: now = [] }: Container, { resizePolicy: then = [] }: Container): boolean =>
  now.length !== then.length ||
  now.some((one, i) => one.resourceName !== then[i]?.resourceName || one.restartPolicy !== then[i]?.restartPolicy);

function whyNotInit(now: Container, then: Container, resizable: boolean, config: EffectiveConfiguration): Refusal {
  const other = isOther(now.resources, then.resources) || otherPolicies(now, then);
  if (!other && sameAmounts(now.resources, then.resources)) return null;
  if (!resizable) return because("init_container", "resources for non-sidecar init containers are immutable");
  if (other && isOther(now.resources, then.resources, config.profile.behaviour.addsToNone))
    return because("other_resource", config.profile.words.initNotResized);
  return restarts(then) && !isSidecar(then)
    ? because(
        "init_container",
        "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
      )
    : null;
}

/** Volumes without a source, or with two. kubernetes 1.36: validateVolumeSource. */
function whyNoVolume({ spec: { volumes = [] } }: Pod, { spec: { volumes: before = [] } }: Pod): Refusal {
  for (const volume of volumes) {
    const was = before.find(({ name }) => name === volume.name);
    const isGiven = volume.emptyDir !== undefined;
    if (was === undefined && !isGiven) return because("volumes", "must specify a volume type");
    if (was !== undefined && isGiven !== (was.emptyDir !== undefined))
      return because("volumes", "may not specify more than 1 volume type");
  }
  return null;
}

/** kubernetes 1.37: ValidatePodResize, part 5. */
function whyNotVolumes({ spec: { volumes = [] } }: Pod, { spec: { volumes: before = [] } }: Pod): Refusal {
  if (volumes.length !== before.length) return because("volumes", "volumes may not be added or removed on resize");
  for (const [i, volume] of volumes.entries()) {
    const was = before[i] as Volume;
    // a patch that names a medium changes it
    if (volume.emptyDir?.medium !== was.emptyDir?.medium)
      return because("volumes", "only sizeLimit of memory-backed emptyDir volumes is mutable on resize");
    const [now, then] = [was.emptyDir?.sizeLimit?.amount ?? ZERO, volume.emptyDir?.sizeLimit?.amount ?? ZERO];
    if (isZero(now) !== isZero(then))
      return because("volumes", "adding or removing sizeLimit on an existing volume is not allowed");
    if (compare(now, then) !== 0 && volume.emptyDir?.medium !== "Memory")
      return because("volumes", "sizeLimit is only mutable for memory-backed emptyDir volumes");
  }
  return null;
}

const isTaken = (now: List, then: List): boolean => Object.keys(now ?? {}).some((name) => then?.[name] === undefined);
