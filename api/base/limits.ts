/** The bounds of every list and every amount that a caller sends; README and OpenAPI list them from here. */
export const LIMITS = {
  bodyBytes: 8 * 1024 * 1024,
  pods: 512,
  containersPerPod: 64,
  volumesPerPod: 256,
  resourcesPerList: 64,
  /** The maximum number of device plugin resources, also for plugin registrations. */
  deviceResources: 1024,
  /**
   * The limit for a node's capacity and its allocatable: its own resources and those of device plugins, including
   * plugins that have not come back since a restart.
   */
  nodeResources: 4096,
  /** The limit for pods in a kubelet's state file, which may still list removed pods. */
  statePods: 2048,
  /** Characters of a state file. */
  stateText: 4 * 1024 * 1024,
  pageSizes: 64,
  cpus: 4096,
  numaNodes: 64,
  devices: 20_000,
  /** ResourceClaims, ResourceSlices or DeviceClasses. */
  resourceObjects: 4096,
  images: 20_000,
  /** Tags, or digests, of one image. */
  imageNames: 512,
  imageLayers: 512,
  /** The maximum number of containers, and of sandboxes, that a runtime lists, dead ones included. */
  runtimeContainers: 32_768,
  labels: 512,
  textLength: 4096,
  /** The maximum of whole units, for one quantity and for the sum of a snapshot: beyond it, sums would not be exact. */
  units: Number.MAX_SAFE_INTEGER,
  /**
   * The maximum of thousandths of a CPU, for one quantity and for the sum: multiplied by the longest period (1 s) it
   * stays exact.
   */
  milliCpu: Math.floor(Number.MAX_SAFE_INTEGER / 1_000_000),
  issues: 100,
} as const;
