import { fieldsOf, gatesOf, profileOfData } from "./profile.ts";
import { v1_35 } from "./v1_35.ts";

/** Those that 1.35 has otherwise. kubelet 1.36.3: DefaultFeatureGate. */
const GATES = `
  alpha off: CRIListStreaming ControllerManagerReleaseLeaderElectionLockOnExit
    DRAListTypeAttributes<DynamicResourceAllocation DRANodeAllocatableResources<DynamicResourceAllocation
    DRAResourcePoolStatus<DynamicResourceAllocation
    DRAWorkloadResourceClaims<DynamicResourceAllocation,GenericWorkload ImageVolumeWithDigest<ImageVolume
    InPlacePodVerticalScalingExclusiveMemory<InPlacePodVerticalScaling ManifestBasedAdmissionControlConfig
    NativeHistograms PersistentVolumeClaimUnusedSinceTime PodLevelResourceManagers<PodLevelResources PodsAPI
    ShardedListAndWatch TopologyAwareWorkloadScheduling<GenericWorkload
    UserNamespacesHostNetworkSupport<NodeDeclaredFeatures,UserNamespacesSupport WindowsCPUAndMemoryAffinity
    WorkloadAwarePreemption<GangScheduling WorkloadWithJob<GenericWorkload
  beta off: DRADeviceTaintRules<DRADeviceTaints
  beta on: AtomicFIFO CRDObservedGenerationTracking ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
    ComponentStatusz ConstrainedImpersonation DRAConsumableCapacity<DynamicResourceAllocation
    DRADeviceBindingConditions<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DRADeviceTaints<DynamicResourceAllocation DRAExtendedResource<DynamicResourceAllocation
    DRAPartitionableDevices<DynamicResourceAllocation
    DRAResourceClaimGranularStatusAuthorization<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DeclarativeValidationBeta<DeclarativeValidation ExtendWebSocketsToKubelet<NodeDeclaredFeatures
    InPlacePodLevelResourcesVerticalScaling<InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
    InPlacePodVerticalScalingInitContainers<InPlacePodVerticalScaling,NodeDeclaredFeatures
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    PLEGOnDemandRelist RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ResourceHealthStatus<DynamicResourceAllocation ResourceHealthStatusMessage<ResourceHealthStatus
    RestartAllContainersOnContainerExits<ContainerRestartRules,NodeDeclaredFeatures
    StaleControllerConsistencyDaemonSet<AtomicFIFO StaleControllerConsistencyJob<AtomicFIFO
    StaleControllerConsistencyReplicaSet<AtomicFIFO StaleControllerConsistencyStatefulSet<AtomicFIFO
    StrictIPCIDRValidation UnknownVersionInteroperabilityProxy<APIServerIdentity UnlockWhileProcessingFIFO
    WatchCacheInitializationPostStartHook
  deprecated off: DeclarativeValidationTakeover<DeclarativeValidation
  deprecated off locked: GitRepoVolumeDriver SeparateCacheWatchRPC
  deprecated on: DisableCPUQuotaWithExclusiveCPUs ServiceCIDRStatusFieldWiping
  deprecated on locked: DisableNodeKubeProxyVersion
  stable on: AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList<DynamicResourceAllocation
    MutatingAdmissionPolicy
  stable on locked: CSIServiceAccountTokenSecrets DRAAdminAccess<DynamicResourceAllocation DeclarativeValidation
    ExternalServiceAccountTokenSigner ImageVolume InOrderInformers KubeletFineGrainedAuthz KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet MutableCSINodeAllocatableCount NodeLogQuery
    ProcMountType<UserNamespacesSupport SELinuxChangePolicy SELinuxMountReadWriteOncePod
    TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
  removed: CSIMigrationPortworx HonorPVReclaimPolicy InPlacePodVerticalScalingAllocatedStatus
    InTreePluginPortworxUnregister MemoryManager ServiceTrafficDistribution StructuredAuthorizationConfiguration
    TopologyAwareHints WatchFromStorageWithoutResourceVersion
`;

/** New in 1.36. Source: k8s.io/kubelet v0.36.3, config/v1beta1. */
const FIELDS = `
  []int32: tlsCurvePreferences
  v1beta1.MemoryReservationPolicy: memoryReservationPolicy
`;

export const v1_36 = profileOfData({
  ...v1_35,
  version: "1.36",
  previousVersion: "1.35",
  release: "1.36.3",
  policyVersion: "kubelet-1.36+7",
  gates: gatesOf(GATES, v1_35.gates),
  fields: fieldsOf(FIELDS, v1_35.fields),
  defaults: { ...v1_35.defaults, memoryReservationPolicy: "None" },
  behaviour: {
    ...v1_35.behaviour,
    // kubelet 1.36.3: cpumanager stableOptions
    cpuManagerPolicyOptions: {
      ...v1_35.behaviour.cpuManagerPolicyOptions,
      "prefer-align-cpus-by-uncorecache": "stable",
    },
    memoryProtection: "policy",
    stateFiles: "pods",
    deviceHintsOverAllNodes: false,
    minimumAgeAtLeastZero: true,
    allowlistInFull: false,
  },
  words: {
    ...v1_35.words,
    cpuStateNotMigrated: "failed to migrate checkpoint from v1 to v2",
    hiddenMetricsRefused: (quoted, before) =>
      `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: ${quoted}: must be omitted or have the value '${before}'; only the previous minor version is allowed`,
    httpUserAgent: (askedFor) => `kube-${askedFor}/1.36`,
    grpcUserAgent: "kube-probe/1.36 grpc-go/1.79.3",
  },
});
