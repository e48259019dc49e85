import { isSidecar, type Pod, podUid } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { qosClass } from "../resources/qos.ts";
import type { AllocateError, TopologyHint } from "../topology/hint.ts";
import { idsOf } from "../topology/numa-nodes.ts";
import type { Desk } from "./allocate.ts";
import { take } from "./machine-memory.ts";
import { placeMemory } from "./placing.ts";
import { containerRequests, podRequests, type Requests, sharedPoolFault } from "./requests.ts";
import type { Block } from "./state.ts";
import { setBlocks } from "./working-state.ts";

/**
 * Gives a pod with pod-level resources its memory as a whole, and lists it by container: what a container asks for itself,
 * what is left for those that share it, and for an init container that shares all that the sidecars before it leave. Only
 * with pod scope and the gate PodLevelResourceManagers. A pod that has its memory is given it once more: the kubelet does not
 * look. kubelet 1.36: staticPolicy.AllocatePod.
 */
export function allocatePod(desk: Desk, pod: Pod, affinity: TopologyHint): Result<void, AllocateError> {
  const { ground, state } = desk;
  if (qosClass(pod) !== "Guaranteed") return ok(undefined);
  const whole = podRequests(pod, desk.podLevel);
  if (whole === undefined) return ok(undefined);
  const fault = sharedPoolFault(pod);
  if (fault !== undefined) return err({ reason: "EmptyPodSharedPoolError", message: fault });
  const placed = placeMemory(ground, whole, affinity, (set, type) => desk.reusable.of(pod, set, type));
  if (!placed.ok) return err({ message: placed.error });
  const uid = podUid(pod) as string;
  const numaAffinity = idsOf(ground.numa, placed.value);
  const blocksOf = (sizes: Requests): readonly Block[] =>
    [...sizes].filter(([, size]) => size > 0).map(([type, size]) => ({ numaAffinity, type, size }));
  state.podEntries.set(uid, blocksOf(whole));
  for (const [type, size] of whole) take(state.machineState, numaAffinity, type, size);
  for (const [name, sizes] of shares(pod, whole)) setBlocks(state, uid, name, blocksOf(sizes));
  return ok(undefined);
}

/** By container, init containers first. The API lets no container ask for more than its pod, so nothing falls below zero. */
function shares(pod: Pod, whole: Requests): ReadonlyMap<string, Requests> {
  const own = (name: string): Requests => asked.get(name) ?? new Map();
  const inits = pod.spec.initContainers ?? [];
  const all = [...inits, ...pod.spec.containers];
  const asked = new Map(all.map((c) => [c.name, containerRequests(pod, c, true) ?? new Map<string, number>()]));
  const shared = new Map<string, Requests>();
  let left = whole;
  for (const c of inits) {
    if (own(c.name).size > 0 && isSidecar(c)) left = minus(left, own(c.name));
    else if (!isSidecar(c)) shared.set(c.name, left);
  }
  for (const c of pod.spec.containers) left = minus(left, own(c.name));
  return new Map(all.map((c) => [c.name, own(c.name).size > 0 ? own(c.name) : (shared.get(c.name) ?? left)]));
}
const minus = (sizes: Requests, less: Requests): Requests =>
  new Map([...sizes].map(([type, size]) => [type, Math.max(0, size - (less.get(type) ?? 0))]));
