import { compare, fromUnits, milliValue, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import { type Container, containersOf, isSidecar, type Pod } from "../../model/pod.ts";
import { quantityOf } from "../../model/quantity.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { statusesByName } from "../pods/node-pods.ts";
import { isResizable, RESIZABLE, restartsFor } from "./refusals.ts";
import { changedVolumes } from "./volumes.ts";

type Resource = (typeof RESIZABLE)[number];
/** CPU in thousandths, memory in bytes; 0: none. */
interface Sizes {
  readonly cpu: { readonly request: number; readonly limit: number };
  readonly memory: { readonly request: number; readonly limit: number };
}

/** A container that restarts for a resize because of its resizePolicy. */
interface Restart {
  readonly container: string;
  readonly resources: readonly Resource[];
}
/** Values written to the pod's cgroup (`container` null) or given to the runtime for a container; or the new size of a volume. */
export interface Write {
  readonly container: string | null;
  readonly values: CgroupValues;
  readonly volume?: { readonly name: string; readonly sizeBytes: number };
}
/** The writes and restarts that bring a resize into force. */
export interface Actuation {
  readonly restarts: readonly Restart[];
  readonly writes: readonly Write[];
  /** Why the resize is not applied, in the kubelet's words; null: it is. */
  readonly error: string | null;
}

/** Known values of a pod's cgroups. */
interface PodValues {
  readonly before: CgroupValues;
  readonly after: CgroupValues;
}
interface Deps {
  readonly config: EffectiveConfiguration;
  readonly isRunning: (container: string) => boolean;
  /** The pod's own cgroup, as its allocated and its new resources make it. */
  readonly ofPod: PodValues;
  /** The values that the runtime gets for a container with these resources. */
  readonly valuesOf: (c: Container) => CgroupValues;
  /** Bytes in use by a container, or by the pod (null); undefined: the kubelet does not know. */
  readonly usageOf: (container: string | null) => number | undefined;
}

/** Memory values of a pod's cgroup: the limit, and the values that Memory QoS computes. */
const MEMORY = ["memory", "memoryMin", "memoryLow", "memoryHigh"] as const;

/** A container whose amounts change. */
interface Update {
  readonly container: Container;
  readonly moved: readonly Resource[];
  readonly now: Sizes;
  readonly then: Sizes;
}

/**
 * What the kubelet does to bring a pod from the resources in force to those that are allocated now, in its order: containers
 * that have to go stop first; then memory and CPU, each from the pod's cgroup to the containers where the pod grows, else the
 * other way round, and those that shrink first. Volumes in memory shrink before memory, and grow after it. kubelet 1.36:
 * computePodResizeAction, doPodResizeAction.
 */
export function actuationOf(inForce: Pod, desired: Pod, deps: Deps): Actuation {
  const { config, isRunning } = deps;
  const inits = initsInTurn(desired, config);
  const byPod = inits.areThrough && gateOn(config, "InPlacePodLevelResourcesVerticalScaling");
  const looked = [...inits.looked, ...(inits.areThrough ? desired.spec.containers : [])];
  const all = updatesOf(inForce, desired, looked, config);
  const running = all.filter(({ container }) => isRunning(container.name));
  const starts = config.profile.behaviour.resizesPodForStarting && running.length < all.length;
  const restarts = restartsOf(inForce, desired, deps);
  const stopped = new Set(restarts.map(({ container }) => container));
  const updates: Record<Resource, Update[]> = { memory: [], cpu: [] };
  for (const update of running) {
    if (stopped.has(update.container.name)) continue;
    for (const resource of update.moved) join(updates[resource], update, resource);
  }
  const ofPod = byPod && !sameSizes(podSizes(inForce), podSizes(desired));
  const ofContainers = restarts.length > 0 || starts;
  const isTouched = (resource: Resource): boolean => updates[resource].length > 0 || ofContainers || ofPod;
  const mayLimit = updates.memory.length > 0 || ofContainers;
  const error = mayLimit
    ? memoryInUse(limitsThatFall(updates.memory, deps.ofPod, containersOf(desired)), deps.usageOf)
    : null;
  if (error !== null) return { restarts, writes: [], error };
  const [memory, cpu] = (["memory", "cpu"] as const).map((resource) =>
    isTouched(resource) ? writesOf(resource, updates[resource], deps) : [],
  ) as [readonly Write[], readonly Write[]];
  const volumes = inits.areThrough ? changedVolumes(desired, inForce) : [];
  const shrink = volumes.filter(({ from, to }) => compare(to.amount, from.amount) < 0);
  const grow = volumes.filter((one) => !shrink.includes(one));
  const writes = [...shrink.map(mounted), ...memory, ...grow.map(mounted), ...cpu];
  return { restarts, writes, error: null };
}

const mounted = ({ name, to }: ReturnType<typeof changedVolumes>[number]): Write => ({
  ...{ container: null, values: {} },
  volume: { name, sizeBytes: value(to.amount) },
});

/** The updates in the order of `looked`. */
function updatesOf(
  inForce: Pod,
  desired: Pod,
  looked: readonly Container[],
  config: EffectiveConfiguration,
): readonly Update[] {
  const byPod = gateOn(config, "InPlacePodLevelResourcesVerticalScaling");
  const before = new Map(containersOf(inForce).map((c) => [c.name, c]));
  return looked.flatMap((container) => {
    const now = sizesOf(before.get(container.name), byPod ? inForce : null);
    const then = sizesOf(container, byPod ? desired : null);
    const moved = RESIZABLE.filter((r) => now[r].limit !== then[r].limit || now[r].request !== then[r].request);
    return moved.length === 0 ? [] : [{ container, moved, now, then }];
  });
}

/** The pod's sidecars, last first, as the kubelet iterates over them. */
const sidecarsOf = ({ spec }: Pod): readonly Container[] => (spec.initContainers ?? []).filter(isSidecar).reverse();

/**
 * The init containers that the kubelet resizes now, by the pod's status and in its order: sidecars unless their
 * startup probe has not succeeded, the running plain one, and the one that starts next. Nothing else of the pod is
 * resized until they are done. kubelet 1.37: computeInitContainerActions.
 */
function initsInTurn(
  pod: Pod,
  config: EffectiveConfiguration,
): { readonly looked: readonly Container[]; readonly areThrough: boolean } {
  const statuses = statusesByName(pod);
  const isMade = ({ name }: Container): boolean => {
    const { state, restartCount = 0 } = statuses.get(name) ?? {};
    return (state?.running ?? state?.terminated ?? null) !== null || restartCount > 0;
  };
  const awaitsStartup = (c: Container): boolean =>
    isSidecar(c) && (c.startupProbe ?? null) !== null && statuses.get(c.name)?.started === false;
  const { initContainers = [], containers } = pod.spec;
  const at = containers.some(isMade) ? -1 : initContainers.findLastIndex(isMade);
  const latest = initContainers[at];
  const state = latest && statuses.get(latest.name)?.state;
  const runs = (state?.running ?? null) !== null;
  const isThrough = (c: Container): boolean =>
    isSidecar(c) ? runs && !awaitsStartup(c) : state?.terminated?.exitCode === 0;
  if (latest === undefined || (at === initContainers.length - 1 && isThrough(latest)))
    return { looked: sidecarsOf(pod).filter((c) => !awaitsStartup(c)), areThrough: true };
  const isLooked = (c: Container, i: number): boolean =>
    i > at || (isSidecar(c) ? !awaitsStartup(c) : c === latest && runs && isResizable(c, pod, config));
  // the next one starts
  const looked = initContainers.slice(0, isThrough(latest) ? at + 2 : at + 1).filter(isLooked);
  return { looked: looked.reverse(), areThrough: false };
}

/** The running containers that have to start again before they have other resources. kubelet 1.36: determineContainerResize. */
export function restartsOf(
  inForce: Pod,
  desired: Pod,
  { config, isRunning }: Pick<Deps, "config" | "isRunning">,
): readonly Restart[] {
  const looked = [...sidecarsOf(desired), ...desired.spec.containers];
  return updatesOf(inForce, desired, looked, config).flatMap(({ container, moved }) => {
    const resources = moved.filter((resource) => restartsFor(container, resource));
    return resources.length > 0 && isRunning(container.name) ? [{ container: container.name, resources }] : [];
  });
}

/** Inserts an update: updates that shrink come before all others, the latest first. */
function join(list: Update[], update: Update, resource: Resource): void {
  const [now, then] = [update.now[resource], update.then[resource]];
  const [from, to] = now.limit === then.limit ? [now.request, then.request] : [now.limit, then.limit];
  if (to > from) list.push(update);
  else list.unshift(update);
}

/** `pod`: its limits count for a container without limits. kubelet 1.36: containerResourcesFromRequirements. */
function sizesOf(c: Container | undefined, pod: Pod | null): Sizes {
  const { requests, limits } = c?.resources ?? {};
  const ofPod = pod?.spec.resources?.limits;
  const limit = (name: Resource) => (limits?.[name] ?? ofPod?.[name])?.amount ?? ZERO;
  return {
    cpu: { request: milliValue(requests?.["cpu"]?.amount ?? ZERO), limit: milliValue(limit("cpu")) },
    memory: { request: value(requests?.["memory"]?.amount ?? ZERO), limit: value(limit("memory")) },
  };
}
const podSizes = (pod: Pod): Sizes => sizesOf({ name: "", resources: pod.spec.resources } as Container, null);
const sameSizes = (a: Sizes, b: Sizes): boolean =>
  RESIZABLE.every((name) => a[name].limit === b[name].limit && a[name].request === b[name].request);

/** The memory limit; without one, memory is infinite (a missing CPU limit is -1, as in the kernel). */
const memoryOf = ({ memory }: CgroupValues): number => memory ?? Number.POSITIVE_INFINITY;
const quotaOf = ({ cpuQuota }: CgroupValues): number => cpuQuota ?? -1;

function writesOf(resource: Resource, updates: readonly Update[], { ofPod, valuesOf }: Deps): readonly Write[] {
  const { before, after } = ofPod;
  const limit: Write = {
    container: null,
    values: resource === "memory" ? only(after, ...MEMORY) : only(after, "cpuQuota", "cpuPeriod"),
  };
  const shares: Write = { container: null, values: only(after, "cpuShares") };
  const containers = updates.map((update) => ({
    container: update.container.name,
    values: valuesOf(withSizes(update, resource)),
  }));
  if (resource === "memory") {
    const [from, to] = [memoryOf(before), after.memory ?? memoryOf(before)];
    return [...(to > from ? [limit] : []), ...containers, ...(to < from ? [limit] : [])];
  }
  const [from, to] = [quotaOf(before), after.cpuQuota ?? quotaOf(before)];
  const [fromShares, toShares] = [before.cpuShares ?? 0, after.cpuShares ?? 0];
  return [
    ...(to > from ? [limit] : []),
    ...(toShares > fromShares ? [shares] : []),
    ...containers,
    ...(toShares < fromShares ? [shares] : []),
    ...(to < from ? [limit] : []),
  ];
}
function only(values: CgroupValues, ...names: readonly (keyof CgroupValues)[]): CgroupValues {
  return Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])));
}

/**
 * The values of one write. Memory is written first, with the old CPU values; CPU follows, with the new memory values.
 * kubelet 1.36: updatePodContainerResources.
 */
function withSizes({ container, now, then }: Update, resource: Resource): Container {
  const cpu = resource === "cpu" ? then.cpu : now.cpu;
  const { memory } = then;
  const list = (milli: number, units: number) => ({
    cpu: quantityOf(milli, "DecimalSI"),
    memory: quantityOf(fromUnits(units), "BinarySI"),
  });
  return {
    ...container,
    resources: { requests: list(cpu.request, memory.request), limits: list(cpu.limit, memory.limit) },
  };
}

/** Memory limits that come down, in bytes: that of the pod under null. */
type FallingLimits = ReadonlyMap<string | null, number>;

/** `order`: of the containers. */
function limitsThatFall(
  updates: readonly Update[],
  { before, after }: PodValues,
  order: readonly Container[],
): FallingLimits {
  const falling = new Map<string | null, number>();
  if (after.memory !== undefined && after.memory < memoryOf(before)) falling.set(null, after.memory);
  for (const { name } of order) {
    const update = updates.find(({ container }) => container.name === name);
    const [from, to] = [update?.now.memory.limit ?? 0, update?.then.memory.limit ?? 0];
    if (to !== 0 && (from === 0 || to < from)) falling.set(name, to);
  }
  return falling;
}

/** The beginning of the kubelet's message that memory limits cannot decrease. */
export const MEMORY_IN_USE = "cannot decrease memory limits";
/**
 * Why memory limits cannot decrease, in the kubelet's words; null: they can. The message has the pod's usage even if a
 * container's is too high. kubelet 1.36: validateMemoryResizeAction.
 */
export function memoryInUse(
  falling: FallingLimits,
  usageOf: (container: string | null) => number | undefined,
): string | null {
  const errors = new Set<string>();
  for (const [name, limit] of falling) {
    const usage = usageOf(name);
    const of = name === null ? "pod" : `container "${name}"`;
    if (usage === undefined) errors.add(name === null ? "missing pod memory usage" : `missing ${of} memory usage`);
    else if (usage >= limit)
      errors.add(`attempting to set ${of} memory limit (${limit}) below current usage (${usageOf(null) ?? usage})`);
  }
  if (errors.size === 0) return null;
  const [first] = errors;
  return `${MEMORY_IN_USE}: ${errors.size === 1 ? first : `[${[...errors].join(", ")}]`}`;
}
