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

function imageAges({ given, defaults }: LintInput): readonly LintFinding[] {
  // Go's zero becomes the default
  const least = given.nanos("imageMinimumGCAge") || defaults.nanos("imageMinimumGCAge");
  const most = given.nanos("imageMaximumGCAge");
  const found = [
    ["imageMinimumGCAge", least, defaults.text("imageMinimumGCAge")],
    ["imageMaximumGCAge", most, "none"],
  ] as const;
  const negative = found.flatMap(([field, nanos, byDefault]) =>
    nanos >= 0
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
const LEAST_MS = 1000;
const MAX_MS = 300_000;

function backOff({ given, defaults, isOn }: LintInput): readonly LintFinding[] {
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
  if (ms >= LEAST_MS && ms <= MAX_MS) return [];
  const what = `${name} (got: ${nanos / SECOND} seconds) must be set between 1s and 300s`;
  return [
    invalid(
      "out-of-range",
      field,
      what,
      `the default is ${defaults.inside("crashLoopBackOff").nanos("maxContainerRestartPeriod") / SECOND}s`,
      fix,
    ),
  ];
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
