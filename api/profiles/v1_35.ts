import { removedFlags, type VersionNote } from "./note.ts";
import { profileAfter } from "./profile.ts";
import { gatesOf, withoutFlags } from "./tables.ts";
import { v1_34 } from "./v1_34.ts";

/** The gates that differ from 1.34. kubelet 1.35.4: DefaultFeatureGate. */
const GATES = `
  alpha off: CloudControllerManagerWatchBasedRoutesReconciliation ConstrainedImpersonation
    DRAConsumableCapacity<DynamicResourceAllocation
    DRADeviceBindingConditions<DRAResourceClaimDeviceStatus,DynamicResourceAllocation
    DRADeviceTaintRules<DRADeviceTaints DRADeviceTaints<DynamicResourceAllocation
    DRAExtendedResource<DynamicResourceAllocation DRAPartitionableDevices<DynamicResourceAllocation
    GangScheduling<GenericWorkload *GenericWorkload
    *InPlacePodLevelResourcesVerticalScaling<InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
    InPlacePodVerticalScalingExclusiveCPUs<InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveMemory<InPlacePodVerticalScaling,MemoryManager MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs *NodeDeclaredFeatures
    ResourceHealthStatus<DynamicResourceAllocation
    *RestartAllContainersOnContainerExits<ContainerRestartRules,NodeDeclaredFeatures
    StorageVersionAPI<APIServerIdentity *TaintTolerationComparisonOperators
    UnknownVersionInteroperabilityProxy<APIServerIdentity *UserNamespacesHostNetworkSupport<UserNamespacesSupport
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
  deprecated off: *ChangeContainerStatusOnKubeletRestart
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

const GONE = ["pod-infra-container-image"];

/** From the sources of 1.34.4 and 1.35.4. */
const NOTES: readonly VersionNote[] = [
  removedFlags("the flag of the sandbox image", GONE),
  {
    topic: "behaviour",
    name: "failCgroupV1",
    begins: {
      what: "on a machine with cgroup v1 the kubelet does not start, unless failCgroupV1 is false",
      before: "see that `stat -fc %T /sys/fs/cgroup` prints cgroup2fs on each node; failCgroupV1: false puts it off",
    },
    // with a snapshot, lint reports it
    concerns: ({ configuration, snapshot }) =>
      configuration["failCgroupV1"] === true && snapshot?.cgroup?.version === undefined,
  },
  {
    topic: "behaviour",
    name: "static pods",
    begins: {
      what: "every static pod without a uid of its own gets another one (a hash by FNV in place of MD5): it is ended and started again",
      before:
        "drain the node first where its static pods must not restart under load; on control planes go node by node",
    },
    ends: {
      what: "every static pod without a uid of its own gets its former one: it is ended and started again",
      before:
        "drain the node first where its static pods must not restart under load; on control planes go node by node",
    },
    // with a snapshot, they are listed by name
    concerns: ({ snapshot }) => snapshot?.pods === undefined,
  },
  {
    topic: "behaviour",
    name: "imagePullCredentialsVerificationPolicy",
    begins: {
      what: "an image that is on the node is used without a pull only by a pod whose credentials pulled it before, unless it was there before the kubelet; with imagePullPolicy Never others fail (ErrImageNeverPull)",
      before: "give pods with private images their imagePullSecrets, or keep it as it was with NeverVerify",
    },
    patch: { imagePullCredentialsVerificationPolicy: "NeverVerify" },
    concerns: ({ configuration, isOn }) =>
      isOn("KubeletEnsureSecretPulledImages") &&
      configuration["imagePullCredentialsVerificationPolicy"] !== "NeverVerify",
  },
  {
    topic: "file",
    name: "/var/lib/kubelet/image_manager/pulled",
    begins: { what: "the records of image pulls are rewritten as kubelet.config.k8s.io/v1beta1", before: null },
    ends: {
      what: "the older kubelet cannot read the records of image pulls that the newer one wrote",
      before: "remove them while no kubelet runs: images are pulled again where credentials have to be checked",
    },
  },
  {
    topic: "behaviour",
    name: "readiness at a restart of the kubelet",
    begins: {
      what: "containers that run keep being ready and started while the kubelet restarts, and are no longer unready until their first probe",
      before: null,
    },
    ends: {
      what: "containers are unready after a restart of the kubelet until their first probe succeeded",
      before: "expect Services without these pods for a while; go node by node",
    },
    concerns: ({ isOn }) => !isOn("ChangeContainerStatusOnKubeletRestart"),
  },
  {
    topic: "event",
    name: "Created, Started",
    begins: {
      what: "events of containers say `Container created` and `Container started`, without the container's name",
      before: "change the alerts and log searches that look for `Created container:` or `Started container`",
    },
    ends: {
      what: "events of containers say `Created container: NAME` and `Started container NAME` again",
      before: "change the alerts and log searches that look for `Container created` or `Container started`",
    },
  },
  {
    topic: "event",
    name: "FreeDiskSpaceFailed",
    begins: {
      what: "the message begins with `Insufficient free disk space on the node's image filesystem`",
      before: "change the alerts that look for `Failed to garbage collect required amount of images`",
    },
    ends: {
      what: "the message begins with `Failed to garbage collect required amount of images` again",
      before: "change the alerts that look for `Insufficient free disk space`",
    },
  },
];

export const v1_35 = profileAfter(v1_34, {
  version: "1.35",
  release: "1.35.4",
  policyVersion: "kubelet-1.35+5",
  gates: gatesOf(GATES, v1_34.gates),
  commandLine: withoutFlags(v1_34.commandLine, GONE),
  podFields: new Set(["PodSpec.workloadRef"]),
  defaults: {
    ...v1_34.defaults,
    // only with the gate KubeletCrashLoopBackOffMax
    crashLoopBackOff: { maxContainerRestartPeriod: "5m0s" },
    failCgroupV1: true,
    // only with the gate KubeletEnsureSecretPulledImages
    imagePullCredentialsVerificationPolicy: "NeverVerifyPreloadedImages",
  },
  behaviour: {
    ...v1_34.behaviour,
    // kubernetes 1.35.4: shouldDelegateResourceToDRA
    leftToClaims: "zero",
    // kubernetes 1.35.4: ValidatePodResize, dropCPUMemoryUpdates
    podLevelResizesFirst: false,
    addsToNone: false,
    // kubelet 1.35.4: cpumanager stableOptions
    cpuManagerPolicyOptions: { ...v1_34.behaviour.cpuManagerPolicyOptions, "strict-cpu-reservation": "stable" },
    // kubelet 1.35.4: topologymanager stableOptions
    topologyManagerPolicyOptions: {
      ...v1_34.behaviour.topologyManagerPolicyOptions,
      "max-allowable-numa-nodes": "stable",
    },
    managersReadAllocated: false,
    claimedDevicesLeft: true,
    claims: {
      ...v1_34.behaviour.claims,
      shareIds: true,
      extendedRequests: "each",
      healthTimeouts: true,
      healthOf: "status",
    },
    // k8s.io/component-helpers v0.35.4: AllFeatures of nodedeclaredfeatures/features
    declaredFeatures: new Map([["RestartAllContainersOnContainerExits", "kubelet"]]),
    resizeFeatures: ["GuaranteedQoSPodCPUResize", "InPlacePodLevelResourcesVerticalScaling"],
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
    // kubelet 1.35.4: applyDefaults of pkg/kubelet/config
    staticPodUid: "fnv-128a",
  },
  words: {
    ...v1_34.words,
    podLevelNotResized:
      "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled",
    containerCreated: () => "Container created",
    containerStarted: () => "Container started",
    imagesNotFreed: ({ usagePercent, capacity, freed }) =>
      `Insufficient free disk space on the node's image filesystem (${usagePercent}% of ${capacity} used). ` +
      `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
      "Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
    cgroupV1Refused:
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release",
    logQueryRefused: "NodeLogQuery feature gate is required for enableSystemLogQuery",
  },
  grpcGo: "1.72.2",
  notes: NOTES,
});
