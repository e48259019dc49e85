import { formatCpuSet } from "../../model/cpu-set.ts";

/** CPUs by their ids; not changed once made. */
export type CpuSet = ReadonlySet<number>;
export const NO_CPUS: CpuSet = new Set();

/** What is in `a`, in `b` or in both. */
export const union = (a: CpuSet, b: CpuSet): CpuSet => new Set([...a, ...b]);
/** What is in `a` and not in `b`. */
export const minus = (a: CpuSet, b: CpuSet): CpuSet => filtered(a, (cpu) => !b.has(cpu));
/** What is in both. */
export const common = (a: CpuSet, b: CpuSet): CpuSet =>
  a.size <= b.size ? filtered(a, (cpu) => b.has(cpu)) : filtered(b, (cpu) => a.has(cpu));
/** Whether both have the same CPUs. */
export const sameCpus = (a: CpuSet, b: CpuSet): boolean => a.size === b.size && holdsAll(a, b);

/** Whether each of `part` is in `set`. */
export function holdsAll(set: CpuSet, part: CpuSet): boolean {
  for (const cpu of part) if (!set.has(cpu)) return false;
  return true;
}
/** The CPUs that `keep` says yes to. */
export function filtered(set: CpuSet, keep: (cpu: number) => boolean): CpuSet {
  const kept = new Set<number>();
  for (const cpu of set) if (keep(cpu)) kept.add(cpu);
  return kept;
}
/** The CPUs by number. */
export const ascending = (set: CpuSet): number[] => [...set].sort((a, b) => a - b);
/** As the kubelet writes it: `0-3,8`. */
export const cpuText = (set: CpuSet): string => formatCpuSet(ascending(set));
