import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { AllocateError, NumaMask, TopologyHint } from "../topology/hint.ts";
import { type StaticPolicy, takeCpus } from "./policy.ts";
import { type CpuSet, filtered, minus, NO_CPUS, union } from "./sets.ts";
import { smtFault } from "./smt.ts";
import { assign, reusable, type WorkingState } from "./working-state.ts";

/** What one container asks for. */
export interface CpuAsk {
  readonly uid: string;
  readonly pod: Pod;
  readonly container: Container;
  readonly count: number;
  readonly affinity: TopologyHint;
}

/** Gives a container `count` CPUs, unless it has its CPUs already. kubelet 1.36: staticPolicy.Allocate. */
export function allocateContainer(policy: StaticPolicy, state: WorkingState, ask: CpuAsk): Result<void, AllocateError> {
  const { uid, pod, container, count, affinity } = ask;
  // before it is looked whether the container has its CPUs already: after a restart it may fail where it ran
  const fault = smtFault(policy, state.pool, count);
  if (fault !== undefined) return err(fault);
  const left = reusable(state, uid);
  let cpus = state.held.get(uid)?.get(container.name);
  if (cpus === undefined) {
    const given = takeFromPool(policy, state, left, count, affinity);
    if (!given.ok) return given;
    cpus = given.value;
    assign(state, uid, container.name, cpus);
  }
  state.reuse = { uid, cpus: isOnlyInit(pod, container) ? union(left, cpus) : minus(left, cpus) };
  return ok(undefined);
}
/** A sidecar runs on beside those that come after it. */
const isOnlyInit = ({ spec }: Pod, { name }: Container): boolean => {
  const init = spec.initContainers?.find((c) => c.name === name);
  return init !== undefined && !isSidecar(init);
};

/** Of the pool and of `left`, as many as can be near the affinity, the rest anywhere. kubelet 1.36: allocateCPUs. */
export function takeFromPool(
  policy: StaticPolicy,
  state: WorkingState,
  left: CpuSet,
  count: number,
  { nodes }: TopologyHint,
): Result<CpuSet, AllocateError> {
  const allocatable = union(minus(state.pool, policy.reserved), left);
  const near = nodes === null ? NO_CPUS : nearCpus(policy, nodes, allocatable);
  const aligned = takeCpus(policy, near, Math.min(count, near.size));
  if (!aligned.ok) return err({ message: aligned.error });
  const rest = takeCpus(policy, minus(allocatable, aligned.value), count - aligned.value.size);
  if (!rest.ok) return err({ message: rest.error });
  const cpus = union(aligned.value, rest.value);
  state.pool = minus(state.pool, cpus);
  return ok(cpus);
}

/** With align-by-socket: all on the sockets of these nodes. kubelet 1.36: getAlignedCPUs. */
function nearCpus({ topology, options }: StaticPolicy, mask: NumaMask, allocatable: CpuSet): CpuSet {
  const { nodes, sockets, numa, positionOf } = topology;
  const bits = nodes.ids.map((id) => numa.bitOf.get(id) as NumaMask);
  const isNear = (position: number): boolean => ((bits[nodes.of[position] as number] as NumaMask) & mask) !== 0;
  const at = (cpu: number): number => positionOf.get(cpu) as number;
  if (!options.alignBySocket) return filtered(allocatable, (cpu) => isNear(at(cpu)));
  const near = new Set(sockets.of.filter((_, position) => isNear(position)));
  return filtered(allocatable, (cpu) => near.has(sockets.of[at(cpu)] as number));
}
