import { type CpuSet, common } from "./sets.ts";

/** Pod uid -> container -> its own CPUs. */
export type CpuAssignments = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

/** What the CPU manager remembers. kubelet 1.36: state.State. */
export interface CpuState {
  /** The shared pool, reserved CPUs with it; empty: not yet known. */
  readonly defaultCpus: CpuSet;
  readonly assignments: CpuAssignments;
  /** Pod uid -> CPUs of the pod as a whole; only with the gate PodLevelResourceManagers. */
  readonly podCpus: ReadonlyMap<string, CpuSet>;
}

/** CPUs that two containers of different pods hold alone: the kubelet takes such a state without a word. */
export interface SharedCpus {
  readonly cpus: CpuSet;
  readonly holders: readonly [Holder, Holder];
}
export interface Holder {
  readonly uid: string;
  readonly container: string;
}
/** Containers of one pod may share, since an init container leaves its CPUs to the next. In the order of uids and names. */
export function sharedCpus(assignments: CpuAssignments): readonly SharedCpus[] {
  const first = new Map<number, Holder>();
  const shared = new Map<string, SharedCpus>();
  for (const [uid, containers] of sorted(assignments)) {
    for (const [container, cpus] of sorted(containers)) {
      for (const cpu of cpus) {
        const holder = first.get(cpu);
        if (holder === undefined) first.set(cpu, { uid, container });
        else if (holder.uid !== uid) {
          const other = assignments.get(holder.uid)?.get(holder.container) ?? cpus;
          const key = JSON.stringify([holder.uid, holder.container, uid, container]);
          shared.set(key, { cpus: common(other, cpus), holders: [holder, { uid, container }] });
        }
      }
    }
  }
  return [...shared.values()];
}

/** By key, as Go sorts what it prints; where Go walks a map in any order, this is the order. */
export const sorted = <V>(map: ReadonlyMap<string, V>): readonly (readonly [string, V])[] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));
