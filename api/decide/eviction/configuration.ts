import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { enforcementOf } from "../config.ts";
import { goDuration } from "./go-values.ts";
import { isSignal, signalOrder } from "./signals.ts";
import {
  isHard,
  parseMinReclaim,
  parseThreshold,
  type Threshold,
  type ThresholdValue,
  unsupported,
} from "./threshold.ts";

type Texts = Readonly<Record<string, string>>;

const DEFAULT_EVICTION_HARD: Texts = {
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
};

/** evictionHard in force: any key set drops the other defaults unless mergeDefaultEvictionSettings. kubelet 1.36: cmd/kubelet/app. */
export function evictionHardOf(config: KubeletConfiguration): Texts {
  const own = config.evictionHard;
  if (own === undefined) return DEFAULT_EVICTION_HARD;
  return config.mergeDefaultEvictionSettings === true ? { ...DEFAULT_EVICTION_HARD, ...own } : own;
}

/** A setting that a kubelet would not start with: where, and its own words. */
export interface SettingFault {
  /** `evictionHard["memory.available"]`, below kubeletConfiguration. */
  readonly field: string;
  readonly message: string;
}
const FIELDS = ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] as const;
type Field = (typeof FIELDS)[number];

/** Every entry read; signals in order, because of several faults the kubelet names any one. */
function readAll<V>(
  field: Field,
  texts: Texts,
  read: (signal: string, text: string) => Result<V, string>,
): Result<ReadonlyMap<string, V>, SettingFault> {
  const all = new Map<string, V>();
  for (const signal of Object.keys(texts).sort()) {
    const one = read(signal, texts[signal] as string);
    if (!one.ok) return err({ field: `${field}[${JSON.stringify(signal)}]`, message: one.error });
    all.set(signal, one.value);
  }
  return ok(all);
}

/** Grace period in ms. kubelet 1.36: parseGracePeriods. */
function parseGrace(signal: string, text: string): Result<number, string> {
  if (!isSignal(signal)) return err(unsupported(signal));
  const grace = goDuration(text);
  if (!grace.ok) return grace;
  if (grace.value.nanos >= 0) return ok(grace.value.millis);
  return err(`invalid eviction grace period specified: ${text}, must be a positive value`);
}

/**
 * The thresholds of a configuration: hard, soft, then those that node allocatable adds. Error: the first setting that keeps
 * the kubelet from starting. kubelet 1.36: ParseThresholdConfig.
 */
export function evictionThresholds(config: KubeletConfiguration): Result<readonly Threshold[], SettingFault> {
  const hardTexts = evictionHardOf(config);
  const softTexts = config.evictionSoft ?? {};
  const reclaimTexts = config.evictionMinimumReclaim ?? {};
  const hard = readAll("evictionHard", hardTexts, parseThreshold);
  if (!hard.ok) return hard;
  const soft = readAll("evictionSoft", softTexts, parseThreshold);
  if (!soft.ok) return soft;
  const graces = readAll("evictionSoftGracePeriod", config.evictionSoftGracePeriod ?? {}, parseGrace);
  if (!graces.ok) return graces;
  const reclaims = readAll("evictionMinimumReclaim", reclaimTexts, parseMinReclaim);
  if (!reclaims.ok) return reclaims;
  const all: Threshold[] = [];
  const add = (signal: string, value: ThresholdValue | null, text: string, graceMs: number): void => {
    if (value === null || !isSignal(signal)) return;
    const minReclaim = reclaims.value.get(signal);
    const own = { signal, value, text, graceMs };
    all.push(minReclaim === undefined ? own : { ...own, minReclaim, minReclaimText: reclaimTexts[signal] as string });
  };
  for (const [signal, value] of inOrder(hard.value)) add(signal, value, hardTexts[signal] as string, 0);
  for (const [signal, value] of inOrder(soft.value)) {
    const grace = graces.value.get(signal);
    if (value !== null && grace === undefined) {
      const message = `grace period must be specified for the soft eviction threshold ${signal}`;
      return err({ field: `evictionSoft[${JSON.stringify(signal)}]`, message });
    }
    add(signal, value, softTexts[signal] as string, grace ?? 0);
  }
  return ok(enforcementOf(config).has("pods") ? [...all, ...all.flatMap(ofAllPods)] : all);
}

/** Go's maps have no order, and where several thresholds are met the order tells; here it is that of the signals. */
const inOrder = <V>(entries: ReadonlyMap<string, V>): readonly (readonly [string, V])[] =>
  [...entries].sort(([a], [b]) => Number(isSignal(a) && signalOrder(a)) - Number(isSignal(b) && signalOrder(b)));

/** A hard threshold of the node's memory holds for the memory of all pods as well. kubelet 1.36: addAllocatableThresholds. */
const ofAllPods = (t: Threshold): readonly Threshold[] =>
  t.signal === "memory.available" && isHard(t) ? [{ ...t, signal: "allocatableMemory.available" }] : [];

const DEFAULT_TRANSITION_MS = 300_000;
/** How long a condition stays True after it was last observed; nothing and zero are 5 minutes. */
export const transitionMs = (config: KubeletConfiguration): number =>
  config.evictionPressureTransitionPeriod?.millis || DEFAULT_TRANSITION_MS;
