import { type Container, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import type { NumaMask } from "../topology/hint.ts";
import { maskOf, type NumaNodes } from "../topology/numa-nodes.ts";
import type { Block } from "./state.ts";
import { setBlocks, type WorkingState } from "./working-state.ts";

/**
 * What the init containers of the pod in hand hold and its next containers may have, on the same nodes. Sidecars keep theirs.
 * kubelet 1.36: initContainersReusableMemory.
 */
export interface ReusableMemory {
  /** Bytes of `type` on exactly these nodes. */
  of(pod: Pod, set: NumaMask, type: string): number;
  /** After a container got its blocks: an init container's can be used again, another's use up what there is. */
  settle(pod: Pod, container: Container, blocks: readonly Block[]): void;
}

export function reusableMemory(numa: NumaNodes): ReusableMemory {
  const left = new Map<string, number>();
  let owner: string | undefined;
  const keyOf = (set: NumaMask, type: string): string => `${set} ${type}`;
  const of = (pod: Pod, set: NumaMask, type: string): number =>
    podUid(pod) === owner ? (left.get(keyOf(set, type)) ?? 0) : 0;
  return {
    of,
    settle: (pod, container, blocks) => {
      if (podUid(pod) !== owner) left.clear();
      owner = podUid(pod);
      const init = pod.spec.initContainers?.some(({ name }) => name === container.name) && !isSidecar(container);
      for (const { numaAffinity, type, size } of blocks) {
        const set = maskOf(numa, numaAffinity);
        const before = of(pod, set, type);
        left.set(keyOf(set, type), init ? Math.max(before, size) : Math.max(0, before - size));
      }
    },
  };
}

/**
 * Shrinks the blocks of the init containers before `container` by what it uses of them, so that the blocks of a pod sum up to
 * what was taken off the nodes. kubelet 1.36: updateInitContainersMemoryBlocks.
 */
export function shrinkInitBlocks(
  state: WorkingState,
  numa: NumaNodes,
  pod: Pod,
  container: Container,
  blocks: readonly Block[],
): void {
  const uid = podUid(pod) as string;
  const inits = pod.spec.initContainers ?? [];
  const own = inits.findIndex(({ name }) => name === container.name);
  const before = own < 0 ? inits : inits.slice(0, own);
  for (const { numaAffinity, type, size } of blocks) {
    const set = maskOf(numa, numaAffinity);
    let left = size;
    for (const init of before) {
      const held = state.entries.get(uid)?.get(init.name);
      if (isSidecar(init) || held === undefined || held.length === 0) continue;
      const shrunk = held.map((block) => {
        if (block.type !== type || maskOf(numa, block.numaAffinity) !== set) return block;
        const used = Math.min(left, block.size);
        left -= used;
        return { ...block, size: block.size - used };
      });
      setBlocks(state, uid, init.name, shrunk);
    }
  }
}
