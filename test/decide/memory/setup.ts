import {
  type Block,
  EMPTY_STATE,
  type MachineMemory,
  machineMemory,
  type NumaNodeMemory,
} from "../../../api/decide/memory/machine-memory.ts";
import { type MemoryManager, memoryManager } from "../../../api/decide/memory/manager.ts";
import { ANY_NODE, idsOf, maskOf, type ResourceHints, type TopologyHint } from "../../../api/decide/topology/hint.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { container } from "../../kit/containers.ts";
import { decodedPod, namedPod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;

/** NUMA nodes 0, 1, ... with `gibs` GiB each, of which 1 GiB on node 0 is reserved. */
export function machine(gibs: readonly number[], hugepages?: NumaNodeMemory["hugepages"]): MachineMemory {
  const nodes = gibs.map((gib, id) => ({ id, memoryBytes: gib * Gi, hugepages }));
  const made = machineMemory(nodes, new Map([[0, new Map([["memory", Gi]])]]));
  if (!made.ok) throw new Error(made.error.message);
  return made.value;
}
export const manager = (
  machineState: MachineMemory,
  podLevel = false,
  { behaviour }: Profile = NEWEST,
): MemoryManager => memoryManager({ policy: "Static", state: { ...EMPTY_STATE, machineState }, podLevel, behaviour });

/** `memory` in GiB; `also`: other resources, `restartPolicy`. */
export const wanting = (name: string, memory: number | string, also: Json = {}): Json => {
  const { restartPolicy, ...resources } = also;
  const asked = { cpu: "1", memory: typeof memory === "number" ? `${memory}Gi` : memory, ...resources };
  return container(name, asked, asked, restartPolicy === undefined ? {} : { restartPolicy });
};
export const podNamed = (uid: string, containers: readonly Json[], spec: Json = {}): Pod =>
  decodedPod(namedPod(uid, containers, spec));

/** Allocates memory to one container after another, as the kubelet does; returns the first error. */
export function add(to: MemoryManager, p: Pod, affinity: TopologyHint = ANY_NODE): string | undefined {
  for (const c of containersOf(p)) {
    const done = to.allocate(p, c, affinity);
    if (!done.ok) return done.error.message;
  }
  return undefined;
}
export const on = (m: MemoryManager, nodes: readonly number[], preferred = true): TopologyHint => ({
  nodes: maskOf(m.numa, nodes),
  preferred,
});

/** The free GiB of a memory type on each node. */
export const free = (m: MemoryManager, type = "memory"): readonly number[] =>
  [...m.state.machineState.values()].map((node) => (node.memoryMap.get(type)?.free ?? Number.NaN) / Gi);
/** Each block as `memory 2 on 0,1`, in GiB. */
export const blocks = (m: MemoryManager, uid: string, name: string): readonly string[] =>
  m.blocks(uid, name).map(textOf);
const textOf = ({ numaAffinity, type, size }: Block): string => `${type} ${size / Gi} on ${numaAffinity}`;

/** Hints as `0! 1! 0,1`: the sets of nodes in order; `!` marks a preferred one. */
export const ways = (m: MemoryManager, hints: ResourceHints): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...hints].map(([type, list]) => [
      type,
      (list ?? []).map((h) => `${idsOf(m.numa, h.nodes as number)}${h.preferred ? "!" : ""}`).join(" "),
    ]),
  );
