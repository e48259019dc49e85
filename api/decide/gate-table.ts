/** A feature gate of the kubelet. kubelet 1.36.3: DefaultFeatureGate. */
export interface GateSpec {
  readonly stage: "alpha" | "beta" | "stable" | "deprecated";
  readonly isOn: boolean;
  /** It cannot be set to anything else. */
  readonly locked: boolean;
  /** On, it wants these on. */
  readonly wants: readonly string[];
}

/** By stage, default and lock; a gate's name, and after `<` what it wants. */
const TABLE = `
  alpha off: APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource
    DRAListTypeAttributes<DynamicResourceAllocation DRANodeAllocatableResources<DynamicResourceAllocation
    DRAResourcePoolStatus<DynamicResourceAllocation
    DRAWorkloadResourceClaims<DynamicResourceAllocation,GenericWorkload EventedPLEG GangScheduling<GenericWorkload
    GenericWorkload HPAScaleToZero ImageVolumeWithDigest<ImageVolume
    InPlacePodVerticalScalingExclusiveCPUs<InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveMemory<InPlacePodVerticalScaling KubeletInUserNamespace LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers<PodLevelResources
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
    ShardedListAndWatch StorageCapacityScoring StorageVersionAPI<APIServerIdentity
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling<GenericWorkload
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport<NodeDeclaredFeatures,UserNamespacesSupport
    VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption<GangScheduling
    WorkloadWithJob<GenericWorkload
  beta off: AllBeta ClusterTrustBundle ClusterTrustBundleProjection<ClusterTrustBundle ConcurrentWatchObjectDecode
    CoordinatedLeaderElection DRADeviceTaintRules<DRADeviceTaints LocalStorageCapacityIsolationFSQuotaMonitoring
    MaxUnavailableStatefulSet PodCertificateRequest<AuthorizeNodeWithSelectors SELinuxMount SchedulerAsyncAPICalls
    StorageVersionMigrator
  beta on: APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
    ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
    DRAConsumableCapacity<DynamicResourceAllocation
    DRADeviceBindingConditions<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DRADeviceTaints<DynamicResourceAllocation DRAExtendedResource<DynamicResourceAllocation
    DRAPartitionableDevices<DynamicResourceAllocation DRAResourceClaimDeviceStatus
    DRAResourceClaimGranularStatusAuthorization<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DRASchedulerFilterTimeout<DynamicResourceAllocation DeclarativeValidationBeta<DeclarativeValidation
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
    ExtendWebSocketsToKubelet<NodeDeclaredFeatures GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority<GracefulNodeShutdown HPAConfigurableTolerance HostnameOverride
    InOrderInformersBatchProcess
    InPlacePodLevelResourcesVerticalScaling<InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
    InPlacePodVerticalScalingInitContainers<InPlacePodVerticalScaling,NodeDeclaredFeatures
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge<MatchLabelKeysInPodTopologySpread
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
    PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
    PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus<DynamicResourceAllocation
    ResourceHealthStatusMessage<ResourceHealthStatus
    RestartAllContainersOnContainerExits<ContainerRestartRules,NodeDeclaredFeatures RotateKubeletServerCertificate
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet<AtomicFIFO
    StaleControllerConsistencyJob<AtomicFIFO StaleControllerConsistencyReplicaSet<AtomicFIFO
    StaleControllerConsistencyStatefulSet<AtomicFIFO StatefulSetSemanticRevisionComparison StorageVersionHash
    StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector<StructuredAuthenticationConfiguration
    StructuredAuthenticationConfigurationJWKSMetrics<StructuredAuthenticationConfiguration
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy<APIServerIdentity
    UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
    WindowsGracefulNodeShutdown<GracefulNodeShutdown
  deprecated off: AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover<DeclarativeValidation KMSv1
    KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
  deprecated off locked: AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
  deprecated on: DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods
    ServiceCIDRStatusFieldWiping StorageNamespaceIndex
  deprecated on locked: AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
  stable on: AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList<DynamicResourceAllocation
    InformerResourceVersion MutatingAdmissionPolicy
  stable on locked: APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors<AuthorizeWithSelectors AuthorizeWithSelectors BtreeWatchCache
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
    CustomResourceFieldSelectors DRAAdminAccess<DynamicResourceAllocation DeclarativeValidation
    DisableAllocatorDualWrite<MultiCIDRServiceAllocator DynamicResourceAllocation ExecProbeTimeout
    ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
    JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
    KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
    NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero<PodLifecycleSleepAction PodObservedGenerationTracking
    PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType<UserNamespacesSupport
    RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy
    SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding<ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
    VolumeAttributesClass WinDSR WinOverlay
`;

export const FEATURE_GATES: ReadonlyMap<string, GateSpec> = new Map(
  TABLE.trim()
    .split(/\n {2}(?! )/)
    .flatMap((line) => {
      const [head = "", names = ""] = line.trim().split(": ");
      const [stage, isOn, locked] = head.split(" ");
      return names.split(/\s+/).map((entry) => {
        const [name = "", wants = ""] = entry.split("<");
        const spec: GateSpec = {
          stage: stage as GateSpec["stage"],
          isOn: isOn === "on",
          locked: locked === "locked",
          wants: wants === "" ? [] : wants.split(","),
        };
        return [name, spec] as const;
      });
    }),
);

/** A gate that is named keeps its word, the others follow AllAlpha and AllBeta, then their default. kubelet 1.36: featureGate. */
export function isGateOn(named: Readonly<Record<string, boolean>> | undefined, gate: string): boolean {
  const own = named?.[gate];
  if (own !== undefined) return own;
  const spec = FEATURE_GATES.get(gate);
  const all = spec?.stage === "alpha" ? named?.["AllAlpha"] : spec?.stage === "beta" ? named?.["AllBeta"] : undefined;
  return all ?? spec?.isOn ?? false;
}
