import { type Duration, parseDuration } from "../../base/duration.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, isNegative, isZero, value } from "../../model/amount.ts";
import {
  EVICTION_SIGNALS,
  type EvictionSignal,
  type PressureCondition,
  type StarvedResource,
  type ThresholdRef,
} from "../../model/eviction.ts";
import {
  canonicalText,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  unitsQuantity,
} from "../../model/quantity.ts";
import { quote } from "../go/strconv.ts";

interface SignalFacts {
  readonly resource: StarvedResource;
  readonly condition: PressureCondition;
  /** The notation of its amounts. */
  readonly format: QuantityFormat;
  /** The signal's path in a Summary. */
  readonly stats: string;
}
const memory = (stats: string): SignalFacts => ({
  resource: "memory",
  condition: "MemoryPressure",
  format: "BinarySI",
  stats,
});
const disk = (stats: string): SignalFacts => ({
  resource: "ephemeral-storage",
  condition: "DiskPressure",
  format: "BinarySI",
  stats,
});
const inodes = (stats: string): SignalFacts => ({
  resource: "inodes",
  condition: "DiskPressure",
  format: "DecimalSI",
  stats,
});

/** kubelet 1.36: signalToNodeCondition, signalToResource. */
export const SIGNALS: Readonly<Record<EvictionSignal, SignalFacts>> = {
  "allocatableMemory.available": memory("stats.node.systemContainers"),
  "memory.available": memory("stats.node.memory"),
  "nodefs.available": disk("stats.node.fs"),
  "nodefs.inodesFree": inodes("stats.node.fs"),
  "imagefs.available": disk("stats.node.runtime.imageFs"),
  "imagefs.inodesFree": inodes("stats.node.runtime.imageFs"),
  "containerfs.available": disk("stats.node.runtime.containerFs"),
  "containerfs.inodesFree": inodes("stats.node.runtime.containerFs"),
  "pid.available": { resource: "pids", condition: "PIDPressure", format: "DecimalSI", stats: "stats.node.rlimit" },
};
export const isSignal = (s: string): s is EvictionSignal => (EVICTION_SIGNALS as readonly string[]).includes(s);
/** The position of a signal where the kubelet has no order; memory is first, as in the kubelet. */
export const signalOrder = (s: EvictionSignal): number => EVICTION_SIGNALS.indexOf(s);

/** Values of the eviction settings as Go reads them; every error is Go's own text, which the kubelet passes on. */

const FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_WRONG = "unable to parse quantity's suffix";
const QUANTITY_FORM = /^[+-]?\d*(?:\.\d*)?[eEinumkKMGTP]*(?:[-+]\d*|\d+)?$/;

/**
 * Parses a quantity. Go: resource.ParseQuantity. An amount whose thousandths exceed int64, where Go overflows, is
 * refused with our own message.
 */
export function goQuantity(text: string): Result<Quantity, string> {
  const parsed = parseQuantity(text);
  if (parsed.ok) return parsed;
  if (parsed.error.code === "out_of_range") return err(parsed.error.message);
  return err(text !== "" && QUANTITY_FORM.test(text) ? SUFFIX_WRONG : FORMAT_WRONG);
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;
const MAX_FLOAT32 = 3.4028234663852886e38;
const parsing = (text: string, what: string): Result<never, string> =>
  err(`strconv.ParseFloat: parsing ${quote(text)}: ${what}`);

/** A float32 hundredth of the number before the `%`. Go: parsePercentage of the kubelet; NaN and hexadecimal are refused. */
function goPercentage(text: string): Result<number, string> {
  const number = text.replace(/%+$/, "");
  if (!NUMBER.test(number)) {
    const infinite = INFINITE.exec(number);
    if (infinite === null) return parsing(number, "invalid syntax");
    return ok(infinite[1] === "-" ? -Infinity : Infinity);
  }
  const value = Math.fround(Number(number));
  if (Math.abs(value) > MAX_FLOAT32) return parsing(number, "value out of range");
  return ok(Math.fround(value / 100));
}

/** Go: time.ParseDuration. */
export function goDuration(text: string): Result<Duration, string> {
  const parsed = parseDuration(text);
  return parsed.ok ? parsed : err(durationFault(text));
}
const UNITS: ReadonlySet<string> = new Set(["ns", "us", "µs", "μs", "ms", "s", "m", "h"]);

/** The error for a duration. Go reads from the left, a number and its unit at a time, and reports the first fault. */
function durationFault(text: string): string {
  const invalid = `time: invalid duration ${quoted(text)}`;
  let rest = text.replace(/^[+-]/, "");
  while (rest !== "") {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) return invalid;
    const unit = /^[^.\d]*/.exec(rest.slice(number.length))?.[0] ?? "";
    if (unit === "") return `time: missing unit in duration ${quoted(text)}`;
    if (!UNITS.has(unit)) return `time: unknown unit ${quoted(unit)} in duration ${quoted(text)}`;
    rest = rest.slice(number.length + unit.length);
  }
  return invalid;
}

/** Quotes a text: printable ASCII as it is, everything else by its bytes. Go: quote of package time. */
function quoted(text: string): string {
  const bytes = [...text].map((char) =>
    char >= " " && char < "\x80" ? char.replace(/["\\]/, "\\$&") : [...utf8(char)].map(hexByte).join(""),
  );
  return `"${bytes.join("")}"`;
}
const hexByte = (byte: number): string => `\\x${byte.toString(16).padStart(2, "0")}`;
const utf8 = (char: string): Uint8Array => new TextEncoder().encode(char);

/** An amount, or a share of a capacity (a float32 between 0 and 1). */
export type ThresholdValue = { readonly quantity: Quantity } | { readonly percentage: number };

/** A threshold of the configuration; a signal is below it when strictly less is available. */
export interface Threshold {
  readonly signal: EvictionSignal;
  readonly value: ThresholdValue;
  /** As configured. */
  readonly text: string;
  /** The grace period in ms; 0: hard, whichever setting it came from. */
  readonly graceMs: number;
  readonly minReclaim?: ThresholdValue;
  readonly minReclaimText?: string;
  /** For a containerfs threshold: the signal that the kubelet derived it from. */
  readonly derivedFrom?: EvictionSignal;
}
export const isHard = (t: Threshold): boolean => t.graceMs === 0;

export const unsupported = (signal: string): string => `unsupported eviction signal ${signal}`;

/** The value of one threshold, null where the kubelet ignores it ("0%", "100%"); the error is the kubelet's. kubelet 1.36: parseThresholdStatement. */
export function parseThreshold(signal: string, text: string): Result<ThresholdValue | null, string> {
  if (!isSignal(signal)) return err(unsupported(signal));
  if (text.endsWith("%")) {
    if (text === "0%" || text === "100%") return ok(null);
    const percentage = goPercentage(text);
    if (!percentage.ok) return percentage;
    if (percentage.value < 0) return err(`eviction percentage threshold ${signal} must be >= 0%: ${text}`);
    if (percentage.value > 1) return err(`eviction percentage threshold ${signal} must be <= 100%: ${text}`);
    return ok({ percentage: percentage.value });
  }
  const quantity = goQuantity(text);
  if (!quantity.ok) return quantity;
  const { amount, format } = quantity.value;
  if (isNegative(amount) || isZero(amount)) {
    return err(`eviction threshold ${signal} must be positive: ${canonicalText(amount, format)}`);
  }
  return ok({ quantity: quantity.value });
}

/** Parses a minimum reclaim; the error is the kubelet's. kubelet 1.36: parseMinimumReclaims. */
export function parseMinReclaim(signal: string, text: string): Result<ThresholdValue, string> {
  if (!isSignal(signal)) return err(unsupported(signal));
  if (text.endsWith("%")) {
    const percentage = goPercentage(text);
    if (!percentage.ok) return percentage;
    if (percentage.value > 0) return ok({ percentage: percentage.value });
    return err(`eviction percentage minimum reclaim ${signal} must be positive: ${text}`);
  }
  const quantity = goQuantity(text);
  if (!quantity.ok) return quantity;
  if (!isNegative(quantity.value.amount)) return ok({ quantity: quantity.value });
  return err(`negative eviction minimum reclaim specified for ${signal}`);
}

/** Computes the amount of a value with this capacity. kubelet 1.36: GetThresholdQuantity. */
export function thresholdQuantity(threshold: ThresholdValue, capacity: Amount): Quantity {
  if ("quantity" in threshold) return threshold.quantity;
  // only a minimum reclaim may exceed the capacity; Go overflows where this clamps
  const units = Math.min(Math.trunc(value(capacity) * threshold.percentage) || 0, Number.MAX_SAFE_INTEGER);
  return unitsQuantity(units, "BinarySI");
}

export const refOf = ({ signal, text, graceMs, minReclaimText }: Threshold): ThresholdRef => ({
  signal,
  value: text,
  graceMs,
  ...(minReclaimText === undefined ? {} : { minReclaim: minReclaimText }),
});
/** The key that finds a remembered threshold in the configuration; a threshold that is no longer there is forgotten. */
export const keyOf = ({ signal, value: text, graceMs, minReclaim }: ThresholdRef): string =>
  `${signal}<${text} ${graceMs} ${minReclaim ?? ""}`;
