import type { DeviceIds } from "./device-decision.ts";
import type { Bytes } from "./units.ts";

/** The decisions of the kubelet's CPU, memory, device and topology managers. CPU sets are lists such as `0-3,8`. */

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}
/** A way to place a resource; `numaNodes` null: on any node. */
export interface Hint {
  readonly numaNodes: readonly number[] | null;
  readonly preferred: boolean;
}
/** Resource -> the ways to place it; null: no preference; none: it cannot be placed. */
export type Hints = Readonly<Record<string, readonly Hint[] | null>>;

/** What the pod's status would say; `reason` is for example `TopologyAffinityError`. */
export interface PodRefusal {
  readonly reason: string;
  readonly message: string;
  /** The container whose turn it was; null where the pod as a whole was refused. */
  readonly container: string | null;
}
/** Hints of one container, or with pod scope of the whole pod (`container` null), and what they merge to. */
export interface Placement {
  readonly container: string | null;
  readonly hints: Hints;
  /** Resources with more hints than are told, the preferred ones first. */
  readonly cutShort: readonly string[];
  readonly merged: Hint;
  readonly admitted: boolean;
}

/** What every decision of a manager tells. */
export interface Managed {
  /** Why a kubelet with this configuration, machine and state would not start, in its words; empty when it would. */
  readonly startErrors: readonly string[];
  /** What the kubelet takes without a word and a person should know: each names its file. */
  readonly warnings: readonly string[];
  /** Null without a pod in the ask, or when it would be admitted. */
  readonly refusal: PodRefusal | null;
}

export interface CpuAssignment {
  readonly pod: PodRef;
  readonly container: string;
  readonly cpus: string;
}
/** A running container whose cpuset is not what it should be. */
export interface CpuChange extends CpuAssignment {
  readonly containerId: string;
  /** Null: what it has now is not known. */
  readonly from: string | null;
}
export interface CpusDecision extends Managed {
  readonly policy: "none" | "static";
  readonly options: Readonly<Record<string, string>>;
  readonly reserved: string;
  /** The CPUs of all containers without exclusive ones, after the asked pod came in. */
  readonly sharedPool: string;
  /** What the asked pod's containers get; `exclusive` false: the shared pool. */
  readonly assigned: readonly { readonly container: string; readonly cpus: string; readonly exclusive: boolean }[];
  /** Every exclusive assignment, the asked pod's with them. */
  readonly assignments: readonly CpuAssignment[];
  readonly placements: readonly Placement[];
  readonly reconcile: readonly CpuChange[];
  /** CPUs that two pods hold alone: the kubelet starts on such a file without a word. */
  readonly overlaps: readonly {
    readonly cpus: string;
    readonly holders: readonly { readonly pod: PodRef; readonly container: string }[];
  }[];
}

export interface MemoryBlock {
  readonly numaNodes: readonly number[];
  /** `memory` or `hugepages-2Mi`. */
  readonly resource: string;
  readonly size: Bytes;
}
export interface MemoryTable {
  readonly total: Bytes;
  readonly systemReserved: Bytes;
  readonly allocatable: Bytes;
  readonly reserved: Bytes;
  readonly free: Bytes;
}
export interface MemoryDecision extends Managed {
  readonly policy: "None" | "Static";
  readonly numaNodes: readonly {
    readonly id: number;
    /** The nodes that it forms a group with, itself among them. */
    readonly group: readonly number[];
    readonly assignments: number;
    readonly memory: Readonly<Record<string, MemoryTable>>;
  }[];
  readonly assigned: readonly { readonly container: string; readonly blocks: readonly MemoryBlock[] }[];
  readonly assignments: readonly {
    readonly pod: PodRef;
    readonly container: string;
    readonly blocks: readonly MemoryBlock[];
  }[];
  readonly placements: readonly Placement[];
}

/** How free CPUs and memory lie about. */
export interface Fragments {
  readonly freeCpus: number;
  /** Cores all of whose CPUs are free. */
  readonly freeCores: number;
  readonly freeMemory: Bytes;
  /** The most exclusive CPUs that one container can get on one NUMA node. */
  readonly largestBlock: number;
  /** Free CPUs whose core is partly taken, as a share of the free CPUs. */
  readonly splitShare: number;
}
export interface PodSize {
  readonly cpus: number;
  readonly memory: Bytes;
}
export interface TopologyDecision extends Managed {
  readonly policy: "none" | "best-effort" | "restricted" | "single-numa-node";
  readonly scope: "container" | "pod";
  readonly options: Readonly<Record<string, string>>;
  /** What the asked pod's containers get of each manager. */
  readonly assigned: readonly {
    readonly container: string;
    readonly cpus: string;
    readonly exclusive: boolean;
    readonly memory: readonly MemoryBlock[];
    readonly devices: DeviceIds;
  }[];
  readonly placements: readonly Placement[];
  /** After the asked pod came in. */
  readonly numaNodes: readonly (Fragments & {
    readonly numaNode: number;
    /** The largest Guaranteed pod that would still come in wholly on this node; null: none. */
    readonly largestPod: PodSize | null;
  })[];
  readonly node: Fragments & {
    /** The share of the free CPUs that the largest block leaves out. */
    readonly scattered: number;
    readonly largestPod: PodSize | null;
  };
}
