import { aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, value } from "../../model/amount.ts";
import type { DeviceOptions } from "../../model/devices.ts";
import type { Pod } from "../../model/pod.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import {
  countNodes,
  type HintProvider,
  maskOf,
  type NumaMask,
  type NumaNodes,
  type ResourceHints,
  type TopologyHint,
} from "../topology/hint.ts";
import { allocateContainer, type GivenDevices, reusableDevices } from "./allocate.ts";
import { containerOptions, readAllocateResponse } from "./allocate-response.ts";
import type { DeviceCheckpoint } from "./checkpoint.ts";
import { type DeviceState, deviceState } from "./device-state.ts";
import { hasTopology, type Inventories, type Inventory, isKnown } from "./inventory.ts";
import { toEntries } from "./pod-devices.ts";
import type { PreferredAllocation, PreferredAllocationRequest } from "./preferred.ts";
import { limitsOf, uidOf } from "./wire.ts";

export interface DeviceManagerInput {
  readonly inventories: Inventories;
  /** The checkpoint; undefined: the kubelet has none, or could not read it. */
  readonly checkpoint: DeviceCheckpoint | undefined;
  readonly nodes: NumaNodes;
  /** True: every source of pods has been heard since the kubelet started. */
  readonly sourcesReady: boolean;
  /** The uids of pods that are not finished. An asked pod joins them, unless its devices are refused. */
  readonly activePods: ReadonlySet<string>;
  /**
   * Whether the container was running when the kubelet started, so that only the kubelet restarted. After a reboot no
   * container was running.
   */
  readonly runningAtStart: (podUid: string, container: string) => boolean;
  readonly prefer: PreferredAllocation;
  readonly behaviour: Behaviour;
  /** True: the gate DRAExtendedResource is on. */
  readonly claims?: boolean;
}

export interface DeviceManager extends HintProvider {
  readonly state: DeviceState;
  readonly inventories: Inventories;
  readonly given: readonly GivenDevices[];
  /** Questions to plugins without a known answer; natural order was used instead. */
  readonly unanswered: readonly PreferredAllocationRequest[];
  /** The uids of the pods purged so far. */
  readonly purged: readonly string[];
  /**
   * Releases devices of pods that are no longer active, except the asking one; nothing before sources are ready. The
   * kubelet does this only when it is asked for hints or devices. kubelet 1.36: UpdateAllocatedDevices.
   */
  purge(asking?: Pod): void;
  /** Returns the checkpoint that the kubelet writes after the allocation. */
  checkpoint(): DeviceCheckpoint;
}

/**
 * Creates a manager. INVARIANT: every pod that it is asked about has a uid. kubelet 1.36: devicemanager.ManagerImpl.
 */
export function deviceManager(input: DeviceManagerInput): DeviceManager {
  const { inventories, nodes, sourcesReady, behaviour } = input;
  const active = new Set(input.activePods);
  const state = deviceState(inventories, input.checkpoint);
  const reusable = reusableDevices();
  const given: GivenDevices[] = [];
  const unanswered: PreferredAllocationRequest[] = [];
  const prefer: PreferredAllocation = (question) => {
    const answer = input.prefer(question);
    if (answer === undefined) unanswered.push(question);
    return answer;
  };
  const purged: string[] = [];
  const purge = (asking?: Pod): void => {
    const uid = asking === undefined ? undefined : uidOf(asking);
    const gone = sourcesReady ? [...state.pods.keys()].filter((pod) => pod !== uid && !active.has(pod)) : [];
    if (gone.length === 0) return;
    state.removePods(gone);
    purged.push(...gone);
  };
  return {
    state,
    inventories,
    given,
    unanswered,
    purged,
    purge,
    containerHints: (pod, container) => {
      purge(pod);
      const held = (resource: string) => state.holding(uidOf(pod), container.name, resource)?.ids;
      const left = (resource: string) => reusable.of(uidOf(pod), resource);
      return hintsOf({ state, inventories, nodes, behaviour }, limitsOf(container), held, left);
    },
    podHints: (pod) => {
      purge(pod);
      const held = (resource: string) => state.podHolds(uidOf(pod), resource);
      return hintsOf({ state, inventories, nodes, behaviour }, aggregateContainers(pod, "limits"), held, () => NONE);
    },
    allocate: (pod, container, affinity) => {
      reusable.begin(uidOf(pod));
      active.add(uidOf(pod));
      const result = allocateContainer({ ...input, prefer, state, reusable, purge, given }, pod, container, affinity);
      if (result.ok) reusable.settle(pod, container, state);
      else active.delete(uidOf(pod));
      return result;
    },
    checkpoint: () => ({ entries: toEntries(state.pods), registered: registeredOf(inventories) }),
  };
}
const NONE: ReadonlySet<string> = new Set();

/** The healthy devices of every known resource. kubelet 1.36: writeCheckpoint. */
const registeredOf = (inventories: Inventories): ReadonlyMap<string, readonly string[]> =>
  new Map([...inventories].filter(([, i]) => isKnown(i)).map(([name, i]) => [name, [...i.healthy]]));

interface HintSources {
  readonly state: DeviceState;
  readonly inventories: Inventories;
  readonly nodes: NumaNodes;
  readonly behaviour: Behaviour;
}
/** kubelet 1.36: devicemanager GetTopologyHints, GetPodTopologyHints. */
function hintsOf(
  { state, inventories, nodes, behaviour }: HintSources,
  limits: ReadonlyMap<string, Amount>,
  held: (resource: string) => ReadonlySet<string> | undefined,
  left: (resource: string) => ReadonlySet<string>,
): ResourceHints {
  const hints = new Map<string, readonly TopologyHint[] | null>();
  for (const [resource, amount] of limits) {
    if (!state.isDeviceResource(resource)) continue;
    const inventory = inventories.get(resource);
    const ask = {
      request: value(amount),
      held: held(resource) ?? NONE,
      left: left(resource),
      inUse: state.inUse(resource),
    };
    // the devices' places are not reported, so alignment does not matter
    hints.set(
      resource,
      inventory === undefined || !hasTopology(inventory) ? null : resourceHints(inventory, { nodes, behaviour }, ask),
    );
  }
  return hints;
}

type HintNodes = Pick<HintSources, "nodes" | "behaviour">;
interface HintAsk {
  readonly request: number;
  readonly held: ReadonlySet<string>;
  readonly left: ReadonlySet<string>;
  readonly inUse: ReadonlySet<string>;
}
function resourceHints(inventory: Inventory, over: HintNodes, ask: HintAsk): readonly TopologyHint[] {
  const { request, held, left, inUse } = ask;
  // it keeps the devices that it holds, so the hints are the same
  if (held.size > 0) return held.size === request ? deviceHints(inventory, held, [], request, over) : [];
  const available = inventory.ids.filter((id) => inventory.healthy.has(id) && !inUse.has(id));
  if (new Set([...available, ...left]).size < request) return [];
  return deviceHints(inventory, available, left, request, over);
}

/** The number of devices that touch exactly these nodes. */
interface Group {
  readonly nodes: NumaMask;
  all: number;
  available: number;
  reusable: number;
}

/**
 * Every set of nodes that can supply `request` devices of a resource, from `available` and `reusable` ones; each set
 * must include all reusable ones. Only nodes with such devices are considered, or all in some versions, at most 2^n
 * sets of n nodes. Preferred are sets of the smallest size that all devices, including taken and unhealthy ones, could
 * supply. Order: size, then nodes ascending. A device that its plugin no longer lists has no place here; the kubelet
 * crashes on it. kubelet 1.36: generateDeviceTopologyHints.
 */
export function deviceHints(
  inventory: Inventory,
  available: Iterable<string>,
  reusable: Iterable<string>,
  request: number,
  { nodes, behaviour }: HintNodes,
): readonly TopologyHint[] {
  const { groups, anywhere } = groupsOf(inventory, available, reusable, nodes);
  const withDevices = groups.reduce((mask, g) => mask | g.nodes, 0);
  const isOverAll = withDevices === 0 || behaviour.deviceHintsOverAllNodes;
  const over = nodes.ids.map((_, i) => 1 << i).filter((bit) => isOverAll || (withDevices & bit) !== 0);
  let smallest = over.length;
  const found: NumaMask[] = [];
  forEachSubset(over, (mask) => {
    let inMask = 0;
    let matching = 0;
    let leavesReusable = anywhere;
    for (const g of groups) {
      if ((g.nodes & mask) === 0) leavesReusable ||= g.reusable > 0;
      else {
        inMask += g.all;
        matching += g.available + g.reusable;
      }
    }
    if (inMask >= request) smallest = Math.min(smallest, countNodes(mask));
    if (!leavesReusable && matching >= request) found.push(mask);
  });
  return found.map((mask) => ({ nodes: mask, preferred: countNodes(mask) === smallest }));
}

/** `anywhere`: a reusable device reports a topology without a known node, so no set includes it. */
function groupsOf(inventory: Inventory, available: Iterable<string>, reusable: Iterable<string>, nodes: NumaNodes) {
  const groups = new Map<NumaMask, Group>();
  let anywhere = false;
  const groupOf = (id: string): Group | undefined => {
    const mask = maskOf(nodes, inventory.devices.get(id)?.numaNodes ?? []);
    if (mask === 0) return undefined;
    let group = groups.get(mask);
    if (group === undefined) {
      group = { nodes: mask, all: 0, available: 0, reusable: 0 };
      groups.set(mask, group);
    }
    return group;
  };
  for (const id of inventory.ids) {
    const group = groupOf(id);
    if (group !== undefined) group.all++;
  }
  for (const id of available) {
    const group = groupOf(id);
    if (group !== undefined) group.available++;
  }
  for (const id of reusable) {
    const group = groupOf(id);
    if (group !== undefined) group.reusable++;
    else anywhere ||= inventory.devices.get(id)?.numaNodes !== undefined;
  }
  return { groups: [...groups.values()], anywhere };
}

/** Visits smaller sets first, and sets of one size by their lowest bits. kubelet 1.36: IterateBitMasks. */
function forEachSubset(bits: readonly number[], visit: (mask: NumaMask) => void): void {
  const extend = (mask: NumaMask, from: number, left: number): void => {
    if (left === 0) visit(mask);
    else for (let i = from; i <= bits.length - left; i++) extend(mask | (bits[i] as number), i + 1, left - 1);
  };
  for (let size = 1; size <= bits.length; size++) extend(0, 0, size);
}

/** The options that a container gets for its devices. */
interface ContainerDevices {
  /** The options; undefined: the container holds no device. */
  readonly options: DeviceOptions | undefined;
  /** Resources whose plugin has not answered yet; `options` lacks them. */
  readonly pending: readonly string[];
}
/** Merges the answers of the container's plugins. */
export function containerDevices({ state }: DeviceManager, podUid: string, container: string): ContainerDevices {
  const resources = [...(state.pods.get(podUid)?.get(container) ?? [])];
  const pending = resources.filter(([, { allocResp }]) => allocResp === null).map(([resource]) => resource);
  const responses = resources.flatMap(([resource, { allocResp }]) => {
    // answers that cannot be decoded were dropped when the checkpoint was read
    const response = allocResp === null ? undefined : readAllocateResponse(allocResp);
    return response?.ok ? [{ resource, response: response.value }] : [];
  });
  return { options: resources.length === 0 ? undefined : containerOptions(responses), pending };
}
