import { fieldsOf, gatesOf, profileOfData } from "./profile.ts";
import { v1_36 } from "./v1_36.ts";

/** Those that 1.36 has otherwise. kubelet 1.37.2: DefaultFeatureGate. */
const GATES = `
  alpha off: APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields
    CompositePodGroup<GenericWorkload,TopologyAwareWorkloadScheduling ConsistentListFromCacheSkipTimeoutFallback
    DRADerivedAttributes<DynamicResourceAllocation
    DRADeviceCompatibilityGroups<DRAPartitionableDevices,DynamicResourceAllocation
    DRAOptionalNodeOperations<DynamicResourceAllocation,NodeDeclaredFeatures
    DRAPartitionableDevicesType<DRAPartitionableDevices,DRAResourcePoolStatus,DynamicResourceAllocation
    DefaultPodSysctls EmptyDirVolumeMode EventedPLEG<PLEGOnDemandRelist EvictionRequestAPI GRPCContainerProbeTLS
    H2CContainerProbe<NodeDeclaredFeatures
    InPlacePodVerticalScalingMemoryBackedVolumes<InPlacePodVerticalScaling,NodeDeclaredFeatures
    InPlacePodVerticalScalingSchedulerPreemption<InPlacePodVerticalScaling InterPodAffinityHostnameFastPath
    KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint<InPlacePodVerticalScaling
    NodeLifecycleConditions PodGroupPreemptionPolicy<GenericWorkload SchedulerPreQueueingHints
    StatefulSetRecreateStrategy VolumeBindMountOptions
  beta off: DRAFractionalCapacityRange<DRAConsumableCapacity
    DRAWorkloadResourceClaims<DynamicResourceAllocation,GenericWorkload GenericWorkload
    PodAndContainerStatsFromCRI PodLevelResourceManagers<PodLevelResources
  beta on: AllowUnsafeMalformedObjectDeletion ConcurrentWatchObjectDecode EtcdRangeStream
    ExcludeAdmissionWebhookVirtualResources HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero
    HugepageAwareEviction KubeletInUserNamespace ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet
    MemoryQoS NFTablesNetlink NodeControllerLeaseCircuitBreaker<AtomicFIFO PersistentVolumeClaimUnusedSinceTime
    PodLevelResourcesFixDefaulting<PodLevelResources PodLevelResourcesFixKubeletQOSClass<PodLevelResources
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
    ControllerManagerReleaseLeaderElectionLockOnExit GangScheduling JobBackoffLimitPerIndex
    JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown NativeHistograms OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences
    RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints
    SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration WorkloadAwarePreemption
`;

/** New in 1.37. Source: k8s.io/kubelet v0.37.2, config/v1beta1. */
const FIELDS = `
  map[string]string: defaultPodSysctls
`;

// without a default memory.high is not set
const { memoryThrottlingFactor: _, ...defaults } = v1_36.defaults;

export const v1_37 = profileOfData({
  ...v1_36,
  version: "1.37",
  previousVersion: "1.36",
  release: "1.37.2",
  policyVersion: "kubelet-1.37+1",
  gates: gatesOf(GATES, v1_36.gates),
  fields: fieldsOf(FIELDS, v1_36.fields),
  defaults: defaults as typeof v1_36.defaults,
  behaviour: {
    ...v1_36.behaviour,
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
    sidecarStorageLimits: true,
    // what was the default until now
    throttlingFactorWithoutGate: 0.9,
    mostPullsChecked: null,
  },
  words: {
    ...v1_36.words,
    badDefaultCpuSet: (quoted) => `could not parse default CPU set ${quoted}`,
    httpUserAgent: (askedFor) => `kube-${askedFor}/1.37`,
    grpcUserAgent: "kube-probe/1.37 grpc-go/1.82.1",
  },
});
