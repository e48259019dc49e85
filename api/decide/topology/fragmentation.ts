import type { Machine } from "../../model/machine.ts";
import type { Fragments } from "../../model/managers.ts";
import { type Bytes, bytes } from "../../model/units.ts";

type Cpu = NonNullable<Machine["cpus"]>[number];

export interface Room {
  readonly cpus: readonly Cpu[];
  /** CPUs that may be given away exclusively, by number. */
  readonly free: ReadonlySet<number>;
  /** NUMA node -> memory that may be given away. */
  readonly freeMemory: ReadonlyMap<number, Bytes>;
  /** Whether exclusive CPUs are given by the core (full-pcpus-only). */
  readonly wholeCores: boolean;
}
export interface Fragmentation extends Fragments {
  /** Ascending by id. */
  readonly nodes: readonly (Fragments & { readonly numaNode: number })[];
  /** The share of the free CPUs that the largest block leaves out: 0, all in one block; near 1, crumbs everywhere. */
  readonly scattered: number;
}

/** How the free CPUs and the free memory of a machine lie about: per NUMA node, and in all. */
export function fragmentation(room: Room): Fragmentation {
  const ids = new Set([...room.cpus.map((cpu) => cpu.numa), ...room.freeMemory.keys()]);
  const counts = [...ids].sort((a, b) => a - b).map((numaNode) => ({ numaNode, count: countOf(room, numaNode) }));
  const total = counts.reduce((sum, { count }) => together(sum, count), NOTHING);
  return {
    ...fragmentsOf(total),
    nodes: counts.map(({ numaNode, count }) => ({ numaNode, ...fragmentsOf(count) })),
    scattered: share(total.freeCpus - total.largestBlock, total.freeCpus),
  };
}

interface Count extends Omit<Fragments, "splitShare"> {
  readonly splitCpus: number;
}
const NOTHING: Count = { freeCpus: 0, freeCores: 0, freeMemory: bytes(0), largestBlock: 0, splitCpus: 0 };

function countOf({ cpus, free, freeMemory, wholeCores }: Room, numaNode: number): Count {
  const cores = new Map<string, { cpus: number; free: number }>();
  for (const { cpu, core, socket, numa } of cpus) {
    if (numa !== numaNode) continue;
    const key = `${socket}/${core}`;
    const seen = cores.get(key) ?? { cpus: 0, free: 0 };
    cores.set(key, { cpus: seen.cpus + 1, free: seen.free + (free.has(cpu) ? 1 : 0) });
  }
  const all = [...cores.values()];
  const whole = all.filter((core) => core.free === core.cpus);
  const freeCpus = all.reduce((sum, core) => sum + core.free, 0);
  const inWhole = whole.reduce((sum, core) => sum + core.free, 0);
  return {
    freeCpus,
    freeCores: whole.length,
    freeMemory: freeMemory.get(numaNode) ?? bytes(0),
    largestBlock: wholeCores ? inWhole : freeCpus,
    splitCpus: freeCpus - inWhole,
  };
}
const together = (a: Count, b: Count): Count => ({
  freeCpus: a.freeCpus + b.freeCpus,
  freeCores: a.freeCores + b.freeCores,
  freeMemory: bytes(a.freeMemory + b.freeMemory),
  largestBlock: Math.max(a.largestBlock, b.largestBlock),
  splitCpus: a.splitCpus + b.splitCpus,
});
const fragmentsOf = ({ splitCpus, ...count }: Count): Fragments => ({
  ...count,
  splitShare: share(splitCpus, count.freeCpus),
});
const share = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);
