import { perObject } from "../base/cache.ts";
import type { DecideArguments } from "../model/decision.ts";
import type { KubeletConfiguration } from "../model/kubelet-configuration.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { profileIn } from "./index.ts";
import { type Defaults, type FullConfiguration, isGateOn, type Profile } from "./profile.ts";

/**
 * A KubeletConfiguration as the kubelet of a version uses it: with every field. It is made once from what was posted, and is never
 * stored or returned.
 */
export type EffectiveConfiguration = FullConfiguration & {
  readonly profile: Profile;
  /** The posted configuration; a field that it lacks has the default. */
  readonly given: KubeletConfiguration;
};
export type EffectiveSnapshot = Omit<Snapshot, "kubeletConfiguration"> & {
  readonly kubeletConfiguration: EffectiveConfiguration;
};
/** The input of a decider. */
export type EffectiveArguments<A> = Omit<DecideArguments<A>, "snapshot"> & { readonly snapshot: EffectiveSnapshot };

const NOTHING: KubeletConfiguration = {};

/**
 * Whether a kubelet replaces the value by a default. That also holds for a minimum image age of 0, but that is used as posted,
 * with a note: the flag can set it. kubelet 1.37: SetDefaults_KubeletConfiguration.
 */
const isUnset = (name: string, value: unknown): boolean => {
  if (ZERO_IS_UNSET.has(name)) return value === 0 || (value as { readonly nanos?: number }).nanos === 0;
  if (name === "crashLoopBackOff") return isEmpty(value as object);
  return name === "podPidsLimit" && Number(value) < 0;
};
/** Whether no member is set. */
const isEmpty = (value: object): boolean =>
  Object.values(value).every((member) => member === undefined || member === null);
const ZERO_IS_UNSET: ReadonlySet<string> = new Set([
  "evictionPressureTransitionPeriod",
  "maxPods",
  "nodeStatusUpdateFrequency",
]);

/**
 * Fills in the fields that a posted configuration leaves out. An empty text counts as left out, since Go cannot
 * distinguish the two.
 */
export const effectiveConfiguration = (profile: Profile, given = NOTHING): EffectiveConfiguration =>
  filledIn(profile)(given);

/** Cached, as hundreds of decisions use one object: a node's configuration is the same from snapshot to snapshot. */
const filledIn = perObject((profile: Profile) => perObject((given: KubeletConfiguration) => fillIn(profile, given)));

function fillIn(profile: Profile, given: KubeletConfiguration): EffectiveConfiguration {
  const all: Record<string, unknown> = { ...profile.configuration };
  for (const name in given) {
    const value = given[name as keyof KubeletConfiguration];
    if (value !== undefined && value !== null && value !== "" && !isUnset(name, value)) all[name] = value;
  }
  const { evictionHard, mergeDefaultEvictionSettings } = given;
  // kubelet 1.36: loadConfigFile of cmd/kubelet/app; otherwise any key that is set drops the other defaults
  if (evictionHard !== undefined && mergeDefaultEvictionSettings === true) {
    all["evictionHard"] = { ...profile.configuration.evictionHard, ...evictionHard };
  }
  all["profile"] = profile;
  all["given"] = given;
  return all as unknown as EffectiveConfiguration;
}

/**
 * Fills in a document from a file or /configz, including fields that decisions do not read and that are not validated: a value of
 * another type than its default counts as left out. An empty text counts if Go has a pointer.
 */
export function effectiveDocument({ defaults, fields }: Profile, document: unknown): Defaults {
  const posted = (document ?? {}) as Readonly<Record<string, unknown>>;
  const given = Object.entries(posted["kubeletconfig"] ?? posted).filter(([name, value]) => {
    if (value === null || (value === "" && fields.get(name) !== "*string")) return false;
    return defaults[name] === undefined || typeof value === typeof defaults[name];
  });
  const all: Record<string, unknown> & Defaults = { ...defaults, ...Object.fromEntries(given) };
  const { serializeImagePulls, maxParallelImagePulls } = Object.fromEntries(given);
  if (serializeImagePulls !== undefined || Number(maxParallelImagePulls) < 2) return all;
  return maxParallelImagePulls === undefined ? all : { ...all, serializeImagePulls: false };
}

/** A snapshot under a profile, by default its own kubelet's; an effective snapshot is returned unchanged. */
export function effectiveSnapshot(snapshot: Snapshot | EffectiveSnapshot, profile?: Profile): EffectiveSnapshot {
  const { kubeletConfiguration } = snapshot;
  if (kubeletConfiguration !== undefined && "profile" in kubeletConfiguration) return snapshot as EffectiveSnapshot;
  return {
    ...snapshot,
    kubeletConfiguration: effectiveConfiguration(profile ?? profileIn(snapshot), kubeletConfiguration),
  };
}

/** The feature gates that decisions and the daemon read. A gate that a version does not know is off there, unless it graduated. */
export const GATES = [
  "CPUManagerPolicyAlphaOptions",
  "CPUManagerPolicyBetaOptions",
  "CustomCPUCFSQuotaPeriod",
  "DRAExtendedResource",
  "DRAOptionalNodeOperations",
  "DRANodeAllocatableResources",
  "DRAWorkloadResourceClaims",
  "DisableCPUQuotaWithExclusiveCPUs",
  "DynamicResourceAllocation",
  "HugepageAwareEviction",
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScaling",
  "InPlacePodVerticalScalingExclusiveCPUs",
  "InPlacePodVerticalScalingExclusiveMemory",
  "InPlacePodVerticalScalingInitContainers",
  "InPlacePodVerticalScalingMemoryBackedVolumes",
  "InPlacePodVerticalScalingSchedulerPreemption",
  "MemoryQoS",
  "NodeDeclaredFeatures",
  "PodLevelResourceManagers",
  "PodLevelResources",
  "PodLevelResourcesFixDefaulting",
  "QOSReserved",
  "ResourceHealthStatus",
  "ResourceHealthStatusMessage",
  "RuntimeClassInImageCriApi",
  "TaintTolerationComparisonOperators",
  "TopologyManagerPolicyAlphaOptions",
  "TopologyManagerPolicyBetaOptions",
] as const;
type Gate = (typeof GATES)[number];

/** Whether a feature gate is on; a gate that the configuration does not set has its default in this version. */
export const gateOn = ({ profile, featureGates }: EffectiveConfiguration, gate: Gate): boolean =>
  isGateOn(profile, featureGates, gate);
