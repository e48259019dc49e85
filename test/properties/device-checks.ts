import { expect } from "vitest";
import { filterByAffinity, SOURCES } from "../../api/decide/devices/assign.ts";
import {
  deviceCapacity,
  type Inventory,
  sanitizeNodeAllocatable,
  sharedDevices,
} from "../../api/decide/devices/inventory.ts";
import type { DeviceManager } from "../../api/decide/devices/manager.ts";
import { numaNodes, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { value } from "../../api/model/amount.ts";
import { type Container, isSidecar, type Pod } from "../../api/model/pod.ts";
import type { Met } from "./draws.ts";
import { checkpointOf, type DeviceWorld, inventoriesNow, managerNow, RESOURCES } from "./random-devices.ts";

export const must = (holds: boolean, message: () => string): void => {
  if (!holds) expect.fail(message());
};
export const containersOf = (pod: Pod): readonly Container[] => [
  ...(pod.spec.initContainers ?? []),
  ...pod.spec.containers,
];
export const limitOf = (c: Container, resource: string): number => {
  const amount = c.resources?.limits?.[resource]?.amount;
  return amount === undefined ? 0 : value(amount);
};

/** Computed from the definition: the devices that earlier init containers of the pod can pass on. */
function leftFor(manager: DeviceManager, pod: Pod, container: Container, resource: string): readonly string[] {
  let left: readonly string[] = [];
  for (const c of containersOf(pod)) {
    if (c.name === container.name) return left;
    const ids = [...(manager.state.holding(pod.metadata.uid as string, c.name, resource)?.ids ?? [])];
    const leaves = pod.spec.initContainers?.some((i) => i.name === c.name && !isSidecar(i));
    left = leaves ? [...new Set([...left, ...ids])] : left.filter((id) => !ids.includes(id));
  }
  return left;
}

export interface Before {
  /** The container's devices before its allocation. */
  readonly holds: readonly string[];
  readonly free: ReadonlyMap<string, readonly string[]>;
  readonly left: ReadonlyMap<string, readonly string[]>;
  readonly given: number;
}
export function look(manager: DeviceManager, pod: Pod, container: Container): Before {
  const free = (i: Inventory) => [...i.healthy].filter((id) => !manager.state.inUse(i.resource).has(id));
  return {
    holds: [
      ...(manager.state.pods
        .get(pod.metadata.uid as string)
        ?.get(container.name)
        ?.keys() ?? []),
    ],
    free: new Map([...manager.inventories.values()].map((i) => [i.resource, free(i)])),
    left: new Map(RESOURCES.map((r) => [r, leftFor(manager, pod, container, r)])),
    given: manager.given.length,
  };
}

/**
 * Checks that new devices are healthy, that all reusable devices come before new ones and aligned ones before others,
 * and that the number is right.
 */
export function checkGiven(
  manager: DeviceManager,
  container: Container,
  affinity: TopologyHint,
  before: Before,
  met: Met,
): void {
  for (const { resource, taken } of manager.given.slice(before.given)) {
    const free = before.free.get(resource) ?? [];
    const left = before.left.get(resource) ?? [];
    const of = (...from: string[]) => taken.filter((t) => from.includes(t.from)).flatMap((t) => t.ids);
    const fresh = of("preferred", "aligned", "unaligned", "no-affinity");
    const ids = [...of("reused"), ...fresh];
    must(
      new Set(ids).size === ids.length && ids.length === limitOf(container, resource),
      () => `count of ${resource}: ${ids}`,
    );
    must(
      fresh.every((id) => free.includes(id)),
      () => `not healthy and free: ${fresh}`,
    );
    must(
      of("reused").every((id) => left.includes(id)),
      () => `not left: ${of("reused")}`,
    );
    must(fresh.length === 0 || left.every((id) => ids.includes(id)), () => `new before left ${left}`);
    const inventory = manager.inventories.get(resource) as Inventory;
    const lists = filterByAffinity(inventory, free, affinity.nodes, numaNodes([0, 2, 3]));
    const strays = fresh.filter((id) => !lists.aligned.includes(id));
    must(strays.length === 0 || lists.aligned.every((id) => ids.includes(id)), () => `stray before aligned: ${strays}`);
    for (const source of SOURCES) met.note(`given ${source}`, of(source).length > 0);
    met.note(
      "given preferred in spite of affinity",
      strays.some((id) => of("preferred").includes(id)),
    );
  }
}

/**
 * Whether the container's earlier allocation was released: by name, the refused resource follows one that the container
 * requested and did not hold.
 */
export function tookBack(message: string, container: Container, { holds, free }: Before): boolean {
  const refused = RESOURCES.findIndex((r) => message.includes(r));
  return RESOURCES.slice(0, refused).some((r) => limitOf(container, r) > 0 && free.has(r) && !holds.includes(r));
}

/** Checks that with the affinity of a hint, every new device comes from the hinted nodes. */
export function checkHinted(
  manager: DeviceManager,
  container: Container,
  hint: TopologyHint | undefined,
  before: Before,
  met: Met,
): void {
  if (hint === undefined) return;
  for (const { resource, taken } of manager.given.slice(before.given)) {
    const placed = [...(manager.inventories.get(resource)?.devices.values() ?? [])].some(
      (x) => (x.numaNodes?.length ?? 0) > 0,
    );
    if (!placed) continue;
    met.note("near its own hint");
    must(
      taken.every((t) => t.from !== "unaligned" && t.from !== "no-affinity"),
      () => `${container.name} was hinted ${hint.nodes} and got ${JSON.stringify(taken)} of ${resource}`,
    );
  }
}

export function noteKept(
  world: DeviceWorld,
  pod: Pod,
  container: Container,
  manager: DeviceManager,
  before: Before,
  met: Met,
): void {
  const uid = pod.metadata.uid as string;
  const asks = RESOURCES.some((r) => limitOf(container, r) > 0);
  const passed =
    asks && manager.given.length === before.given && manager.state.pods.get(uid)?.has(container.name) === true;
  const sick = RESOURCES.some((r) =>
    [...(manager.state.holding(uid, container.name, r)?.ids ?? [])].some(
      (id) => !manager.inventories.get(r)?.healthy.has(id),
    ),
  );
  met.note("kept what it holds", passed && world.sourcesReady);
  met.note("kept sick or unregistered devices over a restart", passed && sick && !world.sourcesReady);
}

/** Checks that no device is held by two containers that run at the same time. */
export function checkOwners(world: DeviceWorld, met: Met): void {
  const manager = managerNow(world);
  must(sharedDevices(checkpointOf(world).entries).length === 0, () => "two pods hold one device");
  for (const [uid, pod] of world.pods) {
    for (const resource of RESOURCES) {
      const together = containersOf(pod).filter((c) => isSidecar(c) || pod.spec.containers.includes(c));
      const ids = together.flatMap((c) => [...(manager.state.holding(uid, c.name, resource)?.ids ?? [])]);
      must(new Set(ids).size === ids.length, () => `${uid} uses ${resource} twice: ${ids}`);
    }
  }
  met.note("several pods hold devices", manager.state.pods.size > 2);
}

export function checkCapacity(world: DeviceWorld, met: Met): void {
  const inventories = inventoriesNow(world);
  const { capacity, allocatable, removed } = deviceCapacity(inventories);
  for (const [resource, count] of capacity) must((allocatable.get(resource) ?? -1) <= count, () => resource);
  for (const { state } of inventories.values()) met.note(`a plugin is ${state}`);
  const allocated = managerNow(world).state.allocated();
  const raised = sanitizeNodeAllocatable(allocatable, allocated);
  for (const [resource, n] of allocated)
    must((raised.allocatable.get(resource) ?? 0) >= n, () => `${resource} below ${n}`);
  met.note("allocatable raised", raised.raised.length > 0);
  met.note("a removed resource", removed.length > 0);
}
