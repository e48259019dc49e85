import { type CpuSet, minus, NO_CPUS, union } from "./sets.ts";
import type { CpuState } from "./state.ts";

/** A `CpuState` that one decision works on, and what is only remembered while it does. */
export interface WorkingState {
  pool: CpuSet;
  readonly held: Map<string, Map<string, CpuSet>>;
  readonly podCpus: Map<string, CpuSet>;
  /** What init containers of the pod in hand leave to those after them; of other pods nothing is remembered. */
  reuse: { readonly uid: string; readonly cpus: CpuSet };
}

/** A copy to work on. */
export const workingState = ({ defaultCpus, assignments, podCpus }: CpuState): WorkingState => ({
  pool: defaultCpus,
  held: new Map(Array.from(assignments, ([uid, containers]) => [uid, new Map(containers)])),
  podCpus: new Map(podCpus),
  reuse: { uid: "", cpus: NO_CPUS },
});
/** A copy of how it stands. */
export const standing = ({ pool, held, podCpus }: WorkingState): CpuState => ({
  defaultCpus: pool,
  assignments: new Map(Array.from(held, ([uid, containers]) => [uid, new Map(containers)])),
  podCpus: new Map(podCpus),
});

/** Notes that these are the container's CPUs; taken out of the pool they must be before. */
export function assign({ held }: WorkingState, uid: string, container: string, cpus: CpuSet): void {
  const containers = held.get(uid) ?? new Map<string, CpuSet>();
  held.set(uid, containers.set(container, cpus));
}

/**
 * Gives a container's CPUs back, but for those that others of its pod hold. A pod that has its CPUs as a whole gives them
 * back with its last container. kubelet 1.36: RemoveContainer.
 */
export function release(state: WorkingState, uid: string, container: string): void {
  const { held, podCpus } = state;
  const containers = held.get(uid);
  const cpus = containers?.get(container);
  if (containers === undefined || cpus === undefined) return;
  containers.delete(container);
  if (containers.size === 0) held.delete(uid);
  const whole = podCpus.get(uid);
  if (whole === undefined) state.pool = union(state.pool, [...containers.values()].reduce(minus, cpus));
  else if (containers.size === 0) {
    state.pool = union(state.pool, whole);
    podCpus.delete(uid);
  }
}

/** What the pod's init containers have left. */
export const reusable = ({ reuse }: WorkingState, uid: string): CpuSet => (reuse.uid === uid ? reuse.cpus : NO_CPUS);
