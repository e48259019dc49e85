/** The fields of kubelet.config.k8s.io/v1beta1 KubeletConfiguration. kubelet 1.36.3. */
export const KUBELET_CONFIGURATION_FIELDS: readonly string[] = `
  address allowedUnsafeSysctls apiVersion authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS
  clusterDNS clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize
  containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuota
  cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff
  enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers
  enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst
  eventRecordQPS evictionHard evictionMaxPodGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod
  evictionSoft evictionSoftGracePeriod failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode
  healthzBindAddress healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent
  imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit
  iptablesMasqueradeBit kernelMemcgNotification kind kubeAPIBurst kubeAPIQPS kubeletCgroups kubeReserved
  kubeReservedCgroup localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls
  maxPods memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor mergeDefaultEvictionSettings
  nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
  podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist protectKernelDefaults providerID
  qosReserved readOnlyPort registerNode registerWithTaints registryBurst registryPullQPS reservedMemory
  reservedSystemCPUs resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault serializeImagePulls
  serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
  shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL staticPodURLHeader
  streamingConnectionIdleTimeout syncFrequency systemCgroups systemReserved systemReservedCgroup tlsCertFile
  tlsCipherSuites tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy
  topologyManagerPolicyOptions topologyManagerScope tracing userNamespaces volumePluginDir volumeStatsAggPeriod
`
  .trim()
  .split(/\s+/);

/**
 * The fields of the objects in it, and in the lists in it, by their path. The same source, with the kinds that it takes
 * from core/v1 (Taint) and component-base (logging, tracing).
 */
export const NESTED_FIELDS: ReadonlyMap<string, readonly string[]> = new Map(
  `
  authentication: anonymous webhook x509
  authentication.anonymous: enabled
  authentication.webhook: cacheTTL enabled
  authentication.x509: clientCAFile
  authorization: mode webhook
  authorization.webhook: cacheAuthorizedTTL cacheUnauthorizedTTL
  crashLoopBackOff: maxContainerRestartPeriod
  logging: flushFrequency format options verbosity vmodule
  logging.options: json text
  logging.options.json: infoBufferSize splitStream
  logging.options.text: infoBufferSize splitStream
  logging.vmodule: filePattern verbosity
  memorySwap: swapBehavior
  registerWithTaints: effect key timeAdded value
  reservedMemory: limits numaNode
  shutdownGracePeriodByPodPriority: priority shutdownGracePeriodSeconds
  tracing: endpoint samplingRatePerMillion
  userNamespaces: idsPerPod
`
    .trim()
    .split("\n")
    .map((line) => {
      const [path = "", names = ""] = line.trim().split(": ");
      return [path, names.split(" ")];
    }),
);
