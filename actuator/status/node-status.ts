import type { ClaimHealth } from "../../api/decide/dra/health.ts";
import type { PendingResize, PodEnd, PodEvent, PodState, Refusal } from "../lifecycle/record.ts";
import type { DriftCause, HarmlessCause } from "../plan/drift.ts";
import type { PodUsage } from "../stats/usage.ts";
import type { ProbeRow } from "./probe-row.ts";

/** The daemon's state as a person sees it: answered on its own address, and kept in a file for when it does not run. */
export interface NodeStatus {
  readonly at: string;
  readonly nodeName: string;
  readonly pid: number;
  /** `observe`: nothing is started, stopped or written. */
  readonly mode: "observe" | "enforce";
  /** False: the daemon only compares the cgroups of pods that a kubelet runs. Absent: it runs pods. */
  readonly runsPods?: false | undefined;
  /** The setting of that name, the socket of its pods' runtime. Absent: an older daemon. */
  readonly runtimeEndpoint?: string | undefined;
  readonly runtime: {
    readonly name: string;
    readonly version: string;
    /** The conditions that keep it from running pods, or those with a network of their own. Absent: none. */
    readonly notReady?: readonly string[] | undefined;
  } | null;
  /** The figures of the last pass. */
  readonly pass: {
    readonly sequence: number;
    readonly at: string;
    readonly cpuMs: number;
    readonly tookMs: number;
    readonly wrote: number;
    /** Files with another value than wanted, for which no rounding or formula accounts. */
    readonly drift: number;
    /** The first of those files, as the pass found them, at most 100. Absent: there are none, or an older daemon. */
    readonly drifted?: readonly DriftRow[] | undefined;
    readonly decidedBy: "api" | "here" | null;
    /** False: nothing was decided, or no file was read, so `drift` means nothing. Absent: they were compared. */
    readonly compared?: false | undefined;
    /** When the pass over the cgroups was of which these tell. Absent: there was none, or an older daemon. */
    readonly cgroupsAt?: string | undefined;
  } | null;
  readonly pods: readonly PodRow[];
  /** Another kubelet uses this runtime, so no pod is admitted. Absent: none is known to. */
  readonly otherKubelet?: OtherKubeletView | undefined;
  /** Devices by resource. Absent: this daemon takes no device plugins. */
  readonly devices?: readonly DeviceRow[] | undefined;
  /** The probes by pod, container and type. Absent: this daemon probes nothing. */
  readonly probes?: readonly ProbeRow[] | undefined;
  /** The daemon's own files that cannot be written now, in one line each. Absent: an older daemon. */
  readonly unwritable?: readonly string[] | undefined;
  /** Faults and notices that hold now, in one line each. */
  readonly problems: readonly string[];
  /** Manifests that are not run, with the fields that keep them from it. */
  readonly refusedManifests: readonly {
    readonly pod: string;
    /** The file; absent: its source is no file. */
    readonly file?: string | undefined;
    /** Lines and columns of that file, from 1. */
    readonly faults: readonly {
      readonly path: string;
      readonly message: string;
      readonly line?: number | undefined;
      readonly column?: number | undefined;
    }[];
  }[];
  /** The newest last. */
  readonly events: readonly SeenEvent[];
}

/** A file of a cgroup with another value than wanted. */
export interface DriftRow {
  /** The cgroup's path, below the daemon's root. */
  readonly path: string;
  readonly file: string;
  /** The value as the pass found it. */
  readonly actual: string;
  readonly wanted: string;
  readonly cause: DriftCause;
}
/** The signs of another kubelet, and since when. */
export interface OtherKubeletView {
  readonly since: string;
  /**
   * `process`: a kubelet's, that uses or may use this runtime; `sandboxes`: of a kubelet, in this runtime; `stops`: this daemon's
   * own pods were stopped by somebody else; `listener`: a kubelet's port or socket is in use.
   */
  readonly signs: readonly ("process" | "sandboxes" | "stops" | "listener")[];
  readonly message: string;
}

/** Equal events are one: `at` is when it was seen last. */
export interface SeenEvent extends PodEvent {
  readonly count: number;
  readonly firstAt: string;
}

/** A resource of a device plugin, in whole devices. */
export interface DeviceRow {
  readonly resource: string;
  /** `stopped`: its stream ended; `unregistered`: it has not come back since the start; `removed`: stopped longer than the grace. */
  readonly plugin: "registered" | "stopped" | "unregistered" | "removed";
  /** Its socket's path; null: it has not registered since the start. */
  readonly endpoint: string | null;
  readonly capacity: number;
  /** The number of healthy devices. */
  readonly allocatable: number;
  /** The number of devices that containers hold, including those that the plugin no longer lists. */
  readonly allocated: number;
  /** Changes of health since the start. */
  readonly flips: number;
  /** The listed devices by NUMA node; -1: the plugin does not say where. A device of several nodes counts at each. */
  readonly numa: readonly { readonly node: number; readonly devices: number; readonly allocated: number }[];
  readonly holders: readonly DeviceHolder[];
  /** Containers that have ids, and no answer of the plugin to them yet. */
  readonly pending: number;
}
export interface DeviceHolder {
  /** NAMESPACE/NAME, or the uid of an unknown pod. */
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  /** The device ids in natural order. */
  readonly ids: readonly string[];
  /** The NUMA nodes of the devices; empty: not reported. */
  readonly numa: readonly number[];
  /** True: the plugin has not answered for them yet. */
  readonly isPending: boolean;
}

export interface PodRow {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly state: PodState;
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /** The first reason why it is not well: of the status, a waiting container, or a refusal; or empty. */
  readonly reason: string;
  readonly message: string;
  readonly qos: "Guaranteed" | "Burstable" | "BestEffort";
  readonly priority: number | null;
  readonly isStatic: boolean;
  readonly ip: string;
  /** When it was first seen; null: not known. */
  readonly seenAt: string | null;
  readonly startedAt: string | null;
  readonly containers: readonly ContainerRow[];
  /** Files of the pod's cgroup and those of its running containers; those with the wanted value have `actual` equal to it. */
  readonly cgroups: readonly CgroupRow[];
  readonly resources: PodResources;
  readonly usage: PodUsage | null;
  /** As in PodRecord. */
  readonly refusal: Refusal | null;
  readonly end: PodEnd | null;
  readonly resize: PendingResize | null;
  /** How often another process stopped a container of it. Absent: never. */
  readonly stoppedByOthers?: number | undefined;
}
/** Resources of the pod as a whole, as its cgroup has them; null: none. */
export interface PodResources {
  readonly cpuRequestMilli: number | null;
  readonly cpuLimitMilli: number | null;
  readonly memoryRequestBytes: number | null;
  readonly memoryLimitBytes: number | null;
}
export interface ContainerRow {
  readonly name: string;
  readonly kind: "init" | "sidecar" | "container";
  readonly id: string | null;
  /** `unknown`: not observed; only its name, kind, image and CPUs are known. */
  readonly state: "waiting" | "running" | "terminated" | "unknown";
  readonly reason: string;
  readonly message: string;
  readonly exitCode: number | null;
  /** The end of the previous instance; null: none. Absent: an older daemon. */
  readonly lastState?: ContainerEnd | null | undefined;
  readonly restarts: number;
  readonly ready: boolean;
  /** Its startup probe has succeeded, or it has none. Absent: an older daemon. */
  readonly started?: boolean | undefined;
  readonly image: string;
  readonly cpuset: string | null;
  /** The health of its devices, from claims and plugins. Absent: not known. */
  readonly allocatedResourcesStatus?: readonly ClaimHealth[] | undefined;
}
/** The end of a container, from v1.ContainerStateTerminated. */
export interface ContainerEnd {
  readonly exitCode: number;
  /** `Error`, `OOMKilled`, `Completed`; empty: the runtime gave none. */
  readonly reason: string;
  /** The container's termination message, or why its end is not known. */
  readonly message: string;
  readonly finishedAt: string | null;
}
export interface CgroupRow {
  readonly path: string;
  readonly files: readonly FileRow[];
}
export interface FileRow {
  readonly file: string;
  readonly wanted: string;
  /** The actual text; null: the file does not exist, or cannot be read. */
  readonly actual: string | null;
  /** Why `actual` stays another one. Absent: it is as wanted, or is to be put right. */
  readonly harmless?: HarmlessCause | undefined;
  /** Why it could not be written. Absent: it was, or needed not to be. */
  readonly fault?: string | undefined;
}
