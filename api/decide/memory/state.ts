/** `size` bytes of `type` (`memory`, `hugepages-2Mi`) from all of `numaAffinity` (ids, ascending) together. kubelet 1.36: state.Block. */
export interface Block {
  readonly numaAffinity: readonly number[];
  readonly type: string;
  readonly size: number;
}

/** One kind of memory of a NUMA node, in bytes; free + reserved = allocatable. kubelet 1.36: state.MemoryTable. */
export interface Table {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  readonly reserved: number;
  readonly free: number;
}
/** kubelet 1.36: state.NUMANodeState. */
export interface NodeMemory {
  /** Blocks that lie on this node, wholly or in part: a container with memory and huge pages counts twice. */
  readonly numberOfAssignments: number;
  /** By kind of memory. */
  readonly memoryMap: ReadonlyMap<string, Table>;
  /** The nodes that share blocks with this one, itself among them. */
  readonly cells: readonly number[];
}
/** By NUMA node id. */
export type MachineMemory = ReadonlyMap<number, NodeMemory>;

/** Pod uid -> container name -> blocks. */
export type ContainerBlocks = ReadonlyMap<string, ReadonlyMap<string, readonly Block[]>>;
/** Pod uid -> what a pod with pod-level resources holds as a whole. */
export type PodBlocks = ReadonlyMap<string, readonly Block[]>;

/** What the memory manager knows, and what memory_manager_state keeps of it. */
export interface MemoryState {
  readonly machineState: MachineMemory;
  readonly entries: ContainerBlocks;
  readonly podEntries: PodBlocks;
}
export const EMPTY_STATE: MemoryState = { machineState: new Map(), entries: new Map(), podEntries: new Map() };

/**
 * Why there is no memory manager. `start`: the kubelet would not start, and says so in these words. `panic`: it would fall
 * over. `bound`: more than this answers.
 */
export interface MemoryFault {
  readonly code: "start" | "panic" | "bound";
  readonly message: string;
}
/** What Go says as the kubelet falls over a table or a node that is not there. */
export const NIL_POINTER = "runtime error: invalid memory address or nil pointer dereference";
