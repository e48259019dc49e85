import type { AdmissionDecision } from "./admission.ts";
import type { PodAsk } from "./ask.ts";
import type { ContainerGcAsk, ContainerGcDecision } from "./container-gc.ts";
import type { DevicesDecision } from "./device-decision.ts";
import type { EvictionDecision } from "./eviction.ts";
import type { EvictionAsk } from "./eviction-facts.ts";
import type { ImageGcAsk, ImageGcDecision } from "./image-gc.ts";
import type { CpusDecision, MemoryDecision, TopologyDecision } from "./managers.ts";
import type { PreemptionDecision } from "./preemption.ts";
import type { PreemptionAsk } from "./preemption-ask.ts";
import type { ProbeGuardAsk, ProbeGuardDecision } from "./probe-guard.ts";
import type { ProbesAsk } from "./probes-ask.ts";
import type { ProbesDecision } from "./probes-decision.ts";
import type { Result } from "./result.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Bytes, CpuShares, CpuWeight, Micros } from "./units.ts";

/** One decision kind has one name: route, folder, row value, CLI verb. The others of the house join this list with their room. */
export const KINDS = [
  "allocatable",
  "cgroups",
  "cpus",
  "memory",
  "topology",
  "devices",
  "admission",
  "preemption",
  "eviction",
  "image-gc",
  "container-gc",
  "probes",
  "probe-guard",
] as const;
export type Kind = (typeof KINDS)[number];
export const isKind = (s: string): s is Kind => (KINDS as readonly string[]).includes(s);

/** Raised by every commit that changes an answer of a vector (api/README.md keeps the list). */
export const POLICY_VERSION = "kubelet-1.36.3+5";

export const EXPLAIN = ["off", "reasons", "full"] as const;
export type Explain = (typeof EXPLAIN)[number];

/** How a decision ended, of all kinds; every other word than `decided` is a negative answer. */
export const VERDICTS = [
  "decided",
  "refused",
  "kubelet-refuses",
  "calm",
  "under-pressure",
  "reclaims",
  "evicts",
  "keeps",
  "removes",
  "fails",
  "restarts",
] as const;
export type Verdict = (typeof VERDICTS)[number];
export const isVerdict = (s: string): s is Verdict => (VERDICTS as readonly string[]).includes(s);

/** A step of the reasoning: a stable code, the value that it explains (for example `cpuShares`), and the numbers it used. */
export interface Reason {
  readonly code: string;
  readonly field: string;
  readonly numbers?: Numbers;
}
/** All reasons of one place. */
export interface PlaceReasons {
  /** The cgroup's path or the resource's name that the reasons speak of. */
  readonly at: string;
  readonly because: readonly Reason[];
}
export type Numbers = Readonly<Record<string, string | number | boolean | undefined>>;

export const REFUSAL_CODES = [
  "needs_input",
  "invalid_configuration",
  "invalid_state",
  "no_such_pod",
  "too_large",
] as const;
/** An expected "no answer": what is missing or contradictory, and what to do about it. */
export interface Refusal {
  readonly code: (typeof REFUSAL_CODES)[number];
  readonly message: string;
  /** JSON paths below the snapshot that the decision could not do without. */
  readonly needs: readonly string[];
}

export const CGROUP_LEVELS = ["node", "qos", "pod", "container"] as const;
export type CgroupLevel = (typeof CGROUP_LEVELS)[number];

/** What a cgroup should hold, in the units of the kubelet's ResourceConfig; an absent field is not set. */
export interface CgroupValues {
  readonly cpuShares?: CpuShares;
  /** cgroup v2 only: what `cpuShares` becomes. */
  readonly cpuWeight?: CpuWeight;
  /** -1: no quota. */
  readonly cpuQuota?: Micros;
  readonly cpuPeriod?: Micros;
  /** Limit; -1: none. */
  readonly memory?: Bytes;
  readonly memoryMin?: Bytes;
  readonly memoryLow?: Bytes;
  readonly memoryHigh?: Bytes;
  /** v1: memory plus swap (memsw); v2: swap alone. */
  readonly memorySwap?: Bytes;
  readonly pidsLimit?: number;
  /** Page size in bytes -> limit in bytes; -1 (none) on QoS tiers. */
  readonly hugePageLimit?: Readonly<Record<string, Bytes>>;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  /** Of the container's processes (/proc/PID/oom_score_adj), not a cgroup file. */
  readonly oomScoreAdj?: number;
  readonly memoryOomGroup?: boolean;
}

/** A file of a cgroup directory by its bare name (`cpu.shares`, `cpu.max`) and the exact text to write. */
export interface CgroupFile {
  readonly path: string;
  readonly value: string;
}

export interface CgroupPlan {
  /** As under each hierarchy: `/kubepods/burstable/pod<uid>`, or the slices of the systemd driver. */
  readonly path: string;
  readonly level: CgroupLevel;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string } | null;
  /** The container's name; null above the container level. */
  readonly container: string | null;
  /** CRI id of the running container; null when it does not run yet (`path` then ends in its name). */
  readonly containerId: string | null;
  readonly values: CgroupValues;
  readonly files: readonly CgroupFile[];
}

export interface CgroupsDecision {
  readonly version: 1 | 2;
  readonly driver: "cgroupfs" | "systemd";
  /** Parents before children. */
  readonly cgroups: readonly CgroupPlan[];
}

/** Resource name -> canonical quantity text (`23123516Ki`). */
export type QuantityList = Readonly<Record<string, string>>;

export interface AllocatableDecision {
  readonly capacity: QuantityList;
  readonly allocatable: QuantityList;
  /** What was taken off, by whom: kubeReserved, systemReserved, evictionHard, hugepages. */
  readonly reserved: Readonly<Record<string, QuantityList>>;
  /** The limits of the kubepods cgroup (which do not subtract hard eviction). */
  readonly kubepods: { readonly enforced: boolean; readonly limits: QuantityList; readonly values: CgroupValues };
  /** The other node-level cgroups that enforceNodeAllocatable names. */
  readonly enforcement: readonly { readonly key: string; readonly cgroup: string; readonly values: CgroupValues }[];
  /** Configuration that the kubelet would refuse to start with. */
  readonly errors: readonly string[];
}

/** Undefined: the kind asks nothing beyond the snapshot. */
export interface AskOf {
  readonly allocatable: undefined;
  readonly cgroups: undefined;
  readonly cpus: PodAsk;
  readonly memory: PodAsk;
  readonly topology: PodAsk;
  readonly devices: PodAsk;
  readonly admission: PodAsk;
  readonly preemption: PreemptionAsk;
  readonly eviction: EvictionAsk;
  readonly "image-gc": ImageGcAsk;
  readonly "container-gc": ContainerGcAsk;
  readonly probes: ProbesAsk;
  readonly "probe-guard": ProbeGuardAsk;
}
export interface DecisionOf {
  readonly allocatable: AllocatableDecision;
  readonly cgroups: CgroupsDecision;
  readonly cpus: CpusDecision;
  readonly memory: MemoryDecision;
  readonly topology: TopologyDecision;
  readonly devices: DevicesDecision;
  readonly admission: AdmissionDecision;
  readonly preemption: PreemptionDecision;
  readonly eviction: EvictionDecision;
  readonly "image-gc": ImageGcDecision;
  readonly "container-gc": ContainerGcDecision;
  readonly probes: ProbesDecision;
  readonly "probe-guard": ProbeGuardDecision;
}

export interface Decided<D> {
  readonly decision: D;
  readonly verdict: Verdict;
  /** One entry a place, in the order in which the places were first spoken of. */
  readonly reasons: readonly PlaceReasons[];
  /** Inputs that would have made the answer fuller. */
  readonly needs: readonly string[];
  /** State to post next time; null when the kind keeps none. */
  readonly next: unknown;
}

/** What history knows, read by the caller; the core never reads it itself. */
export type Facts = Readonly<Record<string, unknown>>;

export interface Asked<A> {
  readonly snapshot: Snapshot;
  readonly facts: Facts;
  readonly ask: A;
  readonly explain: Explain;
}

/** INVARIANT: a pure function of its argument. Same input, same answer, same reasons. */
export type Decider<K extends Kind> = (asked: Asked<AskOf[K]>) => Result<Decided<DecisionOf[K]>, Refusal>;
