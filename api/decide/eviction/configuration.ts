import { err, ok, type Result } from "../../base/result.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import {
  goDuration,
  isHard,
  isSignal,
  parseMinReclaim,
  parseThreshold,
  signalOrder,
  type Threshold,
  type ThresholdValue,
  unsupported,
} from "./threshold.ts";

type Texts = Readonly<Record<string, string>>;

/** The fields of a KubeletConfiguration whose entries have signals for names. */
export const THRESHOLD_FIELDS = [
  "evictionHard",
  "evictionSoft",
  "evictionSoftGracePeriod",
  "evictionMinimumReclaim",
] as const;
type Field = (typeof THRESHOLD_FIELDS)[number];

/** Parses every entry, with signals sorted: if there are several faults, the kubelet reports a random one. */
function readAll<V>(
  field: Field,
  texts: Texts,
  read: (signal: string, text: string) => Result<V, string>,
  faults: SettingFault[],
): ReadonlyMap<string, V> {
  const all = new Map<string, V>();
  for (const signal of Object.keys(texts).sort()) {
    const one = read(signal, texts[signal] as string);
    if (one.ok) all.set(signal, one.value);
    else faults.push(settingFault(entry(field, signal), one.error));
  }
  return all;
}
const entry = (field: Field, signal: string): string => `${field}[${JSON.stringify(signal)}]`;

/** Grace period in ms. kubelet 1.36: parseGracePeriods. */
function parseGrace(signal: string, text: string): Result<number, string> {
  if (!isSignal(signal)) return err(unsupported(signal));
  const grace = goDuration(text);
  if (!grace.ok) return grace;
  if (grace.value.nanos >= 0) return ok(grace.value.millis);
  return err(`invalid eviction grace period specified: ${text}, must be a positive value`);
}

/**
 * The thresholds of a configuration: hard, soft, then those for node allocatable. Error: the first setting that keeps
 * the kubelet from starting. kubelet 1.36: ParseThresholdConfig.
 */
export function evictionThresholds(config: EffectiveConfiguration): Result<readonly Threshold[], SettingFault> {
  const { thresholds, faults } = readThresholds(config);
  const [first] = faults;
  if (first !== undefined) return err(first);
  return ok(
    config.enforceNodeAllocatable.includes("pods") ? [...thresholds, ...thresholds.flatMap(ofAllPods)] : thresholds,
  );
}

/** All thresholds that can be read, hard then soft, and every fault of the four fields; a kubelet names the first. */
export function readThresholds(config: EffectiveConfiguration): {
  readonly thresholds: readonly Threshold[];
  readonly faults: readonly SettingFault[];
} {
  const { evictionHard: hardTexts, evictionSoft: softTexts, evictionMinimumReclaim: reclaimTexts } = config;
  const faults: SettingFault[] = [];
  const hard = readAll("evictionHard", hardTexts, parseThreshold, faults);
  const soft = readAll("evictionSoft", softTexts, parseThreshold, faults);
  const graces = readAll("evictionSoftGracePeriod", config.evictionSoftGracePeriod, parseGrace, faults);
  const reclaims = readAll("evictionMinimumReclaim", reclaimTexts, parseMinReclaim, faults);
  const thresholds: Threshold[] = [];
  const add = (signal: string, value: ThresholdValue | null, text: string, graceMs: number): void => {
    if (value === null || !isSignal(signal)) return;
    const minReclaim = reclaims.get(signal);
    const own = { signal, value, text, graceMs };
    const more = minReclaim === undefined ? {} : { minReclaim, minReclaimText: reclaimTexts[signal] as string };
    thresholds.push({ ...own, ...more });
  };
  for (const [signal, value] of inOrder(hard)) add(signal, value, hardTexts[signal] as string, 0);
  for (const [signal, value] of inOrder(soft)) {
    const grace = graces.get(signal);
    if (value !== null && grace === undefined && config.evictionSoftGracePeriod[signal] === undefined) {
      const message = `grace period must be specified for the soft eviction threshold ${signal}`;
      faults.push(settingFault(entry("evictionSoft", signal), message));
    } else add(signal, value, softTexts[signal] as string, grace ?? 0);
  }
  return { thresholds, faults };
}

/**
 * The entries in the order of signals. Go's maps have no order, yet the order matters if several thresholds are met.
 */
const inOrder = <V>(entries: ReadonlyMap<string, V>): Iterable<readonly [string, V]> =>
  entries.size < 2
    ? entries
    : [...entries].sort(([a], [b]) => Number(isSignal(a) && signalOrder(a)) - Number(isSignal(b) && signalOrder(b)));

/**
 * The threshold, and for a hard memory threshold also the one for the memory of all pods. kubelet 1.36:
 * addAllocatableThresholds.
 */
const ofAllPods = (t: Threshold): readonly Threshold[] =>
  t.signal === "memory.available" && isHard(t) ? [{ ...t, signal: "allocatableMemory.available" }] : [];
