import { profileOfData } from "./profile.ts";
import { fieldsOf, flagsOf, gatesOf } from "./tables.ts";

/** Gates by stage, default and lock. kubelet 1.34.4: DefaultFeatureGate. */
const GATES = `
  alpha off: APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    *CPUManagerPolicyAlphaOptions *CSIVolumeHealth ClearingNominatedNodeNameAfterBinding ClientsAllowCBOR
    ClientsPreferCBOR CloudControllerManagerWebhook *ComponentFlagz *ComponentStatusz *ContainerRestartRules
    *ContainerStopSignals CrossNamespaceVolumeDataSource *CustomCPUCFSQuotaPeriod *DRAConsumableCapacity
    *DRADeviceBindingConditions *DRADeviceTaints *DRAExtendedResource *DRAPartitionableDevices
    DeploymentReplicaSetTerminatingReplicas *EnvFiles *EventedPLEG HPAConfigurableTolerance HPAScaleToZero
    *HostnameOverride *InPlacePodVerticalScalingExclusiveCPUs *InPlacePodVerticalScalingExclusiveMemory
    *InTreePluginPortworxUnregister InformerResourceVersion *KubeletCrashLoopBackOffMax
    *KubeletEnsureSecretPulledImages *KubeletInUserNamespace *LoggingAlphaOptions MaxUnavailableStatefulSet
    *MemoryQoS NominatedNodeNameForExpectation *PodAndContainerStatsFromCRI *PodCertificateRequest
    *PodLogsQuerySplitStreams PodTopologyLabelsAdmission *QOSReserved *ReduceDefaultCrashLoopBackOffDecay
    RelaxedServiceNameValidation *ResourceHealthStatus *RuntimeClassInImageCriApi StorageCapacityScoring
    StorageVersionAPI StorageVersionMigrator *StrictIPCIDRValidation *TopologyManagerPolicyAlphaOptions
    UnknownVersionInteroperabilityProxy UserNamespacesPodSecurityStandards *WindowsCPUAndMemoryAffinity
  beta off: AllBeta *ClusterTrustBundle *ClusterTrustBundleProjection ConcurrentWatchObjectDecode
    CoordinatedLeaderElection DeclarativeValidationTakeover *ImageVolume
    *LocalStorageCapacityIsolationFSQuotaMonitoring *MutableCSINodeAllocatableCount MutatingAdmissionPolicy
    *NodeLogQuery *SELinuxMount SchedulerAsyncAPICalls WatchCacheInitializationPostStartHook WatchListClient
  beta on: APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth *CPUManagerPolicyBetaOptions
    *ContainerCheckpoint *ContextualLogging *DRAAdminAccess *DRAPrioritizedList *DRAResourceClaimDeviceStatus
    DRASchedulerFilterTimeout DeclarativeValidation DetectCacheInconsistency *DisableCPUQuotaWithExclusiveCPUs
    ExternalServiceAccountTokenSigner *GracefulNodeShutdown *GracefulNodeShutdownBasedOnPodPriority
    *ImageMaximumGCAge InOrderInformers *InPlacePodVerticalScaling JobManagedBy *KubeletFineGrainedAuthz *KubeletPSI
    *KubeletPodResourcesDynamicResources *KubeletPodResourcesGet *KubeletSeparateDiskGC
    *KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot *LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge OpenAPIEnums
    PodDeletionCost *PodLevelResources *PodObservedGenerationTracking *PodReadyToStartContainersCondition
    PortForwardWebsockets PreferSameTrafficDistribution *PreventStaticPodAPIReferences ProcMountType
    *ReloadKubeletServerCertificateFile RemoteRequestHeaderUID *RotateKubeletServerCertificate *SELinuxChangePolicy
    *SELinuxMountReadWriteOncePod SchedulerAsyncPreemption SchedulerPopFromBackoffQ
    ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate StatefulSetSemanticRevisionComparison
    StorageVersionHash StructuredAuthenticationConfigurationEgressSelector *SupplementalGroupsPolicy
    *SystemdWatchdog TokenRequestServiceAccountUIDValidation *TopologyManagerPolicyBetaOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation *UserNamespacesSupport WatchList
    *WindowsGracefulNodeShutdown
  deprecated off: *AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    *AllowOverwriteTerminationGracePeriodSeconds *GitRepoVolumeDriver *InPlacePodVerticalScalingAllocatedStatus
    KMSv1 *KubeletRegistrationGetOnExistsOnly SeparateCacheWatchRPC *WindowsHostNetwork
  deprecated off locked: AllowServiceLBStatusOnNonLB WatchFromStorageWithoutResourceVersion
  deprecated on: AggregatedDiscoveryRemoveBetaType *DisableNodeKubeProxyVersion
    *KubeletPodResourcesListUseActivePods StorageNamespaceIndex
  stable on: DisableAllocatorDualWrite *DynamicResourceAllocation *ExecProbeTimeout *TopologyManagerPolicyOptions
    VolumeAttributesClass
  stable on locked: APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache *CPUManagerPolicyOptions
    CRDValidationRatcheting *CSIMigrationPortworx ConsistentListFromCache CronJobsScheduledAnnotation
    CustomResourceFieldSelectors HonorPVReclaimPolicy JobBackoffLimitPerIndex JobPodReplacementPolicy
    JobSuccessPolicy *KubeletCgroupDriverFromCRI *KubeletTracing LoadBalancerIPMode LogarithmicScaleDown
    MatchLabelKeysInPodAffinity *MemoryManager MultiCIDRServiceAllocator NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread *NodeSwap OrderedNamespaceDeletion PodIndexLabel
    *PodLifecycleSleepAction PodLifecycleSleepActionAllowZero *PodSchedulingReadiness
    ProbeHostPodSecurityStandards *RecoverVolumeExpansionFailure *RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation *RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    RetryGenerateName SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
    ServiceTrafficDistribution *SidecarContainers *SizeMemoryBackedVolumes StatefulSetAutoDeletePVC
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StrictCostEnforcementForVAP
    StrictCostEnforcementForWebhooks StructuredAuthenticationConfiguration StructuredAuthorizationConfiguration
    TopologyAwareHints WinDSR WinOverlay
`;

/**
 * The Go type of each field of a KubeletConfiguration, with `*` if null leaves it unset; for a list, that of its items. Source:
 * k8s.io/kubelet v0.34.4, config/v1beta1, with the types it uses of core/v1 (Taint) and component-base (logging, tracing).
 */
const FIELDS = `
  *bool: authentication.anonymous.enabled authentication.webhook.enabled cgroupsPerQOS cpuCFSQuota
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler
    enableServer enableSystemLogHandler enableSystemLogQuery failCgroupV1 failSwapOn
    localStorageCapacityIsolation makeIPTablesUtilChains mergeDefaultEvictionSettings registerNode
    seccompDefault serializeImagePulls singleProcessOOMKill
  *float64: memoryThrottlingFactor
  *int32: containerLogMaxFiles containerLogMaxWorkers eventRecordQPS healthzPort imageGCHighThresholdPercent
    imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIQPS maxParallelImagePulls
    nodeStatusMaxImages oomScoreAdj registryPullQPS tracing.samplingRatePerMillion
  *int64: podPidsLimit userNamespaces.idsPerPod
  *string: resolvConf tracing.endpoint
  *v1.Duration: containerLogMonitorInterval cpuCFSQuotaPeriod crashLoopBackOff.maxContainerRestartPeriod
  *v1.Time: registerWithTaints.timeAdded
  *v1.TracingConfiguration: tracing
  *v1beta1.UserNamespaces: userNamespaces
  []string: allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist
    tlsCipherSuites
  []v1.Taint: registerWithTaints
  []v1.VModuleItem: logging.vmodule
  []v1beta1.MemoryReservation: reservedMemory
  []v1beta1.ShutdownGracePeriodByPodPriority: shutdownGracePeriodByPodPriority
  bool: enableContentionProfiling kernelMemcgNotification logging.options.json.splitStream
    logging.options.text.splitStream protectKernelDefaults rotateCertificates runOnce serverTLSBootstrap
  int32: eventBurst evictionMaxPodGracePeriod kubeAPIBurst maxPods nodeLeaseDurationSeconds podsPerCore port
    readOnlyPort registryBurst reservedMemory.numaNode shutdownGracePeriodByPodPriority.priority
  int64: maxOpenFiles shutdownGracePeriodByPodPriority.shutdownGracePeriodSeconds
  map[string][]string: staticPodURLHeader
  map[string]bool: featureGates
  map[string]string: cpuManagerPolicyOptions evictionHard evictionMinimumReclaim evictionSoft
    evictionSoftGracePeriod kubeReserved qosReserved systemReserved topologyManagerPolicyOptions
  resource.QuantityValue: logging.options.json.infoBufferSize logging.options.text.infoBufferSize
  string: address authentication.x509.clientCAFile cgroupDriver cgroupRoot clusterDomain containerLogMaxSize
    containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress imageServiceEndpoint
    kubeReservedCgroup kubeletCgroups logging.format logging.vmodule.filePattern memoryManagerPolicy
    memorySwap.swapBehavior podCIDR podLogsDir providerID registerWithTaints.key registerWithTaints.value
    reservedSystemCPUs showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup
    tlsCertFile tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
  v1.Duration: authentication.webhook.cacheTTL authorization.webhook.cacheAuthorizedTTL
    authorization.webhook.cacheUnauthorizedTTL cpuManagerReconcilePeriod evictionPressureTransitionPeriod
    fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
    nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
    streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
  v1.FormatOptions: logging.options
  v1.JSONOptions: logging.options.json
  v1.LoggingConfiguration: logging
  v1.ResourceList: reservedMemory.limits
  v1.TaintEffect: registerWithTaints.effect
  v1.TextOptions: logging.options.text
  v1.TimeOrMetaDuration: logging.flushFrequency
  v1.VerbosityLevel: logging.verbosity logging.vmodule.verbosity
  v1beta1.CrashLoopBackOffConfig: crashLoopBackOff
  v1beta1.ImagePullCredentialsVerificationPolicy: imagePullCredentialsVerificationPolicy
  v1beta1.KubeletAnonymousAuthentication: authentication.anonymous
  v1beta1.KubeletAuthentication: authentication
  v1beta1.KubeletAuthorization: authorization
  v1beta1.KubeletAuthorizationMode: authorization.mode
  v1beta1.KubeletWebhookAuthentication: authentication.webhook
  v1beta1.KubeletWebhookAuthorization: authorization.webhook
  v1beta1.KubeletX509Authentication: authentication.x509
  v1beta1.MemorySwapConfiguration: memorySwap
  v1beta1.ResourceChangeDetectionStrategy: configMapAndSecretChangeDetectionStrategy
`;

/** kubelet 1.34.4: KubeletFlags.AddFlags, AddKubeletConfigFlags and AddGlobalFlags of cmd/kubelet/app/options. */
const FLAGS = `
  field deprecated: address allowed-unsafe-sysctls anonymous-auth=authentication.anonymous.enabled
    authentication-token-webhook=authentication.webhook.enabled
    authentication-token-webhook-cache-ttl=authentication.webhook.cacheTTL authorization-mode=authorization.mode
    authorization-webhook-cache-authorized-ttl=authorization.webhook.cacheAuthorizedTTL
    authorization-webhook-cache-unauthorized-ttl=authorization.webhook.cacheUnauthorizedTTL cgroup-driver
    cgroup-root cgroups-per-qos client-ca-file=authentication.x509.clientCAFile cluster-dns cluster-domain
    container-log-max-files container-log-max-size container-runtime-endpoint
    contention-profiling=enableContentionProfiling cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy
    cpu-manager-policy-options cpu-manager-reconcile-period enable-controller-attach-detach
    enable-debugging-handlers enable-server enforce-node-allocatable event-burst event-qps=eventRecordQPS
    eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period
    eviction-soft eviction-soft-grace-period fail-swap-on feature-gates file-check-frequency hairpin-mode
    healthz-bind-address healthz-port http-check-frequency image-gc-high-threshold=imageGCHighThresholdPercent
    image-gc-low-threshold=imageGCLowThresholdPercent image-service-endpoint kernel-memcg-notification
    kube-api-burst kube-api-content-type=contentType kube-api-qps kube-reserved kube-reserved-cgroup
    kubelet-cgroups local-storage-capacity-isolation
    log-json-info-buffer-size=logging.options.json.infoBufferSize
    log-json-split-stream=logging.options.json.splitStream
    log-text-info-buffer-size=logging.options.text.infoBufferSize
    log-text-split-stream=logging.options.text.splitStream logging-format=logging.format
    make-iptables-util-chains manifest-url=staticPodURL manifest-url-header=staticPodURLHeader max-open-files
    max-pods memory-manager-policy minimum-image-ttl-duration=imageMinimumGCAge node-status-max-images
    node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path=staticPodPath
    pod-max-pids=podPidsLimit pods-per-core port protect-kernel-defaults qos-reserved read-only-port
    register-node register-with-taints registry-burst registry-qps=registryPullQPS
    reserved-cpus=reservedSystemCPUs reserved-memory resolv-conf rotate-certificates
    rotate-server-certificates=serverTLSBootstrap runonce runtime-request-timeout serialize-image-pulls
    streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved system-reserved-cgroup
    tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file topology-manager-policy
    topology-manager-policy-options topology-manager-scope volume-plugin-dir volume-stats-agg-period
  field: fail-cgroupv1 log-flush-frequency=logging.flushFrequency provider-id v=logging.verbosity
    vmodule=logging.vmodule
  string: bootstrap-kubeconfig cert-dir cloud-provider config config-dir experimental-mounter-path hostname-override
    image-credential-provider-bin-dir image-credential-provider-config kubeconfig lock-file node-ip
    pod-infra-container-image root-dir runtime-cgroups
  bool: exit-on-lock-contention experimental-allocatable-ignore-eviction help seccomp-default
  int32: maximum-dead-containers maximum-dead-containers-per-container
  v1.Duration: minimum-container-ttl-duration
  labels: node-labels
  version: version
  flag.string: boot-id-file container-hints containerd containerd-namespace event-storage-age-limit
    event-storage-event-limit machine-id-file storage-driver-db storage-driver-host storage-driver-password
    storage-driver-table storage-driver-user
  flag.bool: enable-load-reader log-cadvisor-usage storage-driver-secure
  flag.int: application-metrics-count-limit
  flag.duration: global-housekeeping-interval housekeeping-interval storage-driver-buffer-duration
`;

/** cAdvisor's flags, which a kubelet has unintentionally. kubelet 1.34.4: addCadvisorFlags. */
export const CADVISOR_FLAGS: readonly string[] = [
  ...["application-metrics-count-limit", "boot-id-file", "container-hints", "containerd", "containerd-namespace"],
  ...["enable-load-reader", "event-storage-age-limit", "event-storage-event-limit", "global-housekeeping-interval"],
  ...["log-cadvisor-usage", "machine-id-file", "storage-driver-buffer-duration", "storage-driver-db"],
  ...["storage-driver-host", "storage-driver-password", "storage-driver-secure", "storage-driver-table"],
  "storage-driver-user",
];
const OF_CADVISOR =
  "This is a cadvisor flag that was mistakenly registered with the Kubelet. Due to legacy concerns, it will follow the standard CLI deprecation timeline before being removed.";
const EVICTS_INSTEAD = "Use --eviction-hard or --eviction-soft instead. Will be removed in a future version.";

const DEPRECATED: ReadonlyMap<string, string> = new Map([
  ...CADVISOR_FLAGS.map((name) => [name, OF_CADVISOR] as const),
  ["experimental-allocatable-ignore-eviction", "will be removed in 1.25 or later."],
  ["experimental-mounter-path", "will be removed in 1.25 or later. in favor of using CSI."],
  ["maximum-dead-containers", EVICTS_INSTEAD],
  ["maximum-dead-containers-per-container", EVICTS_INSTEAD],
  ["minimum-container-ttl-duration", EVICTS_INSTEAD],
  [
    "pod-infra-container-image",
    "will be removed in 1.35. Image garbage collector will get sandbox image information from CRI.",
  ],
]);

const fields = fieldsOf(FIELDS);

export const v1_34 = profileOfData({
  version: "1.34",
  previousVersion: "1.33",
  release: "1.34.4",
  policyVersion: "kubelet-1.34+5",
  gates: gatesOf(GATES),
  graduated: new Set(),
  fields,
  // kubelet 1.34.4: SetDefaults_KubeletConfiguration
  defaults: {
    address: "0.0.0.0",
    authentication: { anonymous: { enabled: false }, webhook: { cacheTTL: "2m0s", enabled: true } },
    authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: "5m0s", cacheUnauthorizedTTL: "30s" } },
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: true,
    configMapAndSecretChangeDetectionStrategy: "Watch",
    containerLogMaxFiles: 5,
    containerLogMaxSize: "10Mi",
    containerLogMaxWorkers: 1,
    containerLogMonitorInterval: "10s",
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    contentType: "application/vnd.kubernetes.protobuf",
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: "100ms",
    cpuManagerPolicy: "none",
    cpuManagerReconcilePeriod: "10s",
    enableControllerAttachDetach: true,
    enableDebugFlagsHandler: true,
    enableDebuggingHandlers: true,
    enableProfilingHandler: true,
    enableServer: true,
    enableSystemLogHandler: true,
    enforceNodeAllocatable: ["pods"],
    eventBurst: 100,
    eventRecordQPS: 50,
    // eviction: DefaultEvictionHard, which cmd/kubelet/app: loadConfigFile sets
    evictionHard: {
      "imagefs.available": "15%",
      "imagefs.inodesFree": "5%",
      "memory.available": "100Mi",
      "nodefs.available": "10%",
      "nodefs.inodesFree": "5%",
    },
    evictionPressureTransitionPeriod: "5m0s",
    failCgroupV1: false,
    failSwapOn: true,
    fileCheckFrequency: "20s",
    hairpinMode: "promiscuous-bridge",
    healthzBindAddress: "127.0.0.1",
    healthzPort: 10248,
    httpCheckFrequency: "20s",
    imageGCHighThresholdPercent: 85,
    imageGCLowThresholdPercent: 80,
    imageMaximumGCAge: "0s",
    imageMinimumGCAge: "2m0s",
    iptablesDropBit: 15,
    iptablesMasqueradeBit: 14,
    kubeAPIBurst: 100,
    kubeAPIQPS: 50,
    localStorageCapacityIsolation: true,
    logging: {
      flushFrequency: "5s",
      format: "text",
      options: { json: { infoBufferSize: "0" }, text: { infoBufferSize: "0" } },
      verbosity: 0,
    },
    makeIPTablesUtilChains: true,
    maxOpenFiles: 1_000_000,
    maxPods: 110,
    memoryManagerPolicy: "None",
    memoryThrottlingFactor: 0.9,
    mergeDefaultEvictionSettings: false,
    nodeLeaseDurationSeconds: 40,
    nodeStatusMaxImages: 50,
    // nodeStatusUpdateFrequency's value if only that field is set
    nodeStatusReportFrequency: "5m0s",
    nodeStatusUpdateFrequency: "10s",
    oomScoreAdj: -999,
    podLogsDir: "/var/log/pods",
    podPidsLimit: -1,
    port: 10250,
    registerNode: true,
    registryBurst: 10,
    registryPullQPS: 5,
    resolvConf: "/etc/resolv.conf",
    runtimeRequestTimeout: "2m0s",
    seccompDefault: false,
    // false if maxParallelImagePulls is above 1
    serializeImagePulls: true,
    shutdownGracePeriod: "0s",
    shutdownGracePeriodCriticalPods: "0s",
    streamingConnectionIdleTimeout: "4h0m0s",
    syncFrequency: "1m0s",
    topologyManagerPolicy: "none",
    topologyManagerScope: "container",
    volumePluginDir: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    volumeStatsAggPeriod: "1m0s",
  },
  gatedDefaults: {
    KubeletCrashLoopBackOffMax: { crashLoopBackOff: { maxContainerRestartPeriod: "5m0s" } },
    KubeletEnsureSecretPulledImages: { imagePullCredentialsVerificationPolicy: "NeverVerifyPreloadedImages" },
  },
  // kubelet 1.34.4: NewKubeletFlags
  commandLine: flagsOf(FLAGS, fields, DEPRECATED),
  podFields: new Set(),
  flags: { minimumContainerTTLMs: 0, maximumDeadContainersPerContainer: 1, maximumDeadContainers: -1 },
  behaviour: {
    // kubelet 1.34.4: cpumanager alphaOptions, betaOptions, stableOptions
    cpuManagerPolicyOptions: {
      "align-by-socket": "alpha",
      "distribute-cpus-across-cores": "alpha",
      "distribute-cpus-across-numa": "beta",
      "full-pcpus-only": "stable",
      "prefer-align-cpus-by-uncorecache": "beta",
      "strict-cpu-reservation": "beta",
    },
    topologyManagerPolicyOptions: { "max-allowable-numa-nodes": "beta", "prefer-closest-numa-nodes": "stable" },
    // kubelet 1.34.4: safeSysctls
    safeSysctls: new Map([
      ["kernel.shm_rmid_forced", null],
      ["net.ipv4.ip_local_port_range", null],
      ["net.ipv4.tcp_syncookies", null],
      ["net.ipv4.ping_group_range", null],
      ["net.ipv4.ip_unprivileged_port_start", null],
      ["net.ipv4.ip_local_reserved_ports", [3, 16]],
      ["net.ipv4.tcp_keepalive_time", [4, 5]],
      ["net.ipv4.tcp_fin_timeout", [4, 6]],
      ["net.ipv4.tcp_keepalive_intvl", [4, 5]],
      ["net.ipv4.tcp_keepalive_probes", [4, 5]],
      ["net.ipv4.tcp_rmem", [4, 15]],
      ["net.ipv4.tcp_wmem", [4, 15]],
    ]),
    // k8s.io/component-helpers v0.34.4: nameToNamespace, prefixToNamespace
    namespacedSysctls: new Map([
      ["kernel.sem", "IPC"],
      ["kernel.shmall", "IPC"],
      ["kernel.shmmax", "IPC"],
      ["kernel.shmmni", "IPC"],
      ["kernel.shm_rmid_forced", "IPC"],
      ["kernel.shm", "IPC"],
      ["kernel.msgmax", "IPC"],
      ["kernel.msgmnb", "IPC"],
      ["kernel.msgmni", "IPC"],
      ["kernel.msg", "IPC"],
      ["fs.mqueue.", "IPC"],
      ["net.", "Net"],
    ]),
    memoryProtection: "requests",
    memoryQosOfPods: false,
    limitsOfEachContainer: false,
    podMemoryLeftAtLeastZero: false,
    distributesBySocket: false,
    keepsHeldCpus: false,
    memoryRequestsFirst: false,
    roundsReservedCpu: false,
    stateFiles: "containers",
    probePortsByName: false,
    managersReadAllocated: true,
    deviceHintsOverAllNodes: true,
    claimedDevicesLeft: false,
    claimedNotCounted: false,
    leftToClaims: "unlisted",
    nodeClaims: "sums",
    claims: {
      shareIds: false,
      nodeOperationsSkipped: false,
      answersReplace: false,
      unpreparesByReference: false,
      podsWithoutGroup: "own-claims",
      extendedRequests: "first",
      notOwner: (claim, pod) => `ResourceClaim ${claim} was not created for pod ${pod} (pod is not owner)`,
      unknownClaim: (name, namespace, ofExtendedResource) =>
        ofExtendedResource
          ? `unable to get claim info for claim ${name} in namespace ${namespace}`
          : `internal error: unable to get claim info for ResourceClaim ${name}`,
      healthTimeouts: false,
      healthMessages: false,
      healthByService: false,
      forgetsDevices: false,
      healthOf: "claim-names",
    },
    declaredFeatures: new Map(),
    sidecarStorageLimits: false,
    // k8s.io/kubelet v0.34.4: addKnownTypes of config/v1beta1, config/v1
    otherKinds: new Map([
      ["kubelet.config.k8s.io/v1beta1", ["SerializedNodeConfigSource", "CredentialProviderConfig"]],
      ["kubelet.config.k8s.io/v1", ["CredentialProviderConfig"]],
    ]),
    // sigs.k8s.io/json v0.0.0-20241014173422: before Go 1.24's encoding/json
    innerStructsNamed: false,
    minimumAgeAtLeastZero: false,
    flushFrequencyAboveZero: false,
    allowlistInFull: true,
    throttlingFactorWithoutGate: null,
    // kubelet 1.34.4: NewStripedLockSet
    maxPullsChecked: 31,
    // kubelet 1.34.4: applyDefaults of pkg/kubelet/config
    staticPodUid: "md5",
    countsResizesByPod: false,
    resizesPodForStarting: false,
    resizesStaticPods: false,
    resizesBeyondNode: false,
    resizeFeatures: [],
    resizesWithNodeClaims: true,
    resizesWithClaims: false,
    refusesRestartingInits: false,
    countsAllocatedOnly: false,
    podLevelResizesFirst: true,
    addsToNone: true,
  },
  words: {
    podLevelNotResized: "pods with pod-level resources cannot be resized",
    initNotResized: "only cpu and memory resources for sidecar containers are mutable",
    containerCreated: (name) => `Created container: ${name}`,
    containerStarted: (name) => `Started container ${name}`,
    badDefaultCpuSet: (quoted) => `could not parse default cpu set ${quoted}`,
    cpuStateNotMigrated: "error migrating v1 checkpoint state to v2 checkpoint state",
    imagesNotFreed: ({ wanted, freed }) =>
      `Failed to garbage collect required amount of images. Attempted to free ${wanted} bytes, but only found ${freed} bytes eligible to free.`,
    cgroupV1Refused:
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is in maintenance mode",
    hiddenMetricsRefused: (_quoted, before) =>
      `--show-hidden-metrics-for-version must be omitted or have the value '${before}'. Only the previous minor version is allowed`,
    logQueryRefused: "NodeLogQuery feature gate is required for enableSystemLogHandler",
  },
  grpcGo: "1.72.1",
  // there is no older version to upgrade from
  notes: [],
});
