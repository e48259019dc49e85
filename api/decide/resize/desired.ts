import { type Amount, exactMilliValue, exactValue, fromNanos } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, containersOf, type Pod, type ResourceRequirements } from "../../model/pod.ts";
import { withStoredDefaults } from "../../model/pod-defaults.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { ResizeAsk, ResizeChange } from "../../model/resize.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { pairsOf, RESIZABLE } from "./refusals.ts";
import { changedVolumes, mergedVolumes } from "./volumes.ts";

type Resources = Container["resources"];
const withResources = (pod: Pod, of: (c: Container) => Resources): Pod => {
  const each = (c: Container): Container => ({ ...c, resources: of(c) });
  const { containers, initContainers } = pod.spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(each) };
  return { ...pod, spec: { ...pod.spec, ...init, containers: containers.map(each) } };
};

/**
 * The pod as the ask wants it, and as the API server stores that. A recommendation may speak of other containers as well, which its
 * owner has had. Errors: a container that the pod does not have, or several where none is named; its field and why.
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
    return stored(withTargets(pod, new Map([[name, ask.to]])));
  }
  if (ask.recommendation !== undefined) {
    const targets = new Map(
      ask.recommendation.containerRecommendations.map(({ containerName, target }) => [containerName, target]),
    );
    if (names.some((name) => targets.has(name))) return stored(withTargets(pod, targets));
    const told = [...targets.keys()].join(", ") || "none";
    return err({
      at: "recommendation",
      message: `it is for none of the pod's containers ${names.join(", ")}: ${told}`,
    });
  }
  if (ask.spec === undefined) return ok(pod);
  const { resources, containers = [], initContainers = [], volumes } = ask.spec;
  const patches = new Map([...initContainers, ...containers].map((patch) => [patch.name, patch.resources]));
  const missing = [...patches.keys()].find((name) => !names.includes(name));
  if (missing !== undefined) return fault("spec", missing);
  const patched = withResources(pod, ({ name, resources: before }) => merged(before, patches.get(name)));
  // without its gate the API server leaves these as they are, and says nothing; the same with volumes
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

/**
 * Containers with new requests of CPU and memory. A limit keeps its ratio to its request, as the autoscaler of pods has it by
 * default (controlledValues RequestsAndLimits). autoscaler 1.6: GetProportionalLimit.
 */
function withTargets(pod: Pod, targets: ReadonlyMap<string, ResourceList>): Pod {
  return withResources(pod, ({ name, resources: before }) => {
    const target = targets.get(name);
    if (target === undefined) return before;
    const requests: Record<string, Quantity> = { ...before?.requests };
    const limits: Record<string, Quantity> = { ...before?.limits };
    for (const resource of RESIZABLE) {
      const to = target[resource];
      if (to === undefined) continue;
      const limit = limits[resource];
      if (limit !== undefined) limits[resource] = proportional(resource, limit, before?.requests?.[resource], to);
      requests[resource] = to;
    }
    return { requests, ...(Object.keys(limits).length > 0 && { limits }) };
  });
}

function proportional(resource: string, limit: Quantity, request: Quantity | undefined, to: Quantity): Quantity {
  const units = resource === "cpu" ? exactMilliValue : exactValue;
  const [of, per] = [units(limit.amount), units(request?.amount ?? limit.amount)];
  if (of === per || per === 0n) return to;
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
