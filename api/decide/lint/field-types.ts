/**
 * What Go reads each field of a KubeletConfiguration into, `*` where a null leaves it unset; below a list, of its items.
 * Source: k8s.io/kubelet v0.36.3, config/v1beta1. kubelet 1.36.3.
 */
export const FIELD_TYPES: ReadonlyMap<string, string> = new Map(
  `
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
  []int32: tlsCurvePreferences
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
  v1beta1.MemoryReservationPolicy: memoryReservationPolicy
  v1beta1.MemorySwapConfiguration: memorySwap
  v1beta1.ResourceChangeDetectionStrategy: configMapAndSecretChangeDetectionStrategy
`
    .trim()
    .split(/\n {2}(?! )/)
    .flatMap((line) => {
      const [type = "", paths = ""] = line.trim().split(": ");
      return paths.split(/\s+/).map((path) => [path, type] as const);
    }),
);
