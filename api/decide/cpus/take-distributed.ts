import { err, ok, type Result } from "../../model/result.ts";
import { type CpuSet, NO_CPUS } from "./sets.ts";
import { neverDone, type Spread, spreadSearch } from "./spread.ts";
import { notEnough, takePacked } from "./take-packed.ts";
import { freeCount, freeIn, freeOf, inOrder, startTaking, type Taking, take } from "./taking.ts";
import { type CpuTopology, cpusAt } from "./topology.ts";

export interface Distribution {
  /** CPUs are handed out in groups of this size. */
  readonly group: number;
  readonly spread: boolean;
}

/**
 * `count` of the available CPUs from as few NUMA nodes as can be, the same share from each of them; packed where that
 * cannot be. kubelet 1.36: takeByTopologyNUMADistributed.
 */
export function takeDistributed(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  { group, spread }: Distribution,
): Result<CpuSet, string> {
  const packed = () => takePacked(topology, available, count, { spread, byCache: false });
  if (count % group !== 0) return packed();
  if (count < 1) return ok(NO_CPUS);
  const taking = startTaking(topology, available, count);
  if (freeCount(taking) < count) return err(notEnough(count, available));
  const nodes = inOrder(taking, topology.nodes);
  const search = spreadSearch({ nodes, free: freeIn(taking, topology.nodes), count, group });
  const groups = Math.ceil(count / group);
  const groupsPerNode = Math.ceil(Math.ceil(topology.cpus.length / group) / topology.nodes.ids.length);
  const most = Math.min(groups, new Set(nodes).size);
  for (let size = Math.ceil(groups / groupsPerNode); size <= most; size++) {
    const found = search(size);
    if (!found.ok) return found;
    if (found.value !== undefined) return takeSpread(taking, found.value, { group, spread });
  }
  return packed();
}

function takeSpread(taking: Taking, { nodes, share, remainder }: Spread, how: Distribution): Result<CpuSet, string> {
  let rest = taking.needed - share * nodes.length;
  for (const node of nodes) takeOfNode(taking, node, share, how.spread);
  while (rest > 0) {
    const before = rest;
    for (const node of remainder) {
      if (rest === 0) break;
      if (freeOf(taking, taking.topology.nodes.members[node] as readonly number[]).length < how.group) continue;
      takeOfNode(taking, node, how.group, how.spread);
      rest -= how.group;
    }
    if (rest === before) return err(neverDone(rest, how.group));
  }
  if (taking.needed === 0) return ok(taking.taken);
  const fault = taking.needed > 0 ? "not enough" : "too many";
  return err(`accounting error, ${fault} CPUs allocated, remaining: ${taking.needed}`);
}

/** Where the node has too few, nothing is taken, and the sum will not come out. */
function takeOfNode(taking: Taking, node: number, count: number, spread: boolean): void {
  const { topology } = taking;
  const free = freeOf(taking, topology.nodes.members[node] as readonly number[]);
  const cpus = takePacked(topology, cpusAt(topology, free), count, { spread, byCache: false });
  if (!cpus.ok) return;
  take(
    taking,
    [...cpus.value].map((cpu) => topology.positionOf.get(cpu) as number),
  );
}
