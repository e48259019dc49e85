import type { Container, Pod } from "../../model/pod.ts";
import type { Result } from "../../model/result.ts";

/** A set of NUMA nodes: bit i is the machine's i-th node in ascending order of ids (`NumaNodes`), at most `MOST_NUMA_NODES`. */
export type NumaMask = number;
/** Masks are 32-bit integers, and their sign stays out of it. */
export const MOST_NUMA_NODES = 31;

/** A way to place what is asked. kubelet 1.36: topologymanager.TopologyHint. */
export interface TopologyHint {
  /** Null: any node. */
  readonly nodes: NumaMask | null;
  readonly preferred: boolean;
}
export const ANY_NODE: TopologyHint = { nodes: null, preferred: false };

/** Resource -> the ways to place it. Null: no preference; an empty list: it cannot be placed. */
export type ResourceHints = ReadonlyMap<string, readonly TopologyHint[] | null>;

/** Why a manager gives nothing, in the kubelet's words. */
export interface AllocateError {
  readonly message: string;
  /** Of an error that the kubelet types (`SMTAlignmentError`): it refuses the pod under this name, with the bare message. */
  readonly reason?: string;
}

/**
 * A manager that knows where a container's share of its resource may come from, and gives it. It keeps the assignments that
 * it was made from and adds to them. kubelet 1.36: topologymanager.HintProvider.
 */
export interface HintProvider {
  /** The resources of this one container. */
  containerHints(pod: Pod, container: Container): ResourceHints;
  /** The same for the whole pod, with pod scope. */
  podHints(pod: Pod): ResourceHints;
  /**
   * Assigns to one container, near `affinity`. After an error nothing of this container is assigned, except by the device
   * manager: it keeps what it gave of the resources before the one that failed.
   */
  allocate(pod: Pod, container: Container, affinity: TopologyHint): Result<void, AllocateError>;
  /**
   * Instead of `allocate`, for a pod with pod-level resources under pod scope and the gate PodLevelResourceManagers. A manager
   * without it gives nothing then, as the device manager does.
   */
  allocatePod?(pod: Pod, affinity: TopologyHint): Result<void, AllocateError>;
}
