import type { Managed, Placement, PodRef } from "./managers.ts";

export interface DeviceResourceState {
  readonly resource: string;
  /** `unregistered`: known from the checkpoint only; `removed`: its plugin stopped longer than 5 minutes ago. */
  readonly plugin: "registered" | "stopped" | "unregistered" | "removed";
  readonly capacity: number;
  readonly allocatable: number;
  /** Held by containers. */
  readonly allocated: number;
  /** What the node's status says once a pod that holds devices is looked at: never less than is allocated. */
  readonly sanitized: number;
}
/** Resource -> device ids. */
export type DeviceIds = Readonly<Record<string, readonly string[]>>;
export interface DeviceGift {
  readonly container: string;
  readonly resource: string;
  readonly devices: readonly string[];
  /** Those of `devices` that an init container of the pod had before. */
  readonly reused: readonly string[];
  /** Those that the plugin preferred. */
  readonly preferred: readonly string[];
  /** Those on the NUMA nodes of the affinity. */
  readonly aligned: readonly string[];
}
export interface NameValue {
  readonly name: string;
  readonly value: string;
}
/** Two plugins want different things under one name; the first is what the container gets. */
export interface DeviceConflict {
  readonly kind: "env" | "mount" | "device" | "annotation";
  /** The variable, the path in the container, or the annotation. */
  readonly name: string;
  readonly kept: { readonly resource: string; readonly value: string };
  readonly dropped: { readonly resource: string; readonly value: string };
}
/** What a container gets for its devices, the answers of several plugins put together; the first of two stays. */
export interface DeviceOptions {
  readonly envs: readonly NameValue[];
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string; readonly readOnly: boolean }[];
  readonly devices: readonly {
    readonly pathOnHost: string;
    readonly pathInContainer: string;
    readonly permissions: string;
  }[];
  readonly annotations: readonly NameValue[];
  readonly cdiDevices: readonly string[];
  readonly conflicts: readonly DeviceConflict[];
}
export interface DevicesDecision extends Managed {
  /** Why kubelet_internal_checkpoint was not taken: the kubelet logs it and goes on as if no device were held. */
  readonly checkpointError: string | null;
  readonly resources: readonly DeviceResourceState[];
  /** What the asked pod's containers get. */
  readonly assigned: readonly DeviceGift[];
  /** Every container with devices, the asked pod's with them. */
  readonly assignments: readonly {
    readonly pod: PodRef;
    readonly container: string;
    readonly devices: DeviceIds;
    /** Null where no plugin has answered yet. */
    readonly options: DeviceOptions | null;
    /** Resources whose plugin has not said yet what the container gets. */
    readonly pending: readonly string[];
  }[];
  readonly placements: readonly Placement[];
  /** Devices that two pods hold: the kubelet takes such a checkpoint without a word. */
  readonly overlaps: readonly {
    readonly resource: string;
    readonly device: string;
    readonly pods: readonly PodRef[];
  }[];
  /** Uids of pods that held devices and are no longer active. */
  readonly purged: readonly string[];
  /** What a plugin would be asked; the natural order of ids stands in for its answer. Post it in devicePlugins[].preferred. */
  readonly unanswered: readonly {
    readonly resource: string;
    readonly available: readonly string[];
    readonly mustInclude: readonly string[];
    readonly size: number;
  }[];
}
