import type { NumaMask, TopologyHint } from "../topology/hint.ts";
import { countNodes } from "../topology/numa-nodes.ts";
import type { StaticPolicy } from "./policy.ts";
import type { CpuSet } from "./sets.ts";
import type { CpuTopology } from "./topology.ts";

/** What a hint is weighed by, of each NUMA node with CPUs. */
interface NodeSum {
  readonly bit: NumaMask;
  readonly cpus: number;
  /** Available and reusable. */
  readonly matching: number;
  /** Bits of the sockets that have CPUs in it. */
  readonly sockets: number;
}

/**
 * The sets of NUMA nodes that have room for `request` CPUs, fewest nodes first; all of them hold every reusable CPU.
 * Preferred are those of as few nodes as an empty machine would need. At most 2^n hints: `MOST_ALIGNED_NODES` bounds n.
 * kubelet 1.36: generateCPUTopologyHints.
 */
export function cpuHints(
  policy: StaticPolicy,
  available: CpuSet,
  reusable: CpuSet,
  request: number,
): readonly TopologyHint[] {
  const { topology } = policy;
  const nodes = nodeSums(topology, available, reusable);
  const must = nodesOf(topology, reusable);
  const found: { readonly mask: NumaMask; readonly sockets: number }[] = [];
  let fewest = nodes.length;
  const extend = (from: number, left: number, sum: NodeSum): void => {
    if (left === 0) {
      if (sum.cpus >= request) fewest = Math.min(fewest, countNodes(sum.bit));
      if ((sum.bit & must) === must && sum.matching >= request) found.push({ mask: sum.bit, sockets: sum.sockets });
      return;
    }
    for (let i = from; i <= nodes.length - left; i++) extend(i + 1, left - 1, plus(sum, nodes[i] as NodeSum));
  };
  for (let size = 1; size <= nodes.length; size++) extend(0, size, NONE);
  const fewestSockets = policy.options.alignBySocket ? socketsFor(topology, fewest) : -1;
  return found.map(({ mask, sockets }) => ({
    nodes: mask,
    preferred: countNodes(mask) === fewest || countNodes(sockets) === fewestSockets,
  }));
}
const NONE: NodeSum = { bit: 0, cpus: 0, matching: 0, sockets: 0 };
const plus = (a: NodeSum, b: NodeSum): NodeSum => ({
  bit: a.bit | b.bit,
  cpus: a.cpus + b.cpus,
  matching: a.matching + b.matching,
  sockets: a.sockets | b.sockets,
});

function nodeSums({ nodes, numa, sockets, positionOf }: CpuTopology, ...matching: CpuSet[]): readonly NodeSum[] {
  const counts = nodes.ids.map(() => 0);
  for (const cpu of matching.flatMap((set) => [...set])) {
    const node = nodes.of[positionOf.get(cpu) as number] as number;
    counts[node] = (counts[node] as number) + 1;
  }
  return nodes.ids.map((id, i) => {
    const members = nodes.members[i] as readonly number[];
    return {
      bit: numa.bitOf.get(id) as NumaMask,
      cpus: members.length,
      matching: counts[i] as number,
      // only read with align-by-socket, which wants no more sockets than nodes
      sockets: members.reduce((bits, position) => bits | (1 << (sockets.of[position] as number)), 0),
    };
  });
}

function nodesOf({ nodes, numa, positionOf }: CpuTopology, cpus: CpuSet): NumaMask {
  let mask = 0;
  for (const cpu of cpus) {
    const node = nodes.of[positionOf.get(cpu) as number] as number;
    mask |= numa.bitOf.get(nodes.ids[node] as number) as NumaMask;
  }
  return mask;
}

/** The sockets that so many NUMA nodes are on at least; -1: sockets tell nothing. kubelet 1.36: isHintSocketAligned. */
function socketsFor({ nodes, sockets }: CpuTopology, fewestNodes: number): number {
  const nodesPerSocket = Math.floor(nodes.ids.length / sockets.ids.length);
  return nodesPerSocket === 0 ? -1 : Math.ceil(fewestNodes / nodesPerSocket);
}
