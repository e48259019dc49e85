import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, compare, exactMilliValue, exactValue, fromNanos, isZero } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, containersOf, type Pod, type ResourceRequirements } from "../../model/pod.ts";
import { withStoredDefaults } from "../../model/pod-defaults.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { ContainerPolicy, ResizeAsk, ResizeChange } from "../../model/resize.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { pairsOf, RESIZABLE } from "./refusals.ts";
import { changedVolumes, mergedVolumes } from "./volumes.ts";

type Resources = Container["resources"];
const withContainers = (pod: Pod, each: (c: Container) => Container): Pod => {
  const { containers, initContainers } = pod.spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(each) };
  return { ...pod, spec: { ...pod.spec, ...init, containers: containers.map(each) } };
};

/**
 * The pod with the resources that the ask wants, as the API server would store it. A recommendation may include
 * containers that the pod no longer has. Errors: an unknown container, or several if none is named; the field and why.
 */
export function desiredPod(
  pod: Pod,
  ask: ResizeAsk,
  config: EffectiveConfiguration,
): Result<Pod, { readonly at: string; readonly message: string }> {
  const stored = (wanted: Pod) => ok(withStoredDefaults(wanted, gateOn(config, "PodLevelResourcesFixDefaulting")));
  const names = containersOf(pod).map(({ name }) => name);
  const fault = (at: string, name: string) =>
    err({ at, message: `the pod has no container \`${name}\`, only ${names.join(", ")}` });
  if (ask.to !== undefined) {
    const [only, ...others] = pod.spec.containers;
    const name = ask.container ?? (others.length === 0 ? only?.name : undefined);
    if (name === undefined)
      return err({ at: "container", message: `which container is it? name one of ${names.join(", ")}` });
    if (!names.includes(name)) return fault("container", name);
    return stored(withTargets(pod, new Map([[name, ask.to]]), () => undefined));
  }
  if (ask.recommendation !== undefined) {
    const targets = new Map(
      ask.recommendation.containerRecommendations.map(({ containerName, target }) => [containerName, target]),
    );
    if (targets.size === 0) return ok(pod);
    const policies = ask.resourcePolicy?.containerPolicies ?? [];
    if (names.some((name) => targets.has(name)))
      return stored(withTargets(pod, targets, (name) => policyOf(name, policies)));
    const targetNames = [...targets.keys()].join(", ");
    return err({
      at: "recommendation",
      message: `it is for none of the pod's containers ${names.join(", ")}: ${targetNames}`,
    });
  }
  if (ask.spec === undefined) return ok(pod);
  const { resources, containers = [], initContainers = [], volumes } = ask.spec;
  const patches = new Map([...initContainers, ...containers].map((patch) => [patch.name, patch]));
  const missing = [...patches.keys()].find((name) => !names.includes(name));
  if (missing !== undefined) return fault("spec", missing);
  const patched = withContainers(pod, (c) => {
    const { resources: patch, resizePolicy = c.resizePolicy } = patches.get(c.name) ?? {};
    return { ...c, resources: merged(c.resources, patch), ...(resizePolicy && { resizePolicy }) };
  });
  // without its gate the API server silently ignores pod-level resources; likewise volumes
  const isResized = resources !== undefined && gateOn(config, "InPlacePodLevelResourcesVerticalScaling");
  const ofPod = isResized ? { resources: merged(pod.spec.resources, resources) } : {};
  const isMounted = volumes !== undefined && gateOn(config, "InPlacePodVerticalScalingMemoryBackedVolumes");
  const ofVolumes = isMounted ? { volumes: mergedVolumes(pod.spec.volumes ?? [], volumes) } : {};
  return stored({ ...patched, spec: { ...patched.spec, ...ofPod, ...ofVolumes } });
}

/** The pod as a patch finds it: older API servers fill in what it lacks whenever they read it. */
export const patchedPod = (pod: Pod, config: EffectiveConfiguration): Pod =>
  gateOn(config, "PodLevelResourcesFixDefaulting") ? pod : withStoredDefaults(pod, false);

/** A strategic merge: amounts that a patch does not name stay. */
function merged(before: Resources, patch: ResourceRequirements | undefined): Resources {
  if (patch === undefined) return before;
  const requests = { ...before?.requests, ...patch.requests };
  const limits = { ...before?.limits, ...patch.limits };
  return {
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

/** The policy of a container, else the default one. autoscaler 1.6: GetContainerResourcePolicy. */
const policyOf = (name: string, policies: readonly ContainerPolicy[]): ContainerPolicy | undefined =>
  policies.find(({ containerName }) => containerName === name) ??
  policies.find(({ containerName }) => containerName === "*");

/**
 * The containers with new CPU and memory requests. A limit keeps its ratio to the request, as in the
 * VerticalPodAutoscaler by default (controlledValues RequestsAndLimits); under RequestsOnly it stays and caps the
 * request. autoscaler 1.6: GetProportionalLimit, capRecommendationToContainerLimit.
 */
function withTargets(
  pod: Pod,
  targets: ReadonlyMap<string, ResourceList>,
  policy: (name: string) => ContainerPolicy | undefined,
): Pod {
  return withContainers(pod, (c) => {
    const target = targets.get(c.name);
    const { mode, controlledValues } = policy(c.name) ?? {};
    if (target === undefined || mode === "Off") return c;
    const requests: Record<string, Quantity> = { ...c.resources?.requests };
    const limits: Record<string, Quantity> = { ...c.resources?.limits };
    for (const resource of RESIZABLE) {
      const [to, limit] = [target[resource], limits[resource]];
      if (to === undefined) continue;
      const isCapped = controlledValues === "RequestsOnly";
      if (limit !== undefined && !isCapped) limits[resource] = proportional(resource, limit, requests[resource], to);
      requests[resource] = isCapped && limit !== undefined && compare(to.amount, limit.amount) > 0 ? limit : to;
    }
    return { ...c, resources: { requests, ...(Object.keys(limits).length > 0 && { limits }) } };
  });
}

/** A limit of 0 is none; with a request of 0, before or after, there is no ratio to keep, and the limit only makes room for the request. */
function proportional(resource: string, limit: Quantity, request: Quantity | undefined, to: Quantity): Quantity {
  if (isZero(limit.amount) || isZero(to.amount)) return limit;
  if (request !== undefined && isZero(request.amount)) return compare(to.amount, limit.amount) > 0 ? to : limit;
  const units = resource === "cpu" ? exactMilliValue : exactValue;
  const [of, per] = [units(limit.amount), units(request?.amount ?? limit.amount)];
  if (of === per) return to;
  const scaled = (of * units(to.amount)) / per;
  const amount: Amount = fromNanos(scaled * (resource === "cpu" ? 1_000_000n : 1_000_000_000n));
  return quantityOf(amount, limit.format);
}

/** The amounts in which two forms of a pod differ: of the pod as a whole first, then of its containers and its volumes. */
export function changesOf(desired: Pod, allocated: Pod): readonly ResizeChange[] {
  const whole = [null, allocated.spec.resources, desired.spec.resources] as const;
  const each = pairsOf(desired, allocated).map(([now, then]) => [then.name, now.resources, then.resources] as const);
  const ofVolumes = changedVolumes(desired, allocated).map(({ name, from, to }) => ({
    ...{ container: null, list: "sizeLimit" as const, resource: name },
    ...{ from: from.text, to: to.text },
  }));
  const ofResources = [whole, ...each].flatMap(([container, now, then]) =>
    (["requests", "limits"] as const).flatMap((list) =>
      RESIZABLE.flatMap((resource) => {
        const [from, to] = [now?.[list]?.[resource], then?.[list]?.[resource]];
        if (from?.amount === to?.amount) return [];
        return [{ container, list, resource, from: from?.text ?? null, to: to?.text ?? null }];
      }),
    ),
  );
  return [...ofResources, ...ofVolumes];
}
