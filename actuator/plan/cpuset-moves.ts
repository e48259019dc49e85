import { type CpuSet, formatCpuset, NONE, without } from "./cpuset.ts";
import { type CpusetFile, type CpusetNode, cpusetNodes } from "./cpuset-nodes.ts";
import type { CgroupState } from "./state.ts";
import type { Target } from "./targets.ts";
import { parentOf } from "./tree.ts";

/** How one cgroup's cpuset gets from what it is to what it shall be, in at most three writes; null: no such write. */
export interface Move {
  readonly path: string;
  readonly file: CpusetFile;
  /** Bottom-up: down to what old and new have in common. */
  readonly release: string | null;
  /** Top-down, after every release: up to the new set, and what the children still hold. */
  readonly claim: string | null;
  /** Bottom-up: down to exactly the new set. */
  readonly settle: string | null;
  readonly gives: CpuSet;
  readonly takes: CpuSet;
}

/**
 * Release before claim: no cgroup takes a CPU before the cgroup that gives it up has let go, and at every moment a
 * child's set lies within its parent's. A cgroup whose old and new sets share nothing changes over in one write.
 * Parents first.
 */
export function cpusetMoves(
  targets: ReadonlyMap<string, Target>,
  state: CgroupState,
  removed: ReadonlySet<string>,
  file: CpusetFile,
): readonly Move[] {
  const nodes = cpusetNodes(targets, state, removed, file);
  const held = new Map<string, CpuSet>();
  const heldBelow = new Map<string, CpuSet>();
  for (const node of [...nodes.values()].reverse()) {
    const own = heldAfterRelease(node, heldBelow.get(node.path) ?? NONE);
    held.set(node.path, own);
    const parent = parentOf(node.path);
    // v2 takes any set and intersects it with the parent's by itself: nothing has to be held for children there.
    if (parent !== null && state.version === 1) heldBelow.set(parent, (heldBelow.get(parent) ?? NONE) | own);
  }
  const moves = [...nodes.values()].map((node) =>
    moveOf(node, held.get(node.path) ?? NONE, heldBelow.get(node.path) ?? NONE, file),
  );
  return moves.filter((move) => move !== null);
}

function heldAfterRelease({ old, next }: CpusetNode, childrenHold: CpuSet): CpuSet {
  const common = old & (next | childrenHold);
  return common === NONE ? old : common;
}

function moveOf({ path, old, next }: CpusetNode, held: CpuSet, childrenHold: CpuSet, file: CpusetFile): Move | null {
  const claimed = next | childrenHold;
  if (held === old && claimed === held && next === claimed) return null;
  return {
    path,
    file,
    release: held === old ? null : formatCpuset(held),
    claim: claimed === held ? null : formatCpuset(claimed),
    settle: next === claimed ? null : formatCpuset(next),
    gives: without(old, held),
    takes: without(claimed, held),
  };
}
