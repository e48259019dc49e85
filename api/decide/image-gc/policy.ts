import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { goDurationText } from "../go/duration.ts";

/** What a pass goes by. */
export interface ImageGcPolicy {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minAgeMs: number;
  /** Nanoseconds, since an error names it; 0: no image is too old. */
  readonly maxAgeNanos: number;
  readonly maxAgeMs: number;
  /** False: the kubelet starts no timer for it, and only the eviction manager collects. */
  readonly timer: boolean;
}
const DEFAULT_HIGH = 85;
const DEFAULT_LOW = 80;
const DEFAULT_MIN_AGE_NANOS = 120e9;

/**
 * The thresholds and ages of a configuration, with the kubelet's defaults. An age of 0 is taken as it is posted. Error: the
 * text with which the kubelet refuses. kubelet 1.36: NewImageGCManager; of the ages ValidateKubeletConfiguration.
 */
export function imageGcPolicy(config: KubeletConfiguration): Result<ImageGcPolicy, string> {
  const high = config.imageGCHighThresholdPercent ?? DEFAULT_HIGH;
  const low = config.imageGCLowThresholdPercent ?? DEFAULT_LOW;
  if (!isPercent(high)) return err(`invalid HighThresholdPercent ${high}, must be in range [0-100]`);
  if (!isPercent(low)) return err(`invalid LowThresholdPercent ${low}, must be in range [0-100]`);
  if (low > high) return err(`LowThresholdPercent ${low} can not be higher than HighThresholdPercent ${high}`);
  const minAge = config.imageMinimumGCAge?.nanos ?? DEFAULT_MIN_AGE_NANOS;
  const maxAge = config.imageMaximumGCAge?.nanos ?? 0;
  if (minAge < 0)
    return err(`invalid configuration: imageMinimumGCAge ${goDurationText(BigInt(minAge))} must not be negative`);
  if (maxAge < 0)
    return err(`invalid configuration: imageMaximumGCAge ${goDurationText(BigInt(maxAge))} must not be negative`);
  return ok({
    highThresholdPercent: high,
    lowThresholdPercent: low,
    minAgeMs: minAge / 1e6,
    maxAgeNanos: maxAge,
    maxAgeMs: maxAge / 1e6,
    timer: high !== 100 || maxAge !== 0,
  });
}
const isPercent = (n: number): boolean => n >= 0 && n <= 100;
