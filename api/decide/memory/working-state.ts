import { copyMachine, type OpenMachine } from "./machine-memory.ts";
import type { Block, MemoryState } from "./state.ts";

/** A working copy of a MemoryState. kubelet 1.36: state.State. */
export interface WorkingState {
  readonly machineState: OpenMachine;
  readonly entries: Map<string, Map<string, readonly Block[]>>;
  readonly podEntries: Map<string, readonly Block[]>;
}

export const workingState = (state: MemoryState): WorkingState => ({
  machineState: copyMachine(state.machineState),
  entries: new Map([...state.entries].map(([uid, containers]) => [uid, new Map(containers)])),
  podEntries: new Map(state.podEntries),
});

export function setBlocks({ entries }: WorkingState, uid: string, container: string, blocks: readonly Block[]): void {
  const containers = entries.get(uid) ?? new Map<string, readonly Block[]>();
  entries.set(uid, containers.set(container, blocks));
}

/** The container's blocks, which it no longer has. A pod without containers is no longer there. */
export function takeBlocks({ entries }: WorkingState, uid: string, container: string): readonly Block[] | undefined {
  const containers = entries.get(uid);
  const blocks = containers?.get(container);
  containers?.delete(container);
  if (containers?.size === 0) entries.delete(uid);
  return blocks;
}
