import { fieldsOf as fieldsIn } from "../base/own.ts";
import { toNanos } from "../model/amount.ts";
import { parseQuantity } from "../model/quantity.ts";
import { hugePageBytes } from "../model/snapshot.ts";
import { type NotedNode, removedFlags, type VersionNote } from "./note.ts";
import { profileAfter } from "./profile.ts";
import { fieldsOf, gatesOf, withoutFlags } from "./tables.ts";
import { CADVISOR_FLAGS } from "./v1_34.ts";
import { v1_36 } from "./v1_36.ts";

/** The gates that differ from 1.36. kubelet 1.37.2: DefaultFeatureGate. */
const GATES = `
  alpha off: APIServerWebhookAuthenticationToken *AtomicWriteVolumeUserFields
    CompositePodGroup<GenericWorkload,TopologyAwareWorkloadScheduling ConsistentListFromCacheSkipTimeoutFallback
    DRADerivedAttributes<DynamicResourceAllocation
    DRADeviceCompatibilityGroups<DRAPartitionableDevices,DynamicResourceAllocation
    *DRAOptionalNodeOperations<DynamicResourceAllocation,NodeDeclaredFeatures
    DRAPartitionableDevicesType<DRAPartitionableDevices,DRAResourcePoolStatus,DynamicResourceAllocation
    *DefaultPodSysctls *EmptyDirVolumeMode EventedPLEG<PLEGOnDemandRelist EvictionRequestAPI *GRPCContainerProbeTLS
    *H2CContainerProbe<NodeDeclaredFeatures
    *InPlacePodVerticalScalingMemoryBackedVolumes<InPlacePodVerticalScaling,NodeDeclaredFeatures
    *InPlacePodVerticalScalingSchedulerPreemption<InPlacePodVerticalScaling InterPodAffinityHostnameFastPath
    KubeProxyNFTablesLocalhostNodePorts *KubeletAllocatedPodsEndpoint<InPlacePodVerticalScaling
    NodeLifecycleConditions PodGroupPreemptionPolicy<GenericWorkload SchedulerPreQueueingHints
    StatefulSetRecreateStrategy *VolumeBindMountOptions
  beta off: DRAFractionalCapacityRange<DRAConsumableCapacity
    DRAWorkloadResourceClaims<DynamicResourceAllocation,GenericWorkload GenericWorkload
    PodAndContainerStatsFromCRI PodLevelResourceManagers<PodLevelResources
  beta on: AllowUnsafeMalformedObjectDeletion ConcurrentWatchObjectDecode EtcdRangeStream
    ExcludeAdmissionWebhookVirtualResources HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero
    *HugepageAwareEviction KubeletInUserNamespace ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet
    MemoryQoS NFTablesNetlink NativeHistograms NodeControllerLeaseCircuitBreaker<AtomicFIFO PersistentVolumeClaimUnusedSinceTime
    *PodLevelResourcesFixDefaulting<PodLevelResources *PodLevelResourcesFixKubeletQOSClass<PodLevelResources
    PodsAPI StaleControllerConsistencyHPA<AtomicFIFO StorageCapacityScoring
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
    VolumeLimitScaling WatchListCompression WebhookRoundTripLoadBalancing
  deprecated off locked: DeclarativeValidationTakeover<DeclarativeValidation
  deprecated on: KubeProxyIPVS
  deprecated on locked: DisableCPUQuotaWithExclusiveCPUs
  stable on: ClusterTrustBundle ClusterTrustBundleProjection<ClusterTrustBundle
    DRADeviceTaintRules<DRADeviceTaints DRADeviceTaints<DynamicResourceAllocation PodCertificateRequest
    SELinuxMount StorageVersionMigrator
  stable on locked: DRAExtendedResource<DynamicResourceAllocation DRAPrioritizedList<DynamicResourceAllocation
    DRAResourceClaimDeviceStatus HPAConfigurableTolerance HostnameOverride
    InPlacePodVerticalScalingInitContainers<InPlacePodVerticalScaling,NodeDeclaredFeatures NodeDeclaredFeatures
    PLEGOnDemandRelist PodReadyToStartContainersCondition RelaxedServiceNameValidation
    WatchCacheInitializationPostStartHook
  removed: APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache
    GangScheduling JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown
    OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences
    RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints
    SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration WorkloadAwarePreemption
`;

/** New in 1.37. Source: k8s.io/kubelet v0.37.2, config/v1beta1. */
const FIELDS = `
  map[string]string: defaultPodSysctls
`;

const HUGE_PAGES_NOT_KNOWN = "how many the node has is not known here, and none are counted";

/** From the sources of 1.36.3 and 1.37.2. */
const NOTES: readonly VersionNote[] = [
  removedFlags("flags of cAdvisor", CADVISOR_FLAGS),
  {
    topic: "file",
    name: "/var/lib/kubelet/cpu_manager_state",
    begins: {
      what: "written as V4, with the form of older kubelets beside it; a file from before 1.18 (V1) is no longer read",
      before: "keep a copy",
    },
    ends: {
      what: "the older kubelet reads the V2 part of the file, and loses what pods have at pod level",
      before: "drain pods that have exclusive CPUs at pod level, and keep a copy",
    },
  },
  {
    topic: "file",
    name: "/var/lib/kubelet/memory_manager_state",
    begins: { what: "written as V3, with the form of older kubelets beside it", before: "keep a copy" },
    ends: {
      what: "the older kubelet reads the V1 part of the file, and loses what pods have at pod level",
      before: "drain pods that have pinned memory at pod level, and keep a copy",
    },
  },
  {
    topic: "behaviour",
    name: "eventRecordQPS",
    begins: {
      what: "0 means no limit; for older kubelets it means 5 events a second",
      before: "set it to 50, the default, unless the API server can take all events",
    },
    ends: { what: "0 is 5 events a second, where the newer kubelet has no limit", before: null },
    patch: { eventRecordQPS: 50 },
    concerns: ({ configuration }) => configuration["eventRecordQPS"] === 0,
  },
  {
    topic: "behaviour",
    name: "memory.available",
    begins: {
      what: "huge pages that were set apart are taken off it, so that evictions and MemoryPressure begin sooner",
      before: "recalculate the thresholds of memory.available without the huge pages",
    },
    ends: { what: "huge pages that were set apart count as available again: evictions begin later", before: null },
    concerns: ({ isOn, snapshot }) => isOn("HugepageAwareEviction") && (hugePageBytes(snapshot) ?? 0) > 0,
  },
  {
    topic: "behaviour",
    name: "memory.available",
    begins: {
      what: `huge pages that were set apart are taken off it, so that evictions and MemoryPressure begin sooner; ${HUGE_PAGES_NOT_KNOWN}`,
      before: "look up hugepages-* in status.capacity of the node, and recalculate the thresholds without them",
    },
    ends: {
      what: `huge pages that were set apart count as available again: evictions begin later; ${HUGE_PAGES_NOT_KNOWN}`,
      before: null,
    },
    concerns: ({ isOn, snapshot }) => isOn("HugepageAwareEviction") && hugePageBytes(snapshot) === null,
  },
  {
    topic: "behaviour",
    name: "CPU of kubeReserved and systemReserved",
    begins: {
      what: "it is rounded to whole millis (0.0004 to 0, 0.0005 to 1m), and allocatable CPU uses the rounded value",
      before: "write it in whole millis, such as 100m",
    },
    ends: { what: "it is kept as written, below a milli as well", before: "write it in whole millis, such as 100m" },
    concerns: ({ configuration }) => reservesPartsOfMillis(configuration),
  },
  {
    topic: "behaviour",
    name: "SELinux labels of volumes",
    begins: {
      what: "on nodes with SELinux volumes are mounted with their label and no longer relabelled: pods with different labels cannot share a volume at the same time",
      before: "give such pods spec.securityContext.seLinuxChangePolicy: Recursive",
    },
    ends: { what: "volumes are relabelled again, file by file", before: null },
    concerns: ({ isOn }) => isOn("SELinuxMount"),
  },
  {
    topic: "behaviour",
    name: "memoryThrottlingFactor",
    begins: {
      what: "it is set, and with the gate MemoryQoS, on by default now, containers are throttled on cgroup v2 (memory.high); left out, they are not",
      before: "take it out, unless throttling is what you want",
    },
    patch: { memoryThrottlingFactor: null },
    concerns: ({ configuration, isOn, snapshot }) =>
      isOn("MemoryQoS") && configuration["memoryThrottlingFactor"] !== undefined && snapshot?.cgroup?.version !== 1,
  },
  {
    topic: "behaviour",
    name: "device plugins",
    begins: {
      what: "a plugin that registers a second time over one socket is refused (`device plugin already connected`)",
      before: "see that plugins register once, and with a new socket after the kubelet's restart",
    },
    concerns: ({ snapshot }) => (snapshot?.devices ?? null) !== null,
  },
  {
    topic: "behaviour",
    name: "the kubelet's read-only endpoints",
    begins: { what: "/metrics and the like take GET only", before: "change clients that use other methods" },
  },
  {
    topic: "event",
    name: "FailedToRetrieveImagePullSecret",
    begins: {
      what: "it comes only where a pull failed, no longer at each sync of the pod",
      before: "check alerts that count it",
    },
    ends: { what: "it comes at each sync of the pod again", before: "check alerts that count it" },
  },
  {
    topic: "event",
    name: "events of the node",
    begins: {
      what: "they carry the node's uid",
      before: "look for them by involvedObject.kind and name, whatever the uid",
    },
    ends: { what: "they carry no uid", before: "look for them by involvedObject.kind and name, whatever the uid" },
  },
];

function reservesPartsOfMillis({ reservedSystemCPUs, ...configuration }: NotedNode["configuration"]): boolean {
  // it replaces both
  if (typeof reservedSystemCPUs === "string" && reservedSystemCPUs !== "") return false;
  return ["kubeReserved", "systemReserved"].some((field) => {
    const { cpu } = fieldsIn(configuration[field]);
    const read = typeof cpu === "string" || typeof cpu === "number" ? parseQuantity(String(cpu)) : undefined;
    return read?.ok === true && toNanos(read.value.amount) % NANOS_OF_MILLI !== 0n;
  });
}
const NANOS_OF_MILLI = 1_000_000n;

// without a default, memory.high is not set
const { memoryThrottlingFactor: _, ...defaults } = v1_36.defaults;

export const v1_37 = profileAfter(v1_36, {
  version: "1.37",
  release: "1.37.2",
  policyVersion: "kubelet-1.37+7",
  gates: gatesOf(GATES, v1_36.gates),
  fields: fieldsOf(FIELDS, v1_36.fields),
  commandLine: withoutFlags(v1_36.commandLine, CADVISOR_FLAGS),
  podFields: new Set([
    ...v1_36.podFields,
    ...["EmptyDirVolumeSource.mode", "GRPCAction.mode", "HTTPGetAction.protocol"],
    ...["PodSpec.evictionResponders", "VolumeMount.bindMountOptions"],
  ]),
  defaults: defaults as typeof v1_36.defaults,
  behaviour: {
    ...v1_36.behaviour,
    // k8s.io/component-helpers v0.37.2: AggregateContainerRequests
    countsResizesByPod: true,
    // kubelet 1.37.2: manager.getAllocatedPods
    countsAllocatedOnly: true,
    // kubelet 1.37.2: startingResizedContainer
    resizesPodForStarting: true,
    claims: {
      ...v1_36.behaviour.claims,
      nodeOperationsSkipped: true,
      answersReplace: true,
      unpreparesByReference: true,
      podsWithoutGroup: "own-claims",
      healthByService: true,
      forgetsDevices: true,
    },
    safeSysctls: new Map([
      ...v1_36.behaviour.safeSysctls,
      ["net.ipv4.tcp_slow_start_after_idle", [4, 15]],
      ["net.ipv4.tcp_notsent_lowat", [4, 6]],
    ]),
    // k8s.io/component-helpers v0.37.2: nameToNamespace, prefixToNamespace
    namespacedSysctls: new Map([...v1_36.behaviour.namespacedSysctls, ["kernel.domainname", "UTS"], ["user.", "User"]]),
    memoryQosOfPods: true,
    limitsOfEachContainer: true,
    podMemoryLeftAtLeastZero: true,
    distributesBySocket: true,
    keepsHeldCpus: true,
    memoryRequestsFirst: true,
    roundsReservedCpu: true,
    stateFiles: "data",
    probePortsByName: true,
    // k8s.io/component-helpers v0.37.2: AllFeatures of nodedeclaredfeatures/features
    declaredFeatures: new Map([...v1_36.behaviour.declaredFeatures, ["VolumeBindMountOptions", "runtime"]]),
    resizeFeatures: [...v1_36.behaviour.resizeFeatures, "InPlacePodVerticalScalingMemoryBackedVolumes"],
    resizesWithNodeClaims: true,
    resizesWithClaims: true,
    // kubelet 1.37.2: ResourceConfigForPod, getEffectiveContainerMemoryRequest
    nodeClaims: "parts",
    sidecarStorageLimits: true,
    // the default until this version
    throttlingFactorWithoutGate: 0.9,
    maxPullsChecked: null,
  },
  words: {
    ...v1_36.words,
    badDefaultCpuSet: (quoted) => `could not parse default CPU set ${quoted}`,
  },
  grpcGo: "1.82.1",
  notes: NOTES,
});
