import type { Result } from "../../base/result.ts";
import type { Container, Pod } from "../../model/pod.ts";

/** A set of NUMA nodes: bit i is the machine's i-th node in ascending order of ids (`NumaNodes`), at most `MAX_NUMA_NODES`. */
export type NumaMask = number;
/** Masks are 32-bit integers, and their sign stays out of it. */
export const MAX_NUMA_NODES = 31;

/** A possible placement of a request. kubelet 1.36: topologymanager.TopologyHint. */
export interface TopologyHint {
  /** The nodes; null: any. */
  readonly nodes: NumaMask | null;
  readonly preferred: boolean;
}
export const ANY_NODE: TopologyHint = { nodes: null, preferred: false };

/** Resource -> the ways to place it. Null: no preference; an empty list: it cannot be placed. */
export type ResourceHints = ReadonlyMap<string, readonly TopologyHint[] | null>;

/** Why a manager assigns nothing, in the kubelet's words. */
export interface AllocateError {
  readonly message: string;
  /**
   * The name of an error that the kubelet types (`SMTAlignmentError`): it refuses the pod under this name, with the bare
   * message.
   */
  readonly reason?: string;
}

/**
 * A manager that knows where a container's share of its resource may come from, and gives it. It keeps the assignments that
 * it was made from and adds to them. kubelet 1.36: topologymanager.HintProvider.
 */
export interface HintProvider {
  /** The resources of this one container. */
  containerHints(pod: Pod, container: Container): ResourceHints;
  /** Returns the hints for the whole pod, with pod scope. */
  podHints(pod: Pod): ResourceHints;
  /**
   * Assigns to one container, near `affinity`. After an error nothing of this container is assigned, except by the
   * device manager: resources assigned before the one that failed stay assigned.
   */
  allocate(pod: Pod, container: Container, affinity: TopologyHint): Result<void, AllocateError>;
  /**
   * Instead of `allocate`, for a pod with pod-level resources under pod scope and the gate PodLevelResourceManagers. A manager
   * without it gives nothing then, as the device manager does.
   */
  allocatePod?(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
}

/** The machine's NUMA nodes, ascending, and the masks over them. */
export interface NumaNodes {
  readonly ids: readonly number[];
  /** The bit of each node; undefined: the machine does not have the node. */
  readonly bitOf: ReadonlyMap<number, number>;
  readonly all: NumaMask;
}

/** `ids` in any order, without two of a kind; at most `MAX_NUMA_NODES`. */
export function numaNodes(ids: Iterable<number>): NumaNodes {
  const sorted = [...ids].sort((a, b) => a - b);
  return { ids: sorted, bitOf: new Map(sorted.map((id, i) => [id, 1 << i])), all: 2 ** sorted.length - 1 };
}

/** The ids of a mask, ascending. */
export const idsOf = (nodes: NumaNodes, mask: NumaMask): number[] =>
  nodes.ids.filter((_, i) => (mask & (1 << i)) !== 0);

/** The nodes of the list that the machine has. */
export const maskOf = (nodes: NumaNodes, ids: Iterable<number>): NumaMask => {
  let mask = 0;
  for (const id of ids) mask |= nodes.bitOf.get(id) ?? 0;
  return mask;
};

/** The number of nodes in a mask. */
export function countNodes(mask: NumaMask): number {
  let left = mask - ((mask >>> 1) & 0x55555555);
  left = (left & 0x33333333) + ((left >>> 2) & 0x33333333);
  return (((left + (left >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
