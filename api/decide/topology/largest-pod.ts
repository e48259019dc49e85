import { err, ok, type Result } from "../../base/result.ts";
import type { Machine } from "../../model/machine.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { unitsQuantity } from "../../model/quantity.ts";
import type { Fragments, PodSize } from "../../model/topology.ts";
import { type Bytes, bytes } from "../../model/units.ts";
import { admitPod, type NamedProvider } from "./admit.ts";
import type { TopologyHint } from "./hint.ts";
import type { MergeRefusal } from "./merge.ts";
import type { TopologyPolicy } from "./policy.ts";

type Cpu = NonNullable<Machine["cpus"]>[number];

interface FreeCapacity {
  readonly cpus: readonly Cpu[];
  /** CPUs that may be given away exclusively, by number. */
  readonly free: ReadonlySet<number>;
  /** NUMA node -> memory that may be given away. */
  readonly freeMemory: ReadonlyMap<number, Bytes>;
  /** True: exclusive CPUs are assigned by whole cores (full-pcpus-only). */
  readonly wholeCores: boolean;
}
interface Fragmentation extends Fragments {
  /** Ascending by id. */
  readonly nodes: readonly (Fragments & { readonly numaNode: number })[];
  /** The share of the free CPUs that the largest block leaves out: 0, all in one block; near 1, crumbs everywhere. */
  readonly scattered: number;
}

/** How fragmented the free CPUs and memory of a machine are: per NUMA node, and in total. */
export function fragmentation(capacity: FreeCapacity): Fragmentation {
  const ids = new Set([...capacity.cpus.map((cpu) => cpu.numa), ...capacity.freeMemory.keys()]);
  const counts = [...ids].sort((a, b) => a - b).map((numaNode) => ({ numaNode, count: countOf(capacity, numaNode) }));
  const total = counts.reduce((sum, { count }) => addCounts(sum, count), NOTHING);
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

function countOf({ cpus, free, freeMemory, wholeCores }: FreeCapacity, numaNode: number): Count {
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
const addCounts = (a: Count, b: Count): Count => ({
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

export interface LargestAsk {
  readonly policy: TopologyPolicy;
  /** Returns fresh copies of the node's managers in their present state, since each trial changes its copy. */
  readonly providers: () => readonly NamedProvider[];
  /** The size of each NUMA node, ascending by id: all its CPUs, and all memory that pods may have, free or not. */
  readonly nodes: readonly PodSize[];
  /** The free part of the node's allocatable: the upper limit, whatever the managers answer. */
  readonly free: PodSize;
  /** CPUs that are only given together: the threads of a core with full-pcpus-only, else 1. */
  readonly cpuStep: number;
}
/** Memory is searched by the MiB. */
const MEMORY_STEP = 2 ** 20;

/**
 * The largest pod of one Guaranteed container that would be admitted now: the most whole CPUs, and with these the
 * most memory; null: not even the smallest pod is admitted. A trial has admitted the answer. It is the largest if,
 * among pods that need the same number of NUMA nodes, a smaller pod is admitted whenever a larger one is, which holds
 * for the kubelet's managers under `restricted` and `single-numa-node`. On 8 nodes it takes at most some 200 trials.
 */
export function largestPod(ask: LargestAsk): Result<PodSize | null, MergeRefusal> {
  let refusal: MergeRefusal | undefined;
  const fits = (size: PodSize): boolean => {
    const admission = admitPod(ask.policy, ask.providers(), guaranteedPod(size));
    if (!admission.ok) refusal = admission.error;
    return admission.ok && admission.value.refusal === null;
  };
  const found = search(ask, ask.nodes, fits);
  return refusal === undefined ? ok(found) : err(refusal);
}

/**
 * The largest pod that fits on one NUMA node alone, `node` by its index in `nodes`: each manager must be able to place
 * it there, as single-numa-node requires, and then assign it.
 */
export function largestPodOn(ask: LargestAsk, node: number): PodSize | null {
  const there: TopologyHint = { nodes: 1 << node, preferred: true };
  const fits = (size: PodSize): boolean => {
    const pod = guaranteedPod(size);
    const [container] = pod.spec.containers as [Container];
    return ask.providers().every(({ provider }) => {
      const lists = [...provider.containerHints(pod, container).values()];
      const placed = lists.every((list) => list === null || list.some(({ nodes }) => nodes === there.nodes));
      return placed && provider.allocate(pod, container, there).ok;
    });
  };
  return search(ask, ask.nodes.slice(node, node + 1), fits);
}

/**
 * Searches one range of sizes: the demand on the NUMA nodes changes with every further node that a pod must span, so each such
 * range is searched alone.
 */
function search(
  { free, cpuStep }: LargestAsk,
  nodes: readonly PodSize[],
  fits: (size: PodSize) => boolean,
): PodSize | null {
  const size = (cpus: number, memory: number): PodSize => ({
    cpus: cpus * cpuStep,
    memory: bytes(memory * MEMORY_STEP),
  });
  const cpus: readonly Range[] = rangesOf(
    nodes.map((node) => node.cpus),
    free.cpus,
    cpuStep,
  );
  const memory = rangesOf(
    nodes.map((node) => node.memory),
    free.memory,
    MEMORY_STEP,
  );
  const found = largestBoth(cpus, memory, (c, m) => fits(size(c, m)));
  return found === undefined ? null : size(found.first, found.second);
}

function guaranteedPod({ cpus, memory }: PodSize): Pod {
  const list = { cpu: unitsQuantity(cpus, "DecimalSI"), memory: unitsQuantity(memory, "BinarySI") };
  const containers = [{ name: "largest", resources: { requests: list, limits: list } }];
  return { metadata: { name: "largest", namespace: "default", uid: "largest" }, spec: { containers } };
}

/** Whole numbers from `least` to `most`. */
interface Range {
  readonly least: number;
  readonly most: number;
}

/**
 * The amounts up to `free`, in units of `step`, by the number of sizes that they need at least: amounts for one, for
 * two, and so on. Ascending, without empty ranges.
 */
function rangesOf(sizes: readonly number[], free: number, step: number): readonly Range[] {
  const ranges: Range[] = [];
  let below = 0;
  let sum = 0;
  for (const size of [...sizes].sort((a, b) => b - a)) {
    sum += size;
    const most = Math.floor(Math.min(sum, free) / step);
    if (most > below) ranges.push({ least: below + 1, most });
    below = Math.max(below, most);
  }
  return ranges;
}

/**
 * The largest number for which `holds` is true: it is true for `least`, and false above the first number for which it
 * is false.
 */
function largestThat({ least, most }: Range, holds: (n: number) => boolean): number {
  let yes = least;
  let no = most + 1;
  while (no - yes > 1) {
    const middle = yes + Math.floor((no - yes) / 2);
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}

interface LargestPair {
  readonly first: number;
  readonly second: number;
}
/** The largest `first` that holds with any `second`, and with it the largest `second`; ranges ascending. */
function largestBoth(
  firsts: readonly Range[],
  seconds: readonly Range[],
  holds: (first: number, second: number) => boolean,
): LargestPair | undefined {
  for (const range of [...firsts].reverse()) {
    const tops = seconds.map(({ least }) =>
      holds(range.least, least) ? largestThat(range, (n) => holds(n, least)) : 0,
    );
    const first = tops.reduce((a, b) => Math.max(a, b), 0);
    const second = seconds[tops.lastIndexOf(first)];
    if (first === 0 || second === undefined) continue;
    return { first, second: largestThat(second, (n) => holds(first, n)) };
  }
  return undefined;
}
