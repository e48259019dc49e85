import type { DevicesPerNuma } from "../../api/decide/devices/checkpoint.ts";
import type { Block } from "../../api/decide/memory/state.ts";
import type { Pod } from "../../api/model/pod.ts";

/** What a container holds of one resource; under -1 are devices that are on no NUMA node. */
export interface HeldDevices {
  readonly resource: string;
  readonly perNuma: DevicesPerNuma;
}
/** What may be given out of one resource. */
export interface AllocatableDevices {
  readonly resource: string;
  /** `numaNodes` absent: its plugin does not say where it is; empty: it says so, and names no node. */
  readonly devices: readonly { readonly id: string; readonly numaNodes?: readonly number[] | undefined }[];
}

/**
 * What the podresources API tells, of one moment: a source does not change once it is made. kubelet 1.36: PodsProvider,
 * DevicesProvider, CPUsProvider, MemoryProvider.
 */
export interface PodResourcesSource {
  /** All that the node knows, each with its uid: ended and refused ones too. kubelet 1.36: podManager.GetPods. */
  readonly pods: readonly Pod[];
  /** Those that are active, each with its uid; a pod that was refused is none. kubelet 1.36: GetActivePods. */
  readonly activePods: readonly Pod[];
  devices(podUid: string, container: string): readonly HeldDevices[];
  /** CPUs that the container has alone; none of a shared pool. */
  cpus(podUid: string, container: string): Iterable<number>;
  memory(podUid: string, container: string): readonly Block[];
  readonly allocatable: {
    /** The healthy ones, held or not. */
    readonly devices: readonly AllocatableDevices[];
    /** Those that the policy may give to one container alone. */
    readonly cpus: Iterable<number>;
    readonly memory: readonly Block[];
  };
}
