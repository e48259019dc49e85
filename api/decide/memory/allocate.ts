import { type Container, type Pod, podUid } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import type { AllocateError, TopologyHint } from "../topology/hint.ts";
import { idsOf } from "../topology/numa-nodes.ts";
import type { Ground } from "./hints.ts";
import { take } from "./machine-memory.ts";
import { placeMemory } from "./placing.ts";
import { containerRequests, NOT_INT64 } from "./requests.ts";
import { type ReusableMemory, shrinkInitBlocks } from "./reuse.ts";
import { setBlocks, type WorkingState } from "./working-state.ts";

/** What the Static policy works with. */
export interface Desk {
  readonly ground: Ground;
  /** Its `machineState` is the ground's machine. */
  readonly state: WorkingState;
  readonly reusable: ReusableMemory;
  /** The gate PodLevelResourceManagers is on (PodLevelResources with it, or the kubelet would not start). */
  readonly podLevel: boolean;
}

/** Whether the policy has anything to do with a pod: Guaranteed, and with pod-level resources only under the gate. */
export const isManaged = (pod: Pod, podLevel: boolean): boolean =>
  qosClass(pod) === "Guaranteed" && (podLevel || !isPodLevelResourcesSet(pod));

/**
 * Gives a container its memory. The kubelet's state lists the kinds of memory of a container in the order of a Go map; here
 * they stand in the order of their names. kubelet 1.36: staticPolicy.Allocate.
 */
export function allocateContainer(
  desk: Desk,
  pod: Pod,
  container: Container,
  affinity: TopologyHint,
): Result<void, AllocateError> {
  const { ground, state, reusable, podLevel } = desk;
  if (!isManaged(pod, podLevel)) return ok(undefined);
  const uid = podUid(pod) as string;
  const held = state.entries.get(uid)?.get(container.name);
  if (held !== undefined) {
    reusable.settle(pod, container, held);
    return ok(undefined);
  }
  const asked = containerRequests(pod, container, podLevel);
  if (asked === undefined) return err({ message: NOT_INT64 });
  const placed = placeMemory(ground, asked, affinity, (set, type) => reusable.of(pod, set, type));
  if (!placed.ok) return err({ message: placed.error });
  const numaAffinity = idsOf(ground.numa, placed.value);
  const blocks = [...asked].map(([type, size]) => ({ numaAffinity, type, size }));
  for (const { type, size } of blocks) {
    take(state.machineState, numaAffinity, type, Math.max(0, size - reusable.of(pod, placed.value, type)));
  }
  reusable.settle(pod, container, blocks);
  setBlocks(state, uid, container.name, blocks);
  shrinkInitBlocks(state, ground.numa, pod, container, blocks);
  return ok(undefined);
}
