/** The messages of podresources.proto, and of the one before it, as proto-loader takes them. */

export interface TopologyInfo {
  readonly nodes: readonly { readonly ID: number }[];
}
export interface ContainerDevices {
  readonly resourceName: string;
  readonly deviceIds: readonly string[];
  /** Absent: the plugin does not say where the device is. */
  readonly topology?: TopologyInfo;
}
export interface ContainerMemory {
  /** `memory`, `hugepages-2Mi`. */
  readonly memoryType: string;
  /** Bytes. */
  readonly size: number;
  readonly topology: TopologyInfo;
}
export interface ContainerResources {
  readonly name: string;
  readonly devices: readonly ContainerDevices[];
  /** Only those that the container has alone. */
  readonly cpuIds: readonly number[];
  readonly memory: readonly ContainerMemory[];
}
export interface PodResources {
  readonly name: string;
  readonly namespace: string;
  readonly containers: readonly ContainerResources[];
}

export interface ListPodResourcesResponse {
  readonly podResources: readonly PodResources[];
}
export interface AllocatableResourcesResponse {
  readonly devices: readonly ContainerDevices[];
  readonly cpuIds: readonly number[];
  readonly memory: readonly ContainerMemory[];
}
export interface GetPodResourcesRequest {
  readonly podName: string;
  readonly podNamespace: string;
}
export interface GetPodResourcesResponse {
  readonly podResources: PodResources;
}

/** v1alpha1.ListPodResourcesResponse. */
export interface AlphaListPodResourcesResponse {
  readonly podResources: readonly {
    readonly name: string;
    readonly namespace: string;
    readonly containers: readonly {
      readonly name: string;
      readonly devices: readonly Pick<ContainerDevices, "resourceName" | "deviceIds">[];
    }[];
  }[];
}
