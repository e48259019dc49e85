import { fieldsOf as fieldsIn } from "../base/own.ts";
import type { VersionNote } from "./note.ts";
import { profileAfter } from "./profile.ts";
import { fieldsOf, gatesOf } from "./tables.ts";
import { v1_35 } from "./v1_35.ts";

/** The gates that differ from 1.35. kubelet 1.36.3: DefaultFeatureGate. */
const GATES = `
  alpha off: *CRIListStreaming ControllerManagerReleaseLeaderElectionLockOnExit
    DRAListTypeAttributes<DynamicResourceAllocation *DRANodeAllocatableResources<DynamicResourceAllocation
    DRAResourcePoolStatus<DynamicResourceAllocation
    *DRAWorkloadResourceClaims<DynamicResourceAllocation,GenericWorkload *ImageVolumeWithDigest<ImageVolume
    InPlacePodVerticalScalingExclusiveMemory<InPlacePodVerticalScaling ManifestBasedAdmissionControlConfig
    NativeHistograms PersistentVolumeClaimUnusedSinceTime *PodLevelResourceManagers<PodLevelResources *PodsAPI
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
    DeclarativeValidationBeta<DeclarativeValidation *ExtendWebSocketsToKubelet<NodeDeclaredFeatures
    InPlacePodLevelResourcesVerticalScaling<InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
    *InPlacePodVerticalScalingInitContainers<InPlacePodVerticalScaling,NodeDeclaredFeatures
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    *PLEGOnDemandRelist RelaxedServiceNameValidation *ReloadKubeletClientCAFile
    ResourceHealthStatus<DynamicResourceAllocation *ResourceHealthStatusMessage<ResourceHealthStatus
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

/** From the sources of 1.35.4 and 1.36.3. */
const NOTES: readonly VersionNote[] = [
  {
    topic: "file",
    name: "cpu_manager_state, memory_manager_state",
    begins: { what: "with the gate PodLevelResourceManagers they have a form of their own", before: null },
    ends: {
      what: "the older kubelet does not read the form that they have while the gate PodLevelResourceManagers is on",
      before: "drain the node, stop the kubelet, and remove both files",
    },
    concerns: ({ isOn }) => isOn("PodLevelResourceManagers"),
  },
  {
    topic: "behaviour",
    name: "gitRepo volumes",
    begins: {
      what: "they are gone for good: the gate GitRepoVolumeDriver is locked",
      before: "replace them, such as by an emptyDir that an init container fills",
    },
    concerns: ({ snapshot }) =>
      snapshot?.pods?.some(({ spec }) => spec.volumes?.some(({ gitRepo }) => gitRepo !== undefined)) ?? false,
  },
  {
    topic: "behaviour",
    name: "memory.min",
    begins: {
      what: "it is 0 unless memoryReservationPolicy is TieredReservation, where the gate MemoryQoS protected every request by it",
      before: "set memoryReservationPolicy to TieredReservation where requests are to stay protected",
    },
    ends: { what: "the gate MemoryQoS protects every request by it, whatever the policy is", before: null },
    // for a known node, the decisions about it show this
    concerns: ({ configuration, snapshot }) =>
      snapshot === undefined &&
      fieldsIn(configuration["featureGates"])["MemoryQoS"] === true &&
      configuration["memoryReservationPolicy"] !== "TieredReservation",
  },
  {
    topic: "behaviour",
    name: "a resize beyond the node",
    begins: {
      what: "it shows as Deferred in the pod's status, where older kubelets say Infeasible",
      before: "change what waits for Infeasible, such as an autoscaler of pods",
    },
    ends: {
      what: "it shows as Infeasible again, where newer kubelets say Deferred",
      before: "change what waits for Deferred",
    },
  },
  {
    topic: "metric",
    name: "kubelet_pod_start_sli_duration_seconds",
    begins: {
      what: "it leaves out init containers, image pulls in sessions of their own, and pods that are stateful or could not be scheduled: it falls",
      before: "check the objectives and alerts that are based on it",
    },
    ends: { what: "it counts these again: it rises", before: "check the objectives and alerts that are based on it" },
  },
  {
    topic: "metric",
    name: "kubelet_dra_operations_duration_seconds",
    begins: { what: "its label is_error was the wrong way round, and is right now", before: "turn alerts on it round" },
    ends: { what: "its label is_error is the wrong way round", before: "turn alerts on it round" },
    concerns: ({ isOn }) => isOn("DynamicResourceAllocation"),
  },
];

export const v1_36 = profileAfter(v1_35, {
  version: "1.36",
  release: "1.36.3",
  policyVersion: "kubelet-1.36+11",
  gates: gatesOf(GATES, v1_35.gates),
  fields: fieldsOf(FIELDS, v1_35.fields),
  podFields: new Set(["PodSpec.schedulingGroup"]),
  defaults: { ...v1_35.defaults, memoryReservationPolicy: "None" },
  behaviour: {
    ...v1_35.behaviour,
    // kubelet 1.36.3: cpumanager stableOptions
    cpuManagerPolicyOptions: {
      ...v1_35.behaviour.cpuManagerPolicyOptions,
      "prefer-align-cpus-by-uncorecache": "stable",
    },
    memoryProtection: "policy",
    // kubelet 1.36.3: podResizesAdmitHandler
    resizesStaticPods: true,
    resizesBeyondNode: true,
    stateFiles: "pods",
    claimedNotCounted: true,
    leftToClaims: "none",
    claims: {
      ...v1_35.behaviour.claims,
      podsWithoutGroup: "panic",
      extendedRequests: "mapped",
      notOwner: (claim, pod) => `ResourceClaim ${claim} was not created for Pod ${pod} (Pod is not owner)`,
      unknownClaim: (name, namespace) =>
        `internal error: unable to get claim info for ResourceClaim ${name} in namespace ${namespace}`,
      healthMessages: true,
      healthOf: "requests",
    },
    deviceHintsOverAllNodes: false,
    minimumAgeAtLeastZero: true,
    allowlistInFull: false,
    // k8s.io/component-helpers v0.36.3: AllFeatures of nodedeclaredfeatures/features
    declaredFeatures: new Map([
      ["RestartAllContainersOnContainerExits", "kubelet"],
      ["UserNamespacesHostNetworkSupport", "runtime"],
    ]),
    resizeFeatures: ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"],
    // kubernetes 1.36.3: ValidatePodResize, part 3
    resizesWithNodeClaims: false,
    refusesRestartingInits: true,
  },
  words: {
    ...v1_35.words,
    initNotResized: "only cpu and memory resources for init or sidecar containers are mutable",
    cpuStateNotMigrated: "failed to migrate checkpoint from v1 to v2",
    hiddenMetricsRefused: (quoted, before) =>
      `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: ${quoted}: must be omitted or have the value '${before}'; only the previous minor version is allowed`,
  },
  grpcGo: "1.79.3",
  notes: NOTES,
});
