import { gatesOf, profileOfData } from "./profile.ts";
import { v1_34 } from "./v1_34.ts";

/** Those that 1.34 has otherwise. kubelet 1.35.4: DefaultFeatureGate. */
const GATES = `
  alpha off: CloudControllerManagerWatchBasedRoutesReconciliation ConstrainedImpersonation
    DRAConsumableCapacity<DynamicResourceAllocation
    DRADeviceBindingConditions<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DRADeviceTaintRules<DRADeviceTaints DRADeviceTaints<DynamicResourceAllocation
    DRAExtendedResource<DynamicResourceAllocation DRAPartitionableDevices<DynamicResourceAllocation
    GangScheduling<GenericWorkload GenericWorkload
    InPlacePodLevelResourcesVerticalScaling<InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
    InPlacePodVerticalScalingExclusiveCPUs<InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveMemory<InPlacePodVerticalScaling,MemoryManager MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    ResourceHealthStatus<DynamicResourceAllocation
    RestartAllContainersOnContainerExits<ContainerRestartRules,NodeDeclaredFeatures
    StorageVersionAPI<APIServerIdentity TaintTolerationComparisonOperators
    UnknownVersionInteroperabilityProxy<APIServerIdentity UserNamespacesHostNetworkSupport<UserNamespacesSupport
    VolumeLimitScaling WindowsCPUAndMemoryAffinity<MemoryManager
  beta off: CRDObservedGenerationTracking ClusterTrustBundleProjection<ClusterTrustBundle
    DeclarativeValidationTakeover<DeclarativeValidation MaxUnavailableStatefulSet
    PodCertificateRequest<AuthorizeNodeWithSelectors StorageVersionMigrator
  beta on: AuthorizePodWebsocketUpgradeCreatePermission CSIServiceAccountTokenSecrets
    ClearingNominatedNodeNameAfterBinding ContainerRestartRules DRAAdminAccess<DynamicResourceAllocation
    DRAPrioritizedList<DynamicResourceAllocation DRASchedulerFilterTimeout<DynamicResourceAllocation
    DeploymentReplicaSetTerminatingReplicas EnvFiles GracefulNodeShutdownBasedOnPodPriority<GracefulNodeShutdown
    HPAConfigurableTolerance HostnameOverride ImageVolume InOrderInformersBatchProcess
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    MatchLabelKeysInPodTopologySpreadSelectorMerge<MatchLabelKeysInPodTopologySpread
    MutableCSINodeAllocatableCount NominatedNodeNameForExpectation OpportunisticBatching
    PodTopologyLabelsAdmission ProcMountType<UserNamespacesSupport
    StructuredAuthenticationConfigurationEgressSelector<StructuredAuthenticationConfiguration
    StructuredAuthenticationConfigurationJWKSMetrics<StructuredAuthenticationConfiguration WatchListClient
    WindowsGracefulNodeShutdown<GracefulNodeShutdown
  deprecated off: ChangeContainerStatusOnKubeletRestart
    InPlacePodVerticalScalingAllocatedStatus<InPlacePodVerticalScaling
  deprecated off locked: AllowOverwriteTerminationGracePeriodSeconds
  deprecated on locked: AggregatedDiscoveryRemoveBetaType
  stable on: InformerResourceVersion
  stable on locked: AuthorizeNodeWithSelectors<AuthorizeWithSelectors
    DisableAllocatorDualWrite<MultiCIDRServiceAllocator DynamicResourceAllocation ExecProbeTimeout
    ImageMaximumGCAge InPlacePodVerticalScaling JobManagedBy
    PodLifecycleSleepActionAllowZero<PodLifecycleSleepAction PodObservedGenerationTracking
    PreferSameTrafficDistribution ServiceAccountTokenNodeBinding<ServiceAccountTokenNodeBindingValidation
    SupplementalGroupsPolicy SystemdWatchdog
  removed: AllowServiceLBStatusOnNonLB CronJobsScheduledAnnotation LoadBalancerIPMode PodIndexLabel
    ProbeHostPodSecurityStandards SizeMemoryBackedVolumes StatefulSetAutoDeletePVC StrictCostEnforcementForVAP
    StrictCostEnforcementForWebhooks UserNamespacesPodSecurityStandards
`;

export const v1_35 = profileOfData({
  ...v1_34,
  version: "1.35",
  previousVersion: "1.34",
  release: "1.35.4",
  policyVersion: "kubelet-1.35+1",
  gates: gatesOf(GATES, v1_34.gates),
  defaults: {
    ...v1_34.defaults,
    // with the gate KubeletCrashLoopBackOffMax
    crashLoopBackOff: { maxContainerRestartPeriod: "5m0s" },
    failCgroupV1: true,
    // with the gate KubeletEnsureSecretPulledImages
    imagePullCredentialsVerificationPolicy: "NeverVerifyPreloadedImages",
  },
  behaviour: {
    ...v1_34.behaviour,
    // kubelet 1.35.4: cpumanager stableOptions
    cpuManagerPolicyOptions: { ...v1_34.behaviour.cpuManagerPolicyOptions, "strict-cpu-reservation": "stable" },
    // kubelet 1.35.4: topologymanager stableOptions
    topologyManagerPolicyOptions: {
      ...v1_34.behaviour.topologyManagerPolicyOptions,
      "max-allowable-numa-nodes": "stable",
    },
    managersReadAllocated: false,
    claimedDevicesLeft: true,
    // k8s.io/kubelet v0.35.4: addKnownTypes of config/v1beta1
    otherKinds: new Map([
      ...v1_34.behaviour.otherKinds,
      [
        "kubelet.config.k8s.io/v1beta1",
        ["SerializedNodeConfigSource", "CredentialProviderConfig", "ImagePullIntent", "ImagePulledRecord"],
      ],
    ]),
    innerStructsNamed: true,
    flushFrequencyAboveZero: true,
  },
  words: {
    ...v1_34.words,
    containerCreated: () => "Container created",
    containerStarted: () => "Container started",
    imagesNotFreed: ({ usagePercent, capacity, freed }) =>
      `Insufficient free disk space on the node's image filesystem (${usagePercent}% of ${capacity} used). ` +
      `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
      "Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
    cgroupV1Refused:
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release",
    logQueryRefused: "NodeLogQuery feature gate is required for enableSystemLogQuery",
    httpUserAgent: (askedFor) => `kube-${askedFor}/1.35`,
    grpcUserAgent: "kube-probe/1.35 grpc-go/1.72.2",
  },
});
