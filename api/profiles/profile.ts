import { value } from "../model/amount.ts";
import { parseDuration } from "../model/duration.ts";
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
  /** Gates that must be on when this one is. */
  readonly wants: readonly string[];
  /**
   * A kubelet, or a library in it, asks for it. A kubelet takes the gates of all components, and those of the others do nothing
   * there. kubelet: pkg/features, and where each name is read.
   */
  readonly isKubeletGate: boolean;
}

/**
 * What a kubelet fills into the fields that a KubeletConfiguration leaves out, in the form of that document. kubelet:
 * SetDefaults_KubeletConfiguration. Named here are those that the code asks for by name; the others are there as well.
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
 * The fields that may stay unset: what the configuration leaves to the machine, by its cgroup version (kubelet 1.36:
 * NewMainKubelet), and what some version has no default for.
 */
type Unset = "singleProcessOOMKill" | "memoryThrottlingFactor";
type Field = Exclude<keyof KubeletConfiguration, "kind" | Unset>;
/** A KubeletConfiguration, as decisions read it, with every field. */
export type FullConfiguration = Pick<KubeletConfiguration, Unset> & {
  readonly [F in Field]-?: Exclude<NonNullable<KubeletConfiguration[F]>, "">;
};

/** Lists and maps that begin empty, and what an older version has no field for. */
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
  /** The field of a KubeletConfiguration that the flag sets, whatever a file says; null: none. */
  readonly field: string | null;
  /** The Go type of that field, else of the flag's own value. */
  readonly type: string;
  /** The end of what the kubelet prints where it is given; null: it is not deprecated. */
  readonly deprecated: string | null;
}
type CommandLine = ReadonlyMap<string, FlagSpec>;

/** The values of a kubelet's flags that are not given; no KubeletConfiguration has fields for these. */
interface FlagDefaults {
  readonly minimumContainerTTLMs: number;
  /** Dead containers that are kept; a negative number: all of them. */
  readonly maximumDeadContainersPerContainer: number;
  readonly maximumDeadContainers: number;
}

/** The maturity of a resource manager's policy option: options that are not stable need a gate. */
type OptionLevels = Readonly<Record<string, "alpha" | "beta" | "stable">>;

/**
 * The newest form of the CPU and the memory manager's files: CPUs and memory of containers; with the gate PodLevelResourceManagers
 * those of pods as a whole as well; or all of it as a text of its own, `data`, behind the fields of the first form.
 */
type StateFiles = "containers" | "pods" | "data";

export type SysctlNamespace = "IPC" | "Net" | "UTS" | "User";

/** Rules that another version has otherwise, as data. */
export interface Behaviour {
  readonly cpuManagerPolicyOptions: OptionLevels;
  readonly topologyManagerPolicyOptions: OptionLevels;
  /** Sysctls that any pod may set, and the first kernel that has them in a namespace (null: all). */
  readonly safeSysctls: ReadonlyMap<string, readonly [major: number, minor: number] | null>;
  /** The kernel's namespace of those sysctls that have one; a name that ends with a dot: of all that begin so. */
  readonly namespacedSysctls: ReadonlyMap<string, SysctlNamespace>;
  /** The memory that MemoryQoS protects: every request by memory.min, or what memoryReservationPolicy says. */
  readonly memoryProtection: "requests" | "policy";
  /**
   * Whether MemoryQoS throttles a pod with resources of its own as a whole, throttles containers without request and limit, and is
   * taken back from all cgroups while its gate is off.
   */
  readonly memoryQosOfPods: boolean;
  /**
   * Whether a container counts as limited by its own limit alone; otherwise an init container has the limit of the sidecars
   * before it as well.
   */
  readonly limitsOfEachContainer: boolean;
  /** Whether containers that request more memory than their pod leave nothing for oom_score_adj; otherwise less than nothing. */
  readonly podMemoryLeftAtLeastZero: boolean;
  /** Whether `align-by-socket` has a say in `distribute-cpus-across-numa`. */
  readonly distributesBySocket: boolean;
  /** Whether a container that has its CPUs keeps them whatever full-pcpus-only says; otherwise it is checked again. */
  readonly keepsHeldCpus: boolean;
  /**
   * Whether the memory manager begins with what a container asks for, and is done with one that asks for nothing; otherwise it looks
   * for nodes for that as well, in vain where none are given to it.
   */
  readonly memoryRequestsFirst: boolean;
  /** Whether CPU in kubeReserved and systemReserved is rounded to thousandths. */
  readonly roundsReservedCpu: boolean;
  readonly stateFiles: StateFiles;
  /** Whether a probe's port in letters is a name only; otherwise it may also be a number that was written as text. */
  readonly probePortsByName: boolean;
  /** Whether the CPU and the memory manager count what a status says that a pod was given, before its spec. */
  readonly managersReadAllocated: boolean;
  /** Whether a device's topology hints name all NUMA nodes; otherwise those that hold devices of the resource. */
  readonly deviceHintsOverAllNodes: boolean;
  /** Whether, with the gate DRAExtendedResource, no device is given where a claim gives the resource. */
  readonly claimedDevicesLeft: boolean;
  /** Whether, with that gate, admission does not count what a claim gives. */
  readonly claimedNotCounted: boolean;
  /**
   * The resources beside cpu, memory and ephemeral-storage that admission does not test, with the gate DRAExtendedResource, since a claim might give them: those that the
   * node does not list, also those that it lists with 0, or none.
   */
  readonly leftToClaims: "unlisted" | "zero" | "none";
  /**
   * How a pod's status tells what claims give it of the node's own CPUs, memory and huge pages: as sums, which admission counts, or in parts, which cgroups and
   * OOM scores go by as well. Only with the gate DRANodeAllocatableResources.
   */
  readonly nodeClaims: "sums" | "parts";
  readonly claims: ClaimsBehaviour;
  /**
   * Features that a pod may need of its node, with the gate NodeDeclaredFeatures, each behind a gate of its name; `runtime`: the
   * container runtime must have it as well. Those that never matter to a new pod are left out.
   */
  readonly declaredFeatures: ReadonlyMap<string, "kubelet" | "runtime">;
  /** Whether the limit of a sidecar's local storage evicts its pod. */
  readonly sidecarStorageLimits: boolean;
  /** The kinds of its files beside the configuration, by their apiVersion. */
  readonly otherKinds: ReadonlyMap<string, readonly string[]>;
  /** Whether Go names OutputRoutingOptions, which JSON does not show, in the paths of its fields. */
  readonly innerStructsNamed: boolean;
  /** Whether an imageMinimumGCAge below zero is refused. */
  readonly minimumAgeAtLeastZero: boolean;
  /** Whether a logging.flushFrequency below zero is refused. */
  readonly flushFrequencyAboveZero: boolean;
  /** Whether images of preloadedImagesVerificationAllowlist stand there with their registry and folder: no short names. */
  readonly allowlistInFull: boolean;
  /** The one memoryThrottlingFactor that is taken without the gate MemoryQoS; null: any. */
  readonly throttlingFactorWithoutGate: number | null;
  /** From more maxParallelImagePulls than this on, pulls of some images end the kubelet once it checks credentials; null: none do. */
  readonly mostPullsChecked: number | null;
  /** How a static pod without a uid of its own gets one, of its manifest: by another hash it is another pod. */
  readonly staticPodUid: "md5" | "fnv-128a";
  /** Whether a pod that is being resized counts by the sums over its containers; otherwise by the largest of each container. */
  readonly countsResizesByPod: boolean;
  /** Whether the API server looks at resources of a pod as a whole before all else of a resize. */
  readonly podLevelResizesFirst: boolean;
  /** Whether the API server lets a resize add anything to requests or limits of a container that has none. */
  readonly addsToNone: boolean;
  /** Whether pods to which nothing is allocated yet do not count beside another; otherwise they do, by their specs. */
  readonly countsAllocatedOnly: boolean;
  /** Whether the cgroup of a pod follows a container that was resized before it starts. */
  readonly resizesPodForStarting: boolean;
  /** Whether static pods are resized. */
  readonly resizesStaticPods: boolean;
  /** Whether a resize that the node can never carry is left to the API server, and waits in the kubelet; otherwise that refuses it. */
  readonly resizesBeyondNode: boolean;
  /**
   * Features that the API server asks of a node for a resize, with the gate NodeDeclaredFeatures, in its order; each but
   * GuaranteedQoSPodCPUResize is behind a gate of its name.
   */
  readonly resizeFeatures: readonly string[];
  /** Whether the API server takes resizes of pods whose claims give them CPU or memory of the node. */
  readonly resizesWithNodeClaims: boolean;
  /** Whether the API server takes resizes of pods whose containers have resource claims. */
  readonly resizesWithClaims: boolean;
  /** Whether the API server refuses resizePolicy RestartContainer of init containers that are no sidecars. */
  readonly refusesRestartingInits: boolean;
}

/** The gates of a manager's options that are not stable (CPUManagerPolicyAlphaOptions and the like), and the version's rules. */
export interface OptionGates {
  readonly alpha: boolean;
  readonly beta: boolean;
  readonly behaviour: Behaviour;
}

/** Texts whose wording differs between versions. */
export interface Words {
  /** The API server's for a resize of a pod with resources of its own where that is off. */
  readonly podLevelNotResized: string;
  /** The API server's for a resize of other resources of a sidecar, or of an init container. */
  readonly initNotResized: string;
  /** Messages of the events Created and Started. */
  readonly containerCreated: (name: string) => string;
  readonly containerStarted: (name: string) => string;
  /** A cpu_manager_state whose shared pool is no list of CPUs; `quoted`: what it is. */
  readonly badDefaultCpuSet: (quoted: string) => string;
  /** A cpu_manager_state of version 1 has a container that nobody knows. */
  readonly cpuStateNotMigrated: string;
  /** Images were collected, and too few bytes came free. */
  readonly imagesNotFreed: (of: {
    readonly usagePercent: number;
    readonly capacity: string;
    readonly wanted: bigint;
    readonly freed: bigint;
  }) => string;
  /** The kubelet does not start on cgroup v1. */
  readonly cgroupV1Refused: string;
  /** The showHiddenMetricsForVersion, in Go's quotes, is not `before`, the version before this one. */
  readonly hiddenMetricsRefused: (quoted: string, before: string) => string;
  /** enableSystemLogQuery without its gate. */
  readonly logQueryRefused: string;
}

/** One minor version of the kubelet: all in which it differs from others. The oldest is written out, each later one says what changed. */
interface ProfileData {
  /** `1.36` */
  readonly version: string;
  /** `1.35` */
  readonly previousVersion: string;
  /** The kubelet whose sources were read: `1.36.3`. */
  readonly release: string;
  /** The policy version of decisions under this profile, `kubelet-1.36+7`. Raised by every commit that changes an answer of a vector (docs/reference/policy-versions.md keeps the list). */
  readonly policyVersion: string;
  /** Feature gates by name; gates that this version does not know are absent. */
  readonly gates: ReadonlyMap<string, GateSpec>;
  /** The Go type of each field of a KubeletConfiguration, by its path. */
  readonly fields: ReadonlyMap<string, string>;
  readonly defaults: Defaults;
  /** Defaults that hold only while a gate is on, by the gate. Those of gates that are on by default are in `defaults` too. */
  readonly gatedDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly flags: FlagDefaults;
  /** Fields of a v1.Pod that not every version has, as `PodSpec.schedulingGroup`. */
  readonly podFields: ReadonlySet<string>;
  /** By the name of the flag, without dashes before it. */
  readonly commandLine: CommandLine;
  readonly behaviour: Behaviour;
  readonly words: Words;
  /** The version of grpc-go that it is built with, which probes over gRPC tell: see its go.mod. */
  readonly grpcGo: string;
  /** Changes against the version before, for those who upgrade. */
  readonly notes: readonly VersionNote[];
}

export interface Profile extends ProfileData {
  /** The defaults of those fields that decisions read, parsed. */
  readonly configuration: FullConfiguration;
  /** Names of the fields of each object by its path; `""`: of the configuration itself. */
  readonly fieldNames: ReadonlyMap<string, readonly string[]>;
}

/** What each version has of its own, though it may be like the one before. */
type Own = "version" | "release" | "policyVersion" | "gates" | "grpcGo" | "notes";

/** The version after `before`: what it does not say is as it was. Throws as `profileOfData` does. */
export const profileAfter = (
  before: ProfileData,
  own: Pick<ProfileData, Own> & Partial<Omit<ProfileData, Own | "previousVersion">>,
): Profile => profileOfData({ ...before, ...own, previousVersion: before.version });

/** Throws on defaults that are no KubeletConfiguration, or not all: that is a fault of the profile's file. */
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
const NO_DEFAULT: ReadonlySet<string> = new Set<"kind" | Unset>([
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

/** Lines of `HEAD: ENTRIES`; what is indented by more than two spaces continues the line before it. */
const linesOf = (table: string): readonly (readonly [head: string, entries: readonly string[]])[] =>
  table
    .trim()
    .split(/\n {2}(?! )/)
    .map((line) => {
      const [head = "", entries = ""] = line.trim().split(": ");
      return [head, entries.split(/\s+/)];
    });

/**
 * Reads lines `STAGE on|off [locked]: GATE...` over the gates of the version before: `*` in front of a gate that is new says that
 * the kubelet asks for it, `<A,B` behind one what it wants. A line `removed: GATE...` takes gates away.
 */
export function gatesOf(table: string, before?: ReadonlyMap<string, GateSpec>): ReadonlyMap<string, GateSpec> {
  const gates = new Map(before);
  for (const [head, entries] of linesOf(table)) {
    const [stage, isOn, locked] = head.split(" ");
    for (const entry of entries) {
      const isMarked = entry.startsWith("*");
      const [name = "", wants = ""] = (isMarked ? entry.slice(1) : entry).split("<");
      if (head === "removed") gates.delete(name);
      else {
        gates.set(name, {
          stage: stage as GateSpec["stage"],
          isOn: isOn === "on",
          locked: locked === "locked",
          wants: wants === "" ? [] : wants.split(","),
          isKubeletGate: isMarked || before?.get(name)?.isKubeletGate === true,
        });
      }
    }
  }
  return gates;
}

/** Reads lines `GO TYPE: PATH...`, over the fields of the version before. */
export const fieldsOf = (table: string, before?: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  new Map([
    ...(before ?? []),
    ...linesOf(table).flatMap(([type, paths]) => paths.map((path) => [path, type] as const)),
  ]);

const OF_FILE =
  "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.";

/**
 * Reads lines `field: FLAG...` or `field deprecated: FLAG...` of flags that set a field, `FLAG=FIELD` where it is not named alike,
 * and lines `GO TYPE: FLAG...` of the others. `deprecated`: what is said of those, by the flag.
 */
export function flagsOf(
  table: string,
  fields: ReadonlyMap<string, string>,
  deprecated: ReadonlyMap<string, string>,
): CommandLine {
  const alike = new Map([...fields.keys()].map((field) => [field.toLowerCase(), field]));
  const flags = linesOf(table).flatMap(([head, entries]) =>
    entries.map((entry): [string, FlagSpec] => {
      const [name = "", named = alike.get(name.replaceAll("-", "")) ?? ""] = entry.split("=");
      if (!head.startsWith("field"))
        return [name, { field: null, type: head, deprecated: deprecated.get(name) ?? null }];
      const type = fields.get(named);
      if (type === undefined) throw new Error(`the flag ${name} sets no field`);
      return [name, { field: named, type, deprecated: head === "field" ? null : OF_FILE }];
    }),
  );
  return new Map(flags);
}
export const withoutFlags = (flags: CommandLine, names: readonly string[]): CommandLine =>
  new Map([...flags].filter(([name]) => !names.includes(name)));

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
 * A gate that is named keeps its word, the others follow AllAlpha and AllBeta, then their default; one that the version does not
 * know is off. kubelet 1.36: featureGate.
 */
export function isGateOn(
  { gates }: Pick<Profile, "gates">,
  named: Readonly<Record<string, boolean>>,
  gate: string,
): boolean {
  const spec = gates.get(gate);
  if (spec === undefined) return false;
  const all = spec.stage === "alpha" ? named["AllAlpha"] : spec.stage === "beta" ? named["AllBeta"] : undefined;
  return named[gate] ?? all ?? spec.isOn;
}
