import { type Amount, isNegative, isZero, value } from "../../model/amount.ts";
import type { EvictionSignal, ThresholdRef } from "../../model/eviction.ts";
import { canonicalText, type Quantity, unitsQuantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { goPercentage, goQuantity } from "./go-values.ts";
import { isSignal } from "./signals.ts";

/** An amount, or a share of a capacity (a float32 between 0 and 1). */
export type ThresholdValue = { readonly quantity: Quantity } | { readonly percentage: number };

/** A threshold of the configuration; a signal is below it when strictly less is available. */
export interface Threshold {
  readonly signal: EvictionSignal;
  readonly value: ThresholdValue;
  /** As configured. */
  readonly text: string;
  /** 0: hard, whichever list it came from. */
  readonly graceMs: number;
  readonly minReclaim?: ThresholdValue;
  readonly minReclaimText?: string;
  /** Of a containerfs threshold: the signal that the kubelet made it from. */
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

/** The error is the kubelet's. kubelet 1.36: parseMinimumReclaims. */
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

/** What a value comes to with this capacity. kubelet 1.36: GetThresholdQuantity. */
export function thresholdQuantity(threshold: ThresholdValue, capacity: Amount): Quantity {
  if ("quantity" in threshold) return threshold.quantity;
  // only a minimum reclaim may be more than all there is; Go overflows where this stops
  const units = Math.min(Math.trunc(value(capacity) * threshold.percentage) || 0, Number.MAX_SAFE_INTEGER);
  return unitsQuantity(units, "BinarySI");
}

export const refOf = ({ signal, text, graceMs, minReclaimText }: Threshold): ThresholdRef => ({
  signal,
  value: text,
  graceMs,
  ...(minReclaimText === undefined ? {} : { minReclaim: minReclaimText }),
});
/** By which a remembered threshold is found again in the configuration; one that is no longer there is forgotten. */
export const keyOf = ({ signal, value: text, graceMs, minReclaim }: ThresholdRef): string =>
  `${signal}<${text} ${graceMs} ${minReclaim ?? ""}`;
