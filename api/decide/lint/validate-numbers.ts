import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

interface Rule {
  readonly field: string;
  /** Where Go's zero becomes the default, 0 is that too. */
  readonly absent: number;
  readonly from: number;
  readonly to: number;
  readonly says: (n: number) => string;
}
const rule = (field: string, absent: number, [from, to]: readonly [number, number], says: Rule["says"]): Rule => ({
  field,
  absent,
  from,
  to,
  says,
});
const MOST = Number.POSITIVE_INFINITY;
const notNegative = (field: string, flag: string, absent: number): Rule =>
  rule(field, absent, [0, MOST], (n) => `${field} (${flag}) ${n} must not be a negative number`);
const between = (field: string, flag: string, absent: number, from: number, to: number, least = from): Rule =>
  rule(field, absent, [from, to], (n) => `${field} (${flag}) ${n} must be between ${least} and ${to}, inclusive`);

/** kubelet 1.36: ValidateKubeletConfiguration, SetDefaults_KubeletConfiguration. */
const RULES: readonly Rule[] = [
  rule("nodeLeaseDurationSeconds", 40, [0, MOST], () => "nodeLeaseDurationSeconds must be greater than 0"),
  notNegative("eventBurst", "--event-burst", 100),
  notNegative("eventRecordQPS", "--event-qps", 50),
  between("healthzPort", "--healthz-port", 10248, 0, 65_535, 1),
  between("imageGCHighThresholdPercent", "--image-gc-high-threshold", 85, 0, 100),
  between("imageGCLowThresholdPercent", "--image-gc-low-threshold", 80, 0, 100),
  between("iptablesDropBit", "--iptables-drop-bit", 15, 0, 31),
  between("iptablesMasqueradeBit", "--iptables-masquerade-bit", 14, 0, 31),
  notNegative("kubeAPIBurst", "--kube-api-burst", 100),
  notNegative("kubeAPIQPS", "--kube-api-qps", 50),
  rule(
    "nodeStatusMaxImages",
    50,
    [-1, MOST],
    (n) => `nodeStatusMaxImages (--node-status-max-images) ${n} must be -1 or greater`,
  ),
  notNegative("maxOpenFiles", "--max-open-files", 1_000_000),
  notNegative("maxPods", "--max-pods", 110),
  between("oomScoreAdj", "--oom-score-adj", -999, -1000, 1000),
  notNegative("podsPerCore", "--pods-per-core", 0),
  between("port", "--port", 10250, 0, 65_535, 1),
  between("readOnlyPort", "--read-only-port", 0, 0, 65_535),
  notNegative("registryBurst", "--registry-burst", 10),
  notNegative("registryPullQPS", "--registry-qps", 5),
  rule("maxParallelImagePulls", 1, [1, MOST], (n) => `maxParallelImagePulls ${n} must be a positive number`),
  rule("containerLogMaxWorkers", 1, [1, MOST], () => "containerLogMaxWorkers must be greater than or equal to 1"),
  rule("containerLogMaxFiles", 5, [2, MOST], () => "containerLogMaxFiles must be greater than 1"),
  rule(
    "memoryThrottlingFactor",
    0.9,
    [Number.MIN_VALUE, 1],
    (n) => `memoryThrottlingFactor ${n} must be greater than 0 and less than or equal to 1.0`,
  ),
];

/** Numbers that are out of their range, and those that do not go together. kubelet 1.36: ValidateKubeletConfiguration. */
export function numberFindings({ given }: LintInput): readonly LintFinding[] {
  const found = RULES.flatMap(({ field, absent, from, to, says }) => {
    const n = given.number(field, absent);
    if (n >= from && n <= to) return [];
    const fault = settingFault(field, `invalid configuration: ${says(n)}`);
    const range =
      to === MOST ? `at least ${from}` : field === "memoryThrottlingFactor" ? "above 0, at most 1" : `${from} to ${to}`;
    const byDefault = field === "maxParallelImagePulls" ? "one after the other" : String(absent);
    return [refusal("out-of-range", fault, `${range}; without the field it is ${byDefault}`, { [field]: null })];
  });
  const high = given.number("imageGCHighThresholdPercent", 85);
  const low = given.number("imageGCLowThresholdPercent", 80);
  if (low >= high) {
    const what = `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`;
    const fault = settingFault("imageGCLowThresholdPercent", `invalid configuration: ${what}`);
    const fix = high >= 1 && high <= 100 ? { imageGCLowThresholdPercent: Math.max(0, high - 5) } : null;
    found.push(refusal("image-gc-low-not-below-high", fault, "a collection frees down to the low one", fix));
  }
  if (given.flag("serializeImagePulls", false) && given.number("maxParallelImagePulls", 1) > 1) {
    const what =
      "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false";
    const fault = settingFault("maxParallelImagePulls", `invalid configuration: ${what}`);
    const advice = "it is one or the other: pulls in parallel, or one after the other";
    found.push(refusal("pulls-serial-and-parallel", fault, advice, { serializeImagePulls: false }));
  }
  return [...found, ...idsFindings(given.inside("userNamespaces").raw["idsPerPod"])];
}

const IDS = 65_536;
const MOST_IDS = 2 ** 32 - 1;
/** kubelet 1.36: validateKubeletOSConfiguration. */
function idsFindings(ids: unknown): readonly LintFinding[] {
  if (typeof ids !== "number") return [];
  const field = "userNamespaces.idsPerPod";
  const why =
    ids < IDS
      ? `must not be less than ${IDS}`
      : ids % IDS !== 0
        ? `must be a multiple of ${IDS}`
        : ids > MOST_IDS
          ? `must not be more than ${MOST_IDS}`
          : undefined;
  if (why === undefined) return [];
  const fault = settingFault(field, `invalid configuration: ${field} ${why}`);
  return [refusal("out-of-range", fault, `${IDS} is the default`, { userNamespaces: { idsPerPod: null } })];
}
