import { compare, value } from "../../model/amount.ts";
import { readThresholds } from "../eviction/configuration.ts";
import { isHard, type Threshold, thresholdQuantity } from "../eviction/threshold.ts";
import { fileSystemsOf } from "../eviction/usage.ts";
import { type LintFinding, note, SECOND, spanText, warning } from "./finding.ts";
import { capacityOf, type LintInput } from "./input.ts";

const HIGH = "imageGCHighThresholdPercent";
const LOW = "imageGCLowThresholdPercent";
/** The signals of the disk with the images, whatever else is on it. */
const [IMAGES, NODE] = ["imagefs.available", "nodefs.available"];

/** Image collection and eviction, which look at the same disk. kubelet 1.36: GarbageCollect of the image manager. */
export function imageGcFindings(input: LintInput): readonly LintFinding[] {
  const { config } = input;
  const { imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low } = config;
  const found: LintFinding[] = [];
  const maxAge = config.imageMaximumGCAge.nanos;
  if (high === 100 && maxAge === 0) {
    const message = `${HIGH} of 100 with no imageMaximumGCAge switches the collection of images off: only eviction removes some`;
    found.push(
      note({
        code: "image-gc-off",
        field: HIGH,
        message,
        advice: "if that is not meant, lower it",
        fix: { [HIGH]: null },
      }),
    );
  }
  if (maxAge > 0 && maxAge < HOUR) {
    const message = `imageMaximumGCAge of ${spanText(maxAge)} takes an image that no pod has used since the kubelet started as soon as the kubelet has run that long, whenever it was pulled`;
    const advice = "leave time between a pull and the pod that needs it: a day or more";
    found.push(warning({ code: "image-age-short", field: "imageMaximumGCAge", message, advice }));
  }
  const minAge = config.imageMinimumGCAge.nanos;
  if (minAge > HOUR) {
    const message = `imageMinimumGCAge of ${spanText(minAge)} begins anew with each start of the kubelet, for every image: for so long nothing can be collected, under eviction neither`;
    const advice = `an hour or less; the default is ${config.profile.defaults.imageMinimumGCAge}`;
    found.push(note({ code: "image-min-age-long", field: "imageMinimumGCAge", message, advice }));
  }
  const isFought = high < 100 && low < high && high >= 0 && low >= 0;
  if (!isFought) return found;
  const signals = [IMAGES, ...(isOneDisk(input) ? [NODE] : [])];
  const onDisk = readThresholds(config).thresholds.filter(({ signal }) => signals.includes(signal));
  return [...found, ...thresholdConflict(input, onDisk, high, low)];
}
const HOUR = 3600 * SECOND;

/** Whether the stats show images on the node's own disk, where two signals watch the same space. */
function isOneDisk({ snapshot }: LintInput): boolean {
  const node = snapshot?.stats?.node;
  const isReported = node?.fileSystems !== undefined || (node?.fs !== undefined && node.runtime?.imageFs !== undefined);
  return isReported && fileSystemsOf(node) === "one";
}

/** Reports the threshold on the disk that is met first; what mends it mends the others. */
function thresholdConflict(
  input: LintInput,
  onDisk: readonly Threshold[],
  high: number,
  low: number,
): readonly LintFinding[] {
  const met = onDisk
    .map((threshold) => ({ threshold, percent: percentOf(input, threshold) }))
    .reduce<ReachedThreshold | null>((a, { threshold, percent }) => {
      return percent === null || (a !== null && a.percent >= percent) ? a : { threshold, percent };
    }, null);
  if (met === null) return [];
  const { threshold, percent } = met;
  // the percentage in use is rounded up, so a collection begins with less than this left; it ends above, low being lower
  const begins = 101 - high;
  const left = Math.round(percent * 100) / 100;
  if (left < begins) return [];
  const newHigh = Math.ceil(101 - left) - 1;
  const newLow = Math.min(low, newHigh - 5);
  const what = isHard(threshold) ? "evicts" : "counts towards a soft eviction";
  const message = `${threshold.signal} below ${threshold.text} ${what} with ${left}% of the disk left, and images are collected only with less than ${begins}% left (${HIGH} ${high}): the node is under pressure first, and every unused image goes at once, then pods`;
  const fix = newLow < 0 ? null : newLow === low ? { [HIGH]: newHigh } : { [HIGH]: newHigh, [LOW]: newLow };
  const advice = "collect earlier: lower the high threshold below what eviction leaves";
  return [warning({ code: "image-gc-after-eviction", field: HIGH, message, advice, fix })];
}
interface ReachedThreshold {
  readonly threshold: Threshold;
  readonly percent: number;
}

/** Computes the percentage of the disk that must be left free; null: not known. */
function percentOf(input: LintInput, { value: at, signal }: Threshold): number | null {
  if ("percentage" in at) return at.percentage * 100;
  const capacity = capacityOf(input, signal);
  if (capacity === undefined || compare(capacity, 0) <= 0) return null;
  return (value(thresholdQuantity(at, capacity).amount) / value(capacity)) * 100;
}
