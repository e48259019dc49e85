import { ok, type Result } from "../../base/result.ts";
import { value } from "../../model/amount.ts";
import { type Container, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import type { AllocateError, NumaNodes, TopologyHint } from "../topology/hint.ts";
import { devicesToAllocate, type TakenDevices } from "./assign.ts";
import type { DeviceState } from "./device-state.ts";
import type { Inventories, Inventory } from "./inventory.ts";
import { holdingOf, perNumaOf } from "./pod-devices.ts";
import type { PreferredAllocation } from "./preferred.ts";
import { limitsOf, uidOf } from "./wire.ts";

const NONE: ReadonlySet<string> = new Set();

/** The devices that the current pod's init containers leave to later containers. kubelet 1.36: PodReusableDevices. */
interface Reusable {
  /** The reusable devices; empty for any pod but the current one. */
  of(podUid: string, resource: string): ReadonlySet<string>;
  /** Starts a pod, before any of its containers is handled. */
  begin(podUid: string): void;
  /**
   * Called for each container that got its devices: an init container's devices are reused by later containers; any
   * other container (a sidecar too) removes its devices from the reusable ones. What is left after the last container
   * stays with the pod. kubelet 1.36: Allocate.
   */
  settle(pod: Pod, container: Container, state: DeviceState): void;
}

export function reusableDevices(): Reusable {
  let inHand: string | undefined;
  let left = new Map<string, ReadonlySet<string>>();
  return {
    of: (podUid, resource) => (podUid === inHand ? left.get(resource) : undefined) ?? NONE,
    begin: (podUid) => {
      if (podUid !== inHand) left = new Map();
      inHand = podUid;
    },
    settle: (pod, container, state) => {
      const init = pod.spec.initContainers?.find((c) => c.name === container.name);
      const leaves = init !== undefined && !isSidecar(init);
      for (const [resource, { ids }] of state.pods.get(podUid(pod) as string)?.get(container.name) ?? []) {
        const before = [...(left.get(resource) ?? NONE)];
        left.set(resource, new Set(leaves ? [...before, ...ids] : before.filter((id) => !ids.has(id))));
      }
    },
  };
}

/** Devices assigned to a container in this decision; their plugin must still be asked with Allocate. */
export interface GivenDevices {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly taken: readonly TakenDevices[];
}
interface AllocationContext {
  readonly inventories: Inventories;
  readonly nodes: NumaNodes;
  readonly sourcesReady: boolean;
  readonly runningAtStart: (podUid: string, container: string) => boolean;
  readonly prefer: PreferredAllocation;
  readonly state: DeviceState;
  readonly reusable: Reusable;
  readonly given: GivenDevices[];
  readonly purge: (asking: Pod) => void;
  readonly behaviour: Behaviour;
  readonly claims?: boolean;
}
/** Whether a claim gives the container this resource. kubelet 1.36: isDRAExtendedResource. */
const isClaimed = (pod: Pod, container: Container, resource: string): boolean =>
  pod.status?.extendedResourceClaimStatus?.requestMappings?.some(
    (mapped) => mapped.containerName === container.name && mapped.resourceName === resource,
  ) === true;

/**
 * Allocates all resources of a container, sorted by name, where the kubelet follows a Go map. After an error the
 * kubelet keeps the earlier resources until it purges the refused pod, which, with sources ready, happens before the
 * next allocation: here they are released at once. kubelet 1.36: allocateContainerResources.
 */
export function allocateContainer(
  m: AllocationContext,
  pod: Pod,
  container: Container,
  affinity: TopologyHint,
): Result<void, AllocateError> {
  const uid = uidOf(pod);
  const running = !m.sourcesReady && m.runningAtStart(uid, container.name);
  const before = m.given.length;
  let purged = false;
  const leavesClaimed = m.claims === true && m.behaviour.claimedDevicesLeft;
  for (const [resource, amount] of limitsOf(container)) {
    if (leavesClaimed && isClaimed(pod, container, resource)) continue;
    if (!m.state.isDeviceResource(resource)) continue;
    if (!purged) m.purge(pod);
    purged = true;
    const inventory = m.inventories.get(resource);
    const request = {
      podUid: uid,
      container: container.name,
      resource,
      required: value(amount),
      held: m.state.holding(uid, container.name, resource)?.ids,
      reusable: m.reusable.of(uid, resource),
      inUse: m.state.inUse(resource),
      running,
      affinity: affinity.nodes,
    };
    const assigned = devicesToAllocate(request, inventory, m.nodes, m.prefer);
    if (!assigned.ok) {
      const back = m.given.splice(before).map((g) => g.resource);
      if (back.length > 0) m.state.release(uid, container.name, back);
      return assigned;
    }
    if (assigned.value.kind !== "given") continue;
    const { taken } = assigned.value;
    const ids = taken.flatMap((t) => t.ids);
    m.state.give(uid, container.name, resource, holdingOf(perNumaOf(inventory as Inventory, ids), null));
    m.given.push({ podUid: uid, container: container.name, resource, taken });
  }
  return ok(undefined);
}
