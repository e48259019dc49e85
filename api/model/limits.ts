/** Every list and every amount that a caller sends has a bound; README and OpenAPI state them from here. */
export const LIMITS = {
  bodyBytes: 8 * 1024 * 1024,
  pods: 512,
  containersPerPod: 64,
  volumesPerPod: 256,
  resourcesPerList: 64,
  /** Resources of device plugins; whoever takes plugins' registrations takes no more. */
  deviceResources: 1024,
  /**
   * The limit for a node's capacity and for its allocatable: its own resources and those of device plugins, with room for
   * plugins that were there before a restart and have not come back.
   */
  nodeResources: 4096,
  /** The limit for pods in a kubelet's state file, which may still name pods that are gone. */
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
  /** Containers, and sandboxes, that a runtime lists: dead ones too. */
  runtimeContainers: 32_768,
  labels: 512,
  textLength: 4096,
  /** Whole units of one quantity, and of all quantities of a snapshot together: beyond, sums would not be exact. */
  units: Number.MAX_SAFE_INTEGER,
  /** Thousandths of a CPU, of one quantity and of all together: times the longest period (1 s) it stays exact. */
  milliCpu: Math.floor(Number.MAX_SAFE_INTEGER / 1_000_000),
  issues: 100,
} as const;
