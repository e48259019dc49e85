import { containersOf, isSidecar, type Pod } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { AllocateError, TopologyHint } from "../topology/hint.ts";
import { takeFromPool } from "./allocate.ts";
import { type StaticPolicy, takeCpus } from "./policy.ts";
import { exclusiveCpus, podExclusiveCpus, sharedPoolFault } from "./request.ts";
import { type CpuSet, minus, NO_CPUS } from "./sets.ts";
import { smtFault } from "./smt.ts";
import { assign, type WorkingState } from "./working-state.ts";

/**
 * Gives a pod with pod-level resources its CPUs as a whole, and shares them out: to a container what it asks for itself, to
 * the others what is left. Only with pod scope and the gate PodLevelResourceManagers. After an error the pod's CPUs are
 * out of the pool all the same, if there were enough. kubelet 1.36: staticPolicy.AllocatePod.
 */
export function allocatePod(
  policy: StaticPolicy,
  state: WorkingState,
  uid: string,
  pod: Pod,
  affinity: TopologyHint,
): Result<void, AllocateError> {
  const count = podExclusiveCpus(pod, true);
  if (count === 0) return ok(undefined);
  const empty = sharedPoolFault(pod);
  if (empty !== undefined) return err({ reason: "EmptyPodSharedPoolError", message: empty });
  const fault = smtFault(policy, state.pool, count);
  if (fault !== undefined) return err(fault);
  const whole = takeFromPool(policy, state, NO_CPUS, count, affinity);
  if (!whole.ok) return whole;
  state.podCpus.set(uid, whole.value);
  const shares = sharesOf(policy, pod, whole.value);
  if (!shares.ok) return err({ message: shares.error });
  for (const { name } of containersOf(pod)) {
    assign(state, uid, name, shares.value.own.get(name) ?? shares.value.shared);
  }
  return ok(undefined);
}

interface Shares {
  readonly own: ReadonlyMap<string, CpuSet>;
  /** Of all others, while the pod runs. */
  readonly shared: CpuSet;
}
function sharesOf(policy: StaticPolicy, pod: Pod, whole: CpuSet): Result<Shares, string> {
  const own = new Map<string, CpuSet>();
  let left = whole;
  for (const container of pod.spec.initContainers ?? []) {
    const count = exclusiveCpus(pod, container, true);
    const cpus = count > 0 ? takeCpus(policy, left, count) : ok(left);
    if (!cpus.ok) return cpus;
    // one that ends before the others begin has all that the sidecars so far have not
    if (count > 0 || !isSidecar(container)) own.set(container.name, cpus.value);
    if (count > 0 && isSidecar(container)) left = minus(left, cpus.value);
  }
  for (const container of pod.spec.containers) {
    const count = exclusiveCpus(pod, container, true);
    if (count === 0) continue;
    const cpus = takeCpus(policy, left, count);
    if (!cpus.ok) return cpus;
    own.set(container.name, cpus.value);
    left = minus(left, cpus.value);
  }
  return ok({ own, shared: left });
}
