import {
  type Block,
  type MachineMemory,
  type MemoryState,
  machineMemory,
} from "../../api/decide/memory/machine-memory.ts";
import type { Pod } from "../../api/model/pod.ts";
import { container } from "../kit/containers.ts";
import { decodedPod, namedPod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import type { Draws } from "./draws.ts";

const Mi = 2 ** 20;

/** One to five NUMA nodes of 1 to 16 GiB, with or without huge pages, sometimes with gaps between their ids. */
export function randomMachine(d: Draws): MachineMemory {
  const count = 1 + d.below(5);
  const paged = d.chance(2);
  const nodes = Array.from({ length: count }, (_, i) => ({
    id: i === count - 1 && d.chance(4) ? i + 1 + d.below(9) : i,
    memoryBytes: (1 + d.below(16)) * 1024 * Mi + d.below(4096),
    ...(paged && { hugepages: { "2Mi": d.below(100), "1Gi": 0 } }),
  }));
  const reserved = new Map(nodes.map(({ id }) => [id, new Map([["memory", d.below(500) * Mi]])]));
  const made = machineMemory(nodes, reserved);
  if (!made.ok) throw new Error(made.error.message);
  return made.value;
}

function randomContainer(name: string, paged: boolean, d: Draws): Json {
  const pages = paged && d.chance(3) ? { "hugepages-2Mi": `${2 * d.below(80)}Mi` } : {};
  const bytes = d.chance(4) ? 1 + d.below(4096) : 1 + d.below(d.pick([500, 3000, 12_000])) * Mi;
  const asked = { cpu: "1", memory: `${bytes}`, ...pages };
  return container(name, asked, asked);
}
/** A Guaranteed pod with init containers and sidecars in any order. */
export function randomGuaranteed(uid: string, paged: boolean, d: Draws): Pod {
  const containers = Array.from({ length: 1 + d.below(3) }, (_, i) => randomContainer(`c${i}`, paged, d));
  const initContainers = Array.from({ length: d.chance(2) ? d.below(4) : 0 }, (_, i) => ({
    ...randomContainer(`i${i}`, paged, d),
    ...(d.chance(3) && { restartPolicy: "Always" }),
  }));
  return decodedPod(namedPod(uid, containers, { initContainers }));
}

const allBlocks = ({ entries }: MemoryState): readonly Block[] =>
  [...entries.values()].flatMap((list) => [...list.values()].flat());

/** One line about the first fault of the state; undefined if it has none. */
export function brokenIn(state: MemoryState): string | undefined {
  const blocks = allBlocks(state);
  for (const [id, node] of state.machineState) {
    const here = blocks.filter(({ numaAffinity }) => numaAffinity.includes(id));
    if (here.length !== node.numberOfAssignments)
      return `node ${id} counts ${node.numberOfAssignments}, has ${here.length}`;
    if (here.length === 0 && node.cells.join() !== `${id}`) return `node ${id} is empty and in group ${node.cells}`;
    if (!node.cells.includes(id)) return `node ${id} is not of its group ${node.cells}`;
    for (const [type, t] of node.memoryMap) {
      if (t.free + t.reserved !== t.allocatable)
        return `node ${id}: ${t.free} + ${t.reserved} of ${t.allocatable} ${type}`;
      if (t.free < 0 || t.reserved < 0) return `node ${id}: ${t.free} free, ${t.reserved} reserved of ${type}`;
    }
  }
  return undefined;
}
/** The first place at which the reserved bytes differ from the sum of the blocks; undefined if they agree. */
export function lostIn(state: MemoryState): string | undefined {
  const blocks = allBlocks(state);
  for (const type of ["memory", "hugepages-2Mi"]) {
    const taken = [...state.machineState.values()].reduce((sum, n) => sum + (n.memoryMap.get(type)?.reserved ?? 0), 0);
    const given = blocks.filter((b) => b.type === type).reduce((sum, b) => sum + b.size, 0);
    if (taken !== given) return `${taken} of ${type} are reserved, ${given} are in blocks`;
  }
  return undefined;
}

/** Nodes with blocks on different sets of nodes, which only hints of other resources may cause. */
export const mixedNodes = (state: MemoryState): readonly number[] =>
  [...state.machineState.keys()].filter((id) => {
    const groups = allBlocks(state).filter(({ numaAffinity }) => numaAffinity.includes(id));
    return new Set(groups.map(({ numaAffinity }) => numaAffinity.join())).size > 1;
  });
/** Nodes of a group whose other nodes record another group. */
export const brokenGroups = ({ machineState }: MemoryState): readonly number[] =>
  [...machineState].flatMap(([id, { cells }]) =>
    cells.every((other) => machineState.get(other)?.cells.join() === cells.join()) ? [] : [id],
  );
