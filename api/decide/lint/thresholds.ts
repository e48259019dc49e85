import { add, compare, isZero } from "../../model/amount.ts";
import { readThresholds } from "../eviction/configuration.ts";
import { isHard, type Threshold, thresholdQuantity } from "../eviction/threshold.ts";
import { entryField, error, type LintFinding, note, oncePerField, warning } from "./finding.ts";
import { capacityOf, type LintInput } from "./input.ts";

type Field = "evictionHard" | "evictionSoft";
const fieldOf = (threshold: Threshold): string =>
  entryField(isHard(threshold) ? ("evictionHard" satisfies Field) : "evictionSoft", threshold.signal);

/** Thresholds that fight each other, or that do nothing. */
export function thresholdFindings(input: LintInput): readonly LintFinding[] {
  const { thresholds } = readThresholds(input.config);
  return [
    // a reclaim is of a signal, which may have two thresholds
    ...oncePerField(thresholds.flatMap((t) => pastCapacity(input, t))),
    ...thresholds.flatMap((t) => softThresholdConflict(input, t, thresholds)),
    ...withoutThreshold(input, thresholds),
    ...ignored(input),
    ...timing(input, thresholds),
  ];
}

/** Both as amounts where the capacity is known, else only of one kind. Null: not known. */
function compared(input: LintInput, a: Threshold, b: Threshold): number | null {
  if ("percentage" in a.value && "percentage" in b.value) return a.value.percentage - b.value.percentage;
  if ("quantity" in a.value && "quantity" in b.value) return compare(a.value.quantity.amount, b.value.quantity.amount);
  const capacity = capacityOf(input, a.signal);
  if (capacity === undefined) return null;
  return compare(thresholdQuantity(a.value, capacity).amount, thresholdQuantity(b.value, capacity).amount);
}

function softThresholdConflict(input: LintInput, soft: Threshold, all: readonly Threshold[]): readonly LintFinding[] {
  if (isHard(soft)) return [];
  const hard = all.find((t) => isHard(t) && t.signal === soft.signal);
  const order = hard === undefined ? null : compared(input, soft, hard);
  if (hard === undefined || order === null || order > 0) return [];
  return [
    warning({
      code: "soft-not-above-hard",
      field: fieldOf(soft),
      message: `the soft threshold ${soft.text} of ${soft.signal} is not above the hard one ${hard.text}, which is met first and waits for nobody`,
      advice: "a soft threshold has to be met earlier, at more that is left; else take it out with its grace period",
      fix: { evictionSoft: { [soft.signal]: null }, evictionSoftGracePeriod: { [soft.signal]: null } },
    }),
  ];
}

function pastCapacity(input: LintInput, threshold: Threshold): readonly LintFinding[] {
  const capacity = capacityOf(input, threshold.signal);
  if (capacity === undefined || isZero(capacity)) return [];
  const at = thresholdQuantity(threshold.value, capacity);
  const field = fieldOf(threshold);
  if (compare(at.amount, capacity) >= 0) {
    const message = `${threshold.text} of ${threshold.signal} is all that this node has, or more: the threshold is always met`;
    return [error({ code: "threshold-above-capacity", field, message, advice: "lower it below the node's capacity" })];
  }
  if (threshold.minReclaim === undefined) return [];
  const reclaim = thresholdQuantity(threshold.minReclaim, capacity);
  if (compare(add(at.amount, reclaim.amount), capacity) < 0) return [];
  const message = `${threshold.text} and a minimum reclaim of ${threshold.minReclaimText} are together all that this node has of ${threshold.signal}, or more: once met, the threshold is never resolved`;
  return [
    error({
      code: "reclaim-above-capacity",
      field: entryField("evictionMinimumReclaim", threshold.signal),
      message,
      advice: "lower the minimum reclaim",
      fix: { evictionMinimumReclaim: { [threshold.signal]: null } },
    }),
  ];
}

const LISTS = [
  ["evictionMinimumReclaim", "reclaim-without-threshold", "minimum reclaim"],
  ["evictionSoftGracePeriod", "grace-without-soft", "grace period"],
] as const;

function withoutThreshold({ config }: LintInput, all: readonly Threshold[]): readonly LintFinding[] {
  return LISTS.flatMap(([field, code, what]) =>
    Object.keys(config[field]).flatMap((signal) => {
      const isUsed = all.some((t) => t.signal === signal && (field === "evictionMinimumReclaim" || !isHard(t)));
      // a soft threshold with a grace of zero is a hard one
      if (isUsed || config.evictionSoft[signal] !== undefined) return [];
      const kind = field === "evictionMinimumReclaim" ? "threshold" : "soft threshold";
      const message = `${signal} has a ${what} and no ${kind}: it does nothing`;
      const advice = `give it a ${kind}, or take it out`;
      return [
        warning({ code, field: entryField(field, signal), message, advice, fix: { [field]: { [signal]: null } } }),
      ];
    }),
  );
}

function ignored({ config }: LintInput): readonly LintFinding[] {
  return (["evictionHard", "evictionSoft"] as const).flatMap((field) =>
    Object.entries(config[field]).flatMap(([signal, text]) => {
      if (text !== "100%") return [];
      const message = `100% of ${signal} is read as no threshold at all, like 0%`;
      const advice = "say 0% if none is wanted, or a share below 100%";
      return [warning({ code: "threshold-ignored", field: entryField(field, signal), message, advice })];
    }),
  );
}

const MONITORING_MS = 10_000;
const TRANSITION = "evictionPressureTransitionPeriod";

function timing(input: LintInput, all: readonly Threshold[]): readonly LintFinding[] {
  const { config, given } = input;
  const period = config.given.evictionPressureTransitionPeriod?.millis;
  const byDefault = config.profile.defaults.evictionPressureTransitionPeriod;
  const found: LintFinding[] = [];
  if (period === 0) {
    const message = `${TRANSITION} of zero is the default of ${byDefault}, and not none`;
    found.push(
      note({
        code: "transition-zero",
        field: TRANSITION,
        message,
        advice: "take it out, or say how long",
        fix: { [TRANSITION]: null },
      }),
    );
  } else if (period !== undefined && period < MONITORING_MS) {
    const message = `${TRANSITION} of ${given.text(TRANSITION)} is shorter than the 10s between two passes: a condition may change with each of them`;
    const advice = `30s or more keeps pods from being sent to a node that is about to refuse them; the default is ${byDefault}`;
    found.push(warning({ code: "transition-short", field: TRANSITION, message, advice, fix: { [TRANSITION]: null } }));
  }
  const hasSoft = all.some((t) => !isHard(t));
  return [...found, ...podGrace(input, hasSoft)];
}

const POD_GRACE = "evictionMaxPodGracePeriod";
const DEFAULT_GRACE_SECONDS = 30;
/** kubelet 1.36: synchronize of the eviction manager. */
function podGrace({ config, snapshot }: LintInput, hasSoft: boolean): readonly LintFinding[] {
  const seconds = config.evictionMaxPodGracePeriod;
  if (!hasSoft) {
    if (seconds === 0) return [];
    const message = `${POD_GRACE} counts for soft thresholds alone, and there is none: a hard one ends pods after one second`;
    const advice = "give it a soft threshold, or take it out";
    return [note({ code: "pod-grace-without-soft", field: POD_GRACE, message, advice, fix: { [POD_GRACE]: null } })];
  }
  if (seconds === 0) {
    const message = `without ${POD_GRACE} a soft eviction gives pods no time to end, whatever their own grace period`;
    const advice = "set it to the seconds that pods may take";
    const fix = { [POD_GRACE]: DEFAULT_GRACE_SECONDS };
    return [warning({ code: "soft-without-pod-grace", field: POD_GRACE, message, advice, fix })];
  }
  const longer = (snapshot?.pods ?? []).filter(
    (pod) => (pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) > seconds,
  ).length;
  if (longer === 0) return [];
  const message = `${longer} of the node's pods want longer than ${seconds}s to end, and would get that of a soft eviction`;
  return [note({ code: "pod-grace-cut", field: POD_GRACE, message, advice: "raise it if they need their time" })];
}
