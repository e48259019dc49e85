import { err, ok, type Result } from "../../base/result.ts";
import { formatCpuSet } from "../../model/cpu-set.ts";
import { parseWhole, quote } from "../go/strconv.ts";

/** Above any machine's highest CPU number; a list far beyond it would fill the kubelet's memory. */
const MAX_CPU = 65_535;

/** Parses a CPU list as the kubelet does, with the kubelet's errors. kubernetes 1.36: cpuset.Parse. */
export function parseCpus(text: string): Result<CpuSet, string> {
  if (text === "") return ok(NO_CPUS);
  const cpus = new Set<number>();
  let listed = 0;
  for (const part of text.split(",")) {
    const range = rangeOf(part);
    if (!range.ok) return range;
    const { first, last } = range.value;
    if (last > MAX_CPU) return err(`CPU ${last} is above ${MAX_CPU}`);
    listed += last - first + 1;
    if (listed > 2 * MAX_CPU) return err(`lists more than ${2 * MAX_CPU} CPUs`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return ok(cpus);
}

/** A parser with one bound for all lists of a file, where a kubelet would read on. */
export function cpuListReader(): (text: string) => Result<CpuSet, string> {
  let listed = 0;
  return (text) => {
    if (listed > MAX_LISTED) return err(`the file lists more than ${MAX_LISTED} CPUs`);
    const cpus = parseCpus(text);
    if (cpus.ok) listed += cpus.value.size;
    return cpus;
  };
}
const MAX_LISTED = 2 ** 22;

function rangeOf(part: string): Result<{ first: number; last: number }, string> {
  const dash = part.indexOf("-");
  const first = parseWhole(dash < 0 ? part : part.slice(0, dash));
  if (!first.ok) return first;
  const last = dash < 0 ? first : parseWhole(part.slice(dash + 1));
  if (!last.ok) return last;
  if (first.value > last.value) return err(`invalid range ${quote(part)} (${first.value} > ${last.value})`);
  return ok({ first: Number(first.value), last: Number(last.value) });
}

/** A set of CPU ids, never changed once made. */
export type CpuSet = ReadonlySet<number>;
export const NO_CPUS: CpuSet = new Set();

/** Returns the CPUs that are in `a`, in `b` or in both. */
export const union = (a: CpuSet, b: CpuSet): CpuSet => new Set([...a, ...b]);
/** Returns the CPUs that are in `a` and not in `b`. */
export const minus = (a: CpuSet, b: CpuSet): CpuSet => filtered(a, (cpu) => !b.has(cpu));
/** Returns the CPUs that are in both. */
export const common = (a: CpuSet, b: CpuSet): CpuSet =>
  a.size <= b.size ? filtered(a, (cpu) => b.has(cpu)) : filtered(b, (cpu) => a.has(cpu));
/** Checks that both have the same CPUs. */
export const sameCpus = (a: CpuSet, b: CpuSet): boolean => a.size === b.size && holdsAll(a, b);

/** Checks that every CPU of `part` is in `set`. */
export function holdsAll(set: CpuSet, part: CpuSet): boolean {
  for (const cpu of part) if (!set.has(cpu)) return false;
  return true;
}
/** The CPUs for which `keep` returns true. */
export function filtered(set: CpuSet, keep: (cpu: number) => boolean): CpuSet {
  const kept = new Set<number>();
  for (const cpu of set) if (keep(cpu)) kept.add(cpu);
  return kept;
}
/** The CPUs in ascending order. */
export const ascending = (set: CpuSet): number[] => [...set].sort((a, b) => a - b);
/** The list as the kubelet writes it: `0-3,8`. */
export const cpuText = (set: CpuSet): string => formatCpuSet(ascending(set));
