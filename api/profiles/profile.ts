import { parseDuration } from "../base/duration.ts";
import { value } from "../model/amount.ts";
import { type KubeletConfiguration, kubeletConfiguration } from "../model/kubelet-configuration.ts";
import { parseQuantity } from "../model/quantity.ts";
import type { ClaimsBehaviour } from "./claims-behaviour.ts";
import type { VersionNote } from "./note.ts";

/** A feature gate of the kubelet. kubelet: DefaultFeatureGate. */
export interface GateSpec {
  readonly stage: "alpha" | "beta" | "stable" | "deprecated";
  readonly isOn: boolean;
  /** True: the gate cannot be changed. */
  readonly locked: boolean;
  /** Gates that must be on if this one is. */
  readonly requires: readonly string[];
  /**
   * Whether a kubelet, or a library in it, reads the gate. A kubelet accepts the gates of all components, and the others have no
   * effect there. kubelet: pkg/features, and the uses of each name.
   */
  readonly isKubeletGate: boolean;
}

/**
 * The defaults of a KubeletConfiguration, in the form of that document. kubelet: SetDefaults_KubeletConfiguration. Only those that
 * the code reads by name are listed; the others exist as well.
 */
export interface Defaults extends Readonly<Record<string, unknown>> {
  readonly cgroupDriver: "cgroupfs" | "systemd";
  readonly containerLogMaxFiles: number;
  readonly containerLogMaxSize: string;
  readonly containerLogMaxWorkers: number;
  readonly containerLogMonitorInterval: string;
  readonly containerRuntimeEndpoint: string;
  readonly cpuCFSQuotaPeriod: string;
  readonly cpuManagerPolicy: string;
  readonly crashLoopBackOff?: { readonly maxContainerRestartPeriod: string };
  readonly evictionHard: Readonly<Record<string, string>> & { readonly "memory.available": string };
  readonly evictionPressureTransitionPeriod: string;
  readonly healthzPort: number;
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  readonly imageMinimumGCAge: string;
  readonly logging: { readonly flushFrequency: string; readonly verbosity: number; readonly [field: string]: unknown };
  readonly maxPods: number;
  readonly nodeStatusReportFrequency: string;
  readonly podLogsDir: string;
  readonly port: number;
  readonly resolvConf: string;
  readonly runtimeRequestTimeout: string;
  readonly serializeImagePulls: boolean;
  readonly seccompDefault: boolean;
  readonly topologyManagerPolicy: string;
  readonly volumeStatsAggPeriod: string;
}

/**
 * The fields that may stay unset: those that depend on the machine's cgroup version (kubelet 1.36: NewMainKubelet), and those
 * without a default in some version.
 */
type OptionalField = "singleProcessOOMKill" | "memoryThrottlingFactor";
type Field = Exclude<keyof KubeletConfiguration, "kind" | OptionalField>;
/** A KubeletConfiguration with every field that decisions read. */
export type FullConfiguration = Pick<KubeletConfiguration, OptionalField> & {
  readonly [F in Field]-?: Exclude<NonNullable<KubeletConfiguration[F]>, "">;
};

/** Lists and maps that are empty by default, and fields that an older version does not have. */
const EMPTY = {
  allowedUnsafeSysctls: [],
  cgroupRoot: "",
  cpuManagerPolicyOptions: {},
  crashLoopBackOff: {},
  evictionMaxPodGracePeriod: 0,
  evictionMinimumReclaim: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  featureGates: {},
  kubeReserved: {},
  kubeReservedCgroup: "",
  memoryReservationPolicy: "None",
  memorySwap: {},
  podsPerCore: 0,
  qosReserved: {},
  reservedMemory: [],
  reservedSystemCPUs: "",
  systemReserved: {},
  systemReservedCgroup: "",
  topologyManagerPolicyOptions: {},
} as const satisfies KubeletConfiguration;

/** A flag of the kubelet's command line. */
export interface FlagSpec {
  /** The field of a KubeletConfiguration that the flag sets, overriding the file; null if there is none. */
  readonly field: string | null;
  /** The Go type of that field, or else of the flag's own value. */
  readonly type: string;
  /** The end of the kubelet's deprecation message for the flag; null if it is not deprecated. */
  readonly deprecated: string | null;
}
export type CommandLine = ReadonlyMap<string, FlagSpec>;

/** The defaults of kubelet flags that have no field in KubeletConfiguration. */
interface FlagDefaults {
  readonly minimumContainerTTLMs: number;
  /** Dead containers that are kept; negative for no limit. */
  readonly maximumDeadContainersPerContainer: number;
  readonly maximumDeadContainers: number;
}

/** The maturity of a resource manager's policy option: options that are not stable need a gate. */
type OptionLevels = Readonly<Record<string, "alpha" | "beta" | "stable">>;

/**
 * The newest form of the CPU and memory managers' state files: resources of containers; with the gate PodLevelResourceManagers
 * also of pods as a whole; or everything as a separate text `data` after the fields of the first form.
 */
type StateFiles = "containers" | "pods" | "data";

export type SysctlNamespace = "IPC" | "Net" | "UTS" | "User";

/** Rules that differ between versions, as data. */
export interface Behaviour {
  readonly cpuManagerPolicyOptions: OptionLevels;
  readonly topologyManagerPolicyOptions: OptionLevels;
  /** Sysctls that any pod may set, and the first kernel that has them in a namespace (null for all). */
  readonly safeSysctls: ReadonlyMap<string, readonly [major: number, minor: number] | null>;
  /** The kernel's namespace of namespaced sysctls; a name that ends with a dot is a prefix. */
  readonly namespacedSysctls: ReadonlyMap<string, SysctlNamespace>;
  /** The memory that MemoryQoS protects: every request by memory.min, or as memoryReservationPolicy says. */
  readonly memoryProtection: "requests" | "policy";
  /**
   * Whether MemoryQoS throttles a pod with pod-level resources as a whole, throttles containers without request and limit, and is
   * reset in all cgroups while its gate is off.
   */
  readonly memoryQosOfPods: boolean;
  /**
   * Whether a container counts as limited only by its own limit; otherwise an init container also has the limits of the sidecars
   * before it.
   */
  readonly limitsOfEachContainer: boolean;
  /**
   * Whether the memory left to containers for oom_score_adj is at least zero if they request more than their pod; otherwise it
   * becomes negative.
   */
  readonly podMemoryLeftAtLeastZero: boolean;
  /** Whether `align-by-socket` affects `distribute-cpus-across-numa`. */
  readonly distributesBySocket: boolean;
  /** Whether a container that already has its CPUs keeps them regardless of full-pcpus-only; otherwise it is checked again. */
  readonly keepsHeldCpus: boolean;
  /**
   * Whether the memory manager first reads what a container requests, and skips one without memory requests; otherwise it looks
   * for nodes for that one as well, in vain if there are none.
   */
  readonly memoryRequestsFirst: boolean;
  /** Whether CPU in kubeReserved and systemReserved is rounded to thousandths. */
  readonly roundsReservedCpu: boolean;
  readonly stateFiles: StateFiles;
  /** Whether a probe's textual port must be a name; otherwise it may also be a number written as text. */
  readonly probePortsByName: boolean;
  /** Whether the CPU and memory managers use the allocated resources in a pod's status before its spec. */
  readonly managersReadAllocated: boolean;
  /** Whether a device's topology hints cover all NUMA nodes; otherwise only those with devices of the resource. */
  readonly deviceHintsOverAllNodes: boolean;
  /** Whether, with the gate DRAExtendedResource, no device is allocated if a claim provides the resource. */
  readonly claimedDevicesLeft: boolean;
  /** Whether, with that gate, admission does not count what a claim provides. */
  readonly claimedNotCounted: boolean;
  /**
   * The resources other than cpu, memory and ephemeral-storage that admission skips with the gate DRAExtendedResource, since a
   * claim may provide them: those that the node does not list, also those that it lists with 0, or none.
   */
  readonly leftToClaims: "unlisted" | "zero" | "none";
  /**
   * How a pod's status reports the node's own CPUs, memory and huge pages that claims provide: as sums, which admission counts, or
   * in parts, which cgroups and OOM scores use as well. Only with the gate DRANodeAllocatableResources.
   */
  readonly nodeClaims: "sums" | "parts";
  readonly claims: ClaimsBehaviour;
  /**
   * Features that a pod may require of its node, with the gate NodeDeclaredFeatures, each with a gate of the same name; `runtime`:
   * the container runtime must have it as well. Features that never matter to a new pod are left out.
   */
  readonly declaredFeatures: ReadonlyMap<string, "kubelet" | "runtime">;
  /** Whether exceeding a sidecar's limit for local storage evicts its pod. */
  readonly sidecarStorageLimits: boolean;
  /** The kinds of the kubelet's files other than the configuration, by apiVersion. */
  readonly otherKinds: ReadonlyMap<string, readonly string[]>;
  /** Whether Go includes OutputRoutingOptions, which JSON does not have, in the paths of its fields. */
  readonly innerStructsNamed: boolean;
  /** Whether a negative imageMinimumGCAge is rejected. */
  readonly minimumAgeAtLeastZero: boolean;
  /** Whether a negative logging.flushFrequency is rejected. */
  readonly flushFrequencyAboveZero: boolean;
  /** Whether images in preloadedImagesVerificationAllowlist must have their registry and path: no short names. */
  readonly allowlistInFull: boolean;
  /** The one memoryThrottlingFactor that is accepted without the gate MemoryQoS; null for any. */
  readonly throttlingFactorWithoutGate: number | null;
  /** If maxParallelImagePulls is larger, pulls of some images crash the kubelet once it checks credentials; null if none do. */
  readonly maxPullsChecked: number | null;
  /** How the uid of a static pod without one is derived from its manifest: a different hash makes it a different pod. */
  readonly staticPodUid: "md5" | "fnv-128a";
  /** Whether a pod that is being resized counts by sums over its containers; otherwise by the maximum per container. */
  readonly countsResizesByPod: boolean;
  /** Whether the API server checks pod-level resources before anything else in a resize. */
  readonly podLevelResizesFirst: boolean;
  /** Whether the API server lets a resize add anything to a container's requests or limits if it has none. */
  readonly addsToNone: boolean;
  /** Whether pods without allocated resources do not count next to others; otherwise they count by their specs. */
  readonly countsAllocatedOnly: boolean;
  /** Whether a pod's cgroup is updated for a container that was resized before it started. */
  readonly resizesPodForStarting: boolean;
  /** Whether static pods can be resized. */
  readonly resizesStaticPods: boolean;
  /**
   * Whether a resize beyond the node's size is left to the API server, and is deferred by the kubelet; otherwise the kubelet
   * rejects it as infeasible.
   */
  readonly resizesBeyondNode: boolean;
  /**
   * Features that the API server requires of a node for a resize, with the gate NodeDeclaredFeatures, in its order; each but
   * GuaranteedQoSPodCPUResize has a gate of the same name.
   */
  readonly resizeFeatures: readonly string[];
  /** Whether the API server accepts resizes of pods whose claims provide CPU or memory of the node. */
  readonly resizesWithNodeClaims: boolean;
  /** Whether the API server accepts resizes of pods whose containers have resource claims. */
  readonly resizesWithClaims: boolean;
  /** Whether the API server rejects resizePolicy RestartContainer for init containers that are not sidecars. */
  readonly refusesRestartingInits: boolean;
}

/** The gates for a manager's non-stable options (CPUManagerPolicyAlphaOptions and the like), with the version's rules. */
export interface OptionGates {
  readonly alpha: boolean;
  readonly beta: boolean;
  readonly behaviour: Behaviour;
}

/** Messages with wording that differs between versions. */
export interface Words {
  /** The API server's message for a resize of a pod with pod-level resources, if that feature is off. */
  readonly podLevelNotResized: string;
  /** The API server's message for a resize of other resources of a sidecar, or of an init container. */
  readonly initNotResized: string;
  /** Messages of the events Created and Started. */
  readonly containerCreated: (name: string) => string;
  readonly containerStarted: (name: string) => string;
  /** For a cpu_manager_state whose shared pool is not a list of CPUs; `quoted`: its text. */
  readonly badDefaultCpuSet: (quoted: string) => string;
  /** For a cpu_manager_state of version 1 with an unknown container. */
  readonly cpuStateNotMigrated: string;
  /** For a collection of images that freed too few bytes. */
  readonly imagesNotFreed: (of: {
    readonly usagePercent: number;
    readonly capacity: string;
    readonly wanted: bigint;
    readonly freed: bigint;
  }) => string;
  /** For a kubelet that does not start on cgroup v1. */
  readonly cgroupV1Refused: string;
  /** For a showHiddenMetricsForVersion, in Go's quotes, other than `before`, the version before this one. */
  readonly hiddenMetricsRefused: (quoted: string, before: string) => string;
  /** For enableSystemLogQuery without its gate. */
  readonly logQueryRefused: string;
}

/**
 * One minor version of the kubelet: everything that differs between versions. The oldest is complete; each later one lists only
 * what changed.
 */
interface ProfileData {
  /** `1.36` */
  readonly version: string;
  /** `1.35` */
  readonly previousVersion: string;
  /** The kubelet release whose source was read: `1.36.3`. */
  readonly release: string;
  /**
   * The policy version of decisions under this profile, `kubelet-1.36+7`. Raised by every commit that changes the expected answer
   * of a test vector (listed in docs/reference/policy-versions.md).
   */
  readonly policyVersion: string;
  /** Feature gates by name; gates that this version does not know are absent. */
  readonly gates: ReadonlyMap<string, GateSpec>;
  /** Gates that were stable or locked, and on, when this version or one before removed them: what they guarded is always on. */
  readonly graduated: ReadonlySet<string>;
  /** The Go type of each field of a KubeletConfiguration, by its path. */
  readonly fields: ReadonlyMap<string, string>;
  readonly defaults: Defaults;
  /** Defaults that apply only while a gate is on, by gate. Those of gates that are on by default are in `defaults` too. */
  readonly gatedDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly flags: FlagDefaults;
  /** Fields of a v1.Pod that not every version has, as `PodSpec.schedulingGroup`. */
  readonly podFields: ReadonlySet<string>;
  /** By the name of the flag, without leading dashes. */
  readonly commandLine: CommandLine;
  readonly behaviour: Behaviour;
  readonly words: Words;
  /** The version of grpc-go in the kubelet's go.mod, which gRPC probes send. */
  readonly grpcGo: string;
  /** Changes from the previous version, for upgrades. */
  readonly notes: readonly VersionNote[];
}

export interface Profile extends ProfileData {
  /** The parsed defaults of the fields that decisions read. */
  readonly configuration: FullConfiguration;
  /** Names of the fields of each object by its path; `""` for the configuration itself. */
  readonly fieldNames: ReadonlyMap<string, readonly string[]>;
}

/** What each version states itself, even if it is unchanged. */
type VersionField = "version" | "release" | "policyVersion" | "gates" | "grpcGo" | "notes";
type Derived = "previousVersion" | "graduated";

/** The version after `before`: what it does not state is unchanged. Throws like `profileOfData`. */
export function profileAfter(
  before: ProfileData,
  own: Pick<ProfileData, VersionField> & Partial<Omit<ProfileData, VersionField | Derived>>,
): Profile {
  const graduated = new Set(before.graduated);
  for (const [name, { stage, isOn, locked }] of before.gates)
    if (!own.gates.has(name) && isOn && (locked || stage === "stable")) graduated.add(name);
  return profileOfData({ ...before, ...own, previousVersion: before.version, graduated });
}

/** Throws if the defaults are incomplete or not a KubeletConfiguration, which is an error in the profile's file. */
export function profileOfData(data: ProfileData): Profile {
  const configuration: Record<string, unknown> = { ...EMPTY, ...kubeletConfiguration.parse(data.defaults) };
  for (const name of Object.keys(kubeletConfiguration.out.shape)) {
    const isDefault = Object.hasOwn(configuration, name) || NO_DEFAULT.has(name);
    if (!isDefault) throw new Error(`the profile of ${data.version} has no default of ${name}`);
  }
  return {
    ...data,
    configuration: configuration as unknown as FullConfiguration,
    fieldNames: namesByObject(data.fields),
  };
}
const NO_DEFAULT: ReadonlySet<string> = new Set<"kind" | OptionalField>([
  "kind",
  "singleProcessOOMKill",
  "memoryThrottlingFactor",
]);

function namesByObject(fields: ReadonlyMap<string, string>): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>([["", ["apiVersion", "kind"]]]);
  for (const path of fields.keys()) {
    const dot = path.lastIndexOf(".");
    const above = dot < 0 ? "" : path.slice(0, dot);
    const known = names.get(above);
    if (known === undefined) names.set(above, [path.slice(dot + 1)]);
    else known.push(path.slice(dot + 1));
  }
  return names;
}

/** Milliseconds of a duration in a profile, such as `5m0s`. Throws on a text that is none. */
export function millisIn(duration: string): number {
  const parsed = parseDuration(duration);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value.millis;
}

/** Bytes of a quantity in a profile, such as `10Mi`. Throws on a text that is none. */
export function bytesIn(quantity: string): number {
  const parsed = parseQuantity(quantity);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return value(parsed.value.amount);
}

/**
 * A gate that is set has its value, others follow AllAlpha and AllBeta, then their default; one that the version does not know is
 * off, unless it graduated. kubelet 1.36: featureGate.
 */
export function isGateOn(
  { gates, graduated }: Pick<Profile, "gates" | "graduated">,
  named: Readonly<Record<string, boolean>>,
  gate: string,
): boolean {
  const spec = gates.get(gate);
  if (spec === undefined) return graduated.has(gate);
  const all = spec.stage === "alpha" ? named["AllAlpha"] : spec.stage === "beta" ? named["AllBeta"] : undefined;
  return named[gate] ?? all ?? spec.isOn;
}
