import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal, SECOND, spanText } from "./finding.ts";
import type { LintInput } from "./input.ts";

const invalid = (code: string, field: string, what: string, advice: string, fix: unknown = null): LintFinding =>
  refusal(code, settingFault(field, `invalid configuration: ${what}`), advice, fix);
const braced = (nanos: number): string => `{${spanText(nanos)}}`;

/** Durations that are out of their range, and those that do not go together. kubelet 1.36: ValidateKubeletConfiguration. */
export function spanFindings(input: LintInput): readonly LintFinding[] {
  return [...imageAges(input), ...shutdown(input), ...backOff(input), ...others(input)];
}

function imageAges({ given, defaults, profile, isOn }: LintInput): readonly LintFinding[] {
  // Go's zero becomes the default
  const least = given.nanos("imageMinimumGCAge") || defaults.nanos("imageMinimumGCAge");
  const most = given.nanos("imageMaximumGCAge");
  const refused = [
    ["imageMinimumGCAge", least, defaults.text("imageMinimumGCAge")],
    ["imageMaximumGCAge", most, "none"],
  ] as const;
  const negative = refused.flatMap(([field, nanos, byDefault]) =>
    nanos >= 0 || (field === "imageMinimumGCAge" && !profile.behaviour.minimumAgeAtLeastZero)
      ? []
      : [
          invalid(
            "out-of-range",
            field,
            `${field} ${spanText(nanos)} must not be negative`,
            `the default is ${byDefault}`,
            {
              [field]: null,
            },
          ),
        ],
  );
  if (most !== 0 && !isOn("ImageMaximumGCAge")) {
    const what = "ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge";
    const advice = "take the field out, or the gate";
    negative.push(invalid("needs-feature-gate", "imageMaximumGCAge", what, advice, { imageMaximumGCAge: null }));
  }
  if (most <= 0 || most > least) return negative;
  const what = `imageMaximumGCAge ${spanText(most)} must be greater than imageMinimumGCAge ${spanText(least)}`;
  const advice = "an image is kept for the least age, and goes after the greatest; the default has none";
  return [...negative, invalid("image-ages-crossed", "imageMaximumGCAge", what, advice)];
}

function shutdown({ given, defaults, isOn }: LintInput): readonly LintFinding[] {
  const [all, critical] = ["shutdownGracePeriod", "shutdownGracePeriodCriticalPods"] as const;
  const nanos = { [all]: given.nanos(all), [critical]: given.nanos(critical) };
  const found: LintFinding[] = [];
  const isSet = nanos[all] > 0 || nanos[critical] > 0;
  const byPriority = given.list("shutdownGracePeriodByPodPriority").length > 0;
  if (isOn("GracefulNodeShutdown")) {
    if (nanos[critical] > nanos[all]) {
      const what = `${critical} ${braced(nanos[critical])} must be <= ${all} ${braced(nanos[all])}`;
      found.push(invalid("shutdown-periods-crossed", critical, what, `it is the last part of ${all}`));
    }
    for (const field of [all, critical]) {
      const n = nanos[field];
      if (n === 0 || n >= SECOND) continue;
      const what = `${field} ${braced(n)} must be either zero or otherwise >= 1 sec`;
      // the last part of no period would be refused
      const fix = field === all ? { [all]: null, [critical]: null } : { [field]: null };
      found.push(invalid("out-of-range", field, what, `the default is ${defaults.text(field)}: none`, fix));
    }
  } else if (isSet) {
    const what =
      "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown";
    const advice = "take the periods out, or the gate";
    found.push(invalid("needs-feature-gate", all, what, advice, { [all]: null, [critical]: null }));
  }
  if (!byPriority) return found;
  const field = "shutdownGracePeriodByPodPriority";
  if (!isOn("GracefulNodeShutdownBasedOnPodPriority")) {
    const what = `Specifying ${field} requires feature gate GracefulNodeShutdownBasedOnPodPriority`;
    found.push(invalid("needs-feature-gate", field, what, "take the list out, or the gate", { [field]: null }));
  } else if (isSet) {
    const what = `Cannot specify both ${field} and shutdownGracePeriod at the same time`;
    const fix = { [all]: null, [critical]: null };
    found.push(invalid("shutdown-periods-twice", field, what, "keep the list, or the two periods", fix));
  }
  return found;
}

const GATE = "KubeletCrashLoopBackOffMax";
const MIN_MS = 1000;
const MAX_MS = 300_000;

function backOff({ given, isOn }: LintInput): readonly LintFinding[] {
  const field = "crashLoopBackOff.maxContainerRestartPeriod";
  const name = "CrashLoopBackOff.MaxContainerRestartPeriod";
  const set = given.inside("crashLoopBackOff");
  if (!set.has("maxContainerRestartPeriod")) return [];
  const fix = { crashLoopBackOff: { maxContainerRestartPeriod: null } };
  if (!isOn(GATE)) {
    const what = `FeatureGate ${GATE} not enabled, ${name} must not be set`;
    return [invalid("needs-feature-gate", field, what, "take the field out, or the gate", fix)];
  }
  const nanos = set.nanos("maxContainerRestartPeriod");
  const ms = Math.trunc(nanos / 1e6);
  if (ms >= MIN_MS && ms <= MAX_MS) return [];
  const what = `${name} (got: ${nanos / SECOND} seconds) must be set between 1s and 300s`;
  return [invalid("out-of-range", field, what, `the default is ${MAX_MS / 1000}s`, fix)];
}

function others({ given, defaults, isOn }: LintInput): readonly LintFinding[] {
  const found: LintFinding[] = [];
  const isSet = given.has("cpuCFSQuotaPeriod");
  const period = given.nanos("cpuCFSQuotaPeriod");
  if (!isOn("CustomCPUCFSQuotaPeriod") && isSet && period !== defaults.nanos("cpuCFSQuotaPeriod")) {
    const what = `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) ${braced(period)} requires feature gate CustomCPUCFSQuotaPeriod`;
    found.push(
      invalid("needs-feature-gate", "cpuCFSQuotaPeriod", what, "take the field out, or the gate", {
        cpuCFSQuotaPeriod: null,
      }),
    );
  }
  const field = "containerLogMonitorInterval";
  if (given.has(field) && given.nanos(field) < 3 * SECOND) {
    const what = `${field} must be a positive time duration greater than or equal to 3s`;
    found.push(invalid("out-of-range", field, what, `the default is ${defaults.text(field)}`, { [field]: null }));
  }
  const sync = given.nanos("syncFrequency");
  if (sync < 0) {
    // kubelet 1.36: NewMainKubelet, which prints the nanoseconds
    const fault = settingFault("syncFrequency", `invalid sync frequency ${sync}`);
    found.push(
      refusal("out-of-range", fault, `the default is ${defaults.text("syncFrequency")}`, { syncFrequency: null }),
    );
  }
  return found;
}

interface Rule {
  readonly field: string;
  readonly from: number;
  readonly to: number;
  readonly says: (n: number) => string;
}
const rule = (field: string, [from, to]: readonly [number, number], says: Rule["says"]): Rule => ({
  field,
  from,
  to,
  says,
});
const NO_MAX = Number.POSITIVE_INFINITY;
const notNegative = (field: string, flag: string): Rule =>
  rule(field, [0, NO_MAX], (n) => `${field} (${flag}) ${n} must not be a negative number`);
const between = (field: string, flag: string, from: number, to: number, least = from): Rule =>
  rule(field, [from, to], (n) => `${field} (${flag}) ${n} must be between ${least} and ${to}, inclusive`);

/** kubelet 1.36: ValidateKubeletConfiguration, SetDefaults_KubeletConfiguration. */
const RULES: readonly Rule[] = [
  rule("nodeLeaseDurationSeconds", [0, NO_MAX], () => "nodeLeaseDurationSeconds must be greater than 0"),
  notNegative("eventBurst", "--event-burst"),
  notNegative("eventRecordQPS", "--event-qps"),
  between("healthzPort", "--healthz-port", 0, 65_535, 1),
  between("imageGCHighThresholdPercent", "--image-gc-high-threshold", 0, 100),
  between("imageGCLowThresholdPercent", "--image-gc-low-threshold", 0, 100),
  between("iptablesDropBit", "--iptables-drop-bit", 0, 31),
  between("iptablesMasqueradeBit", "--iptables-masquerade-bit", 0, 31),
  notNegative("kubeAPIBurst", "--kube-api-burst"),
  notNegative("kubeAPIQPS", "--kube-api-qps"),
  rule(
    "nodeStatusMaxImages",
    [-1, NO_MAX],
    (n) => `nodeStatusMaxImages (--node-status-max-images) ${n} must be -1 or greater`,
  ),
  notNegative("maxOpenFiles", "--max-open-files"),
  notNegative("maxPods", "--max-pods"),
  between("oomScoreAdj", "--oom-score-adj", -1000, 1000),
  notNegative("podsPerCore", "--pods-per-core"),
  between("port", "--port", 0, 65_535, 1),
  between("readOnlyPort", "--read-only-port", 0, 65_535),
  notNegative("registryBurst", "--registry-burst"),
  notNegative("registryPullQPS", "--registry-qps"),
  rule("maxParallelImagePulls", [1, NO_MAX], (n) => `maxParallelImagePulls ${n} must be a positive number`),
  rule("containerLogMaxWorkers", [1, NO_MAX], () => "containerLogMaxWorkers must be greater than or equal to 1"),
  rule("containerLogMaxFiles", [2, NO_MAX], () => "containerLogMaxFiles must be greater than 1"),
  rule(
    "memoryThrottlingFactor",
    [Number.MIN_VALUE, 1],
    (n) => `memoryThrottlingFactor ${n} must be greater than 0 and less than or equal to 1.0`,
  ),
];

const NO_DEFAULT: Readonly<Record<string, string>> = { maxParallelImagePulls: "one after the other" };

/** Numbers that are out of their range, and those that do not go together. kubelet 1.36: ValidateKubeletConfiguration. */
export function numberFindings(input: LintInput): readonly LintFinding[] {
  const { given, defaults } = input;
  const ofEither = (field: string): number => (typeof given.raw[field] === "number" ? given : defaults).number(field);
  const found = RULES.flatMap(({ field, from, to, says }) => {
    const n = given.raw[field];
    if (typeof n !== "number" || (n >= from && n <= to)) return [];
    const fault = settingFault(field, `invalid configuration: ${says(n)}`);
    const range =
      to === NO_MAX
        ? `at least ${from}`
        : field === "memoryThrottlingFactor"
          ? "above 0, at most 1"
          : `${from} to ${to}`;
    const byDefault = defaults.has(field) ? String(defaults.number(field)) : (NO_DEFAULT[field] ?? "none");
    return [refusal("out-of-range", fault, `${range}; without the field it is ${byDefault}`, { [field]: null })];
  });
  const high = ofEither("imageGCHighThresholdPercent");
  const low = ofEither("imageGCLowThresholdPercent");
  if (low >= high) {
    const what = `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`;
    const fault = settingFault("imageGCLowThresholdPercent", `invalid configuration: ${what}`);
    const fix = high >= 1 && high <= 100 ? { imageGCLowThresholdPercent: Math.max(0, high - 5) } : null;
    found.push(refusal("image-gc-low-not-below-high", fault, "a collection frees down to the low one", fix));
  }
  if (given.flag("serializeImagePulls") && given.number("maxParallelImagePulls") > 1) {
    const what =
      "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false";
    const fault = settingFault("maxParallelImagePulls", `invalid configuration: ${what}`);
    const advice = "it is one or the other: pulls in parallel, or one after the other";
    found.push(refusal("pulls-serial-and-parallel", fault, advice, { serializeImagePulls: false }));
  }
  return [...found, ...throttling(input), ...idsFindings(given.inside("userNamespaces").raw["idsPerPod"])];
}

/** A factor without the gate that reads it. kubelet 1.37: ValidateKubeletConfiguration. */
function throttling({ given, isOn, profile: { behaviour } }: LintInput): readonly LintFinding[] {
  const field = "memoryThrottlingFactor";
  const taken = behaviour.throttlingFactorWithoutGate;
  if (taken === null || isOn("MemoryQoS") || !given.has(field) || given.number(field) === taken) return [];
  const what = `${field} must not be set when MemoryQoS feature gate is disabled`;
  return [invalid("needs-feature-gate", field, what, "take the field out, or switch the gate on", { [field]: null })];
}

const IDS = 65_536;
const MAX_IDS = 2 ** 32 - 1;
/** kubelet 1.36: validateKubeletOSConfiguration. */
function idsFindings(ids: unknown): readonly LintFinding[] {
  if (typeof ids !== "number") return [];
  const field = "userNamespaces.idsPerPod";
  const why =
    ids < IDS
      ? `must not be less than ${IDS}`
      : ids % IDS !== 0
        ? `must be a multiple of ${IDS}`
        : ids > MAX_IDS
          ? `must not be more than ${MAX_IDS}`
          : undefined;
  if (why === undefined) return [];
  const fault = settingFault(field, `invalid configuration: ${field} ${why}`);
  return [refusal("out-of-range", fault, `${IDS} is the default`, { userNamespaces: { idsPerPod: null } })];
}
