import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

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
const MOST = Number.POSITIVE_INFINITY;
const notNegative = (field: string, flag: string): Rule =>
  rule(field, [0, MOST], (n) => `${field} (${flag}) ${n} must not be a negative number`);
const between = (field: string, flag: string, from: number, to: number, least = from): Rule =>
  rule(field, [from, to], (n) => `${field} (${flag}) ${n} must be between ${least} and ${to}, inclusive`);

/** kubelet 1.36: ValidateKubeletConfiguration, SetDefaults_KubeletConfiguration. */
const RULES: readonly Rule[] = [
  rule("nodeLeaseDurationSeconds", [0, MOST], () => "nodeLeaseDurationSeconds must be greater than 0"),
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
    [-1, MOST],
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
  rule("maxParallelImagePulls", [1, MOST], (n) => `maxParallelImagePulls ${n} must be a positive number`),
  rule("containerLogMaxWorkers", [1, MOST], () => "containerLogMaxWorkers must be greater than or equal to 1"),
  rule("containerLogMaxFiles", [2, MOST], () => "containerLogMaxFiles must be greater than 1"),
  rule(
    "memoryThrottlingFactor",
    [Number.MIN_VALUE, 1],
    (n) => `memoryThrottlingFactor ${n} must be greater than 0 and less than or equal to 1.0`,
  ),
];

/** Numbers that are out of their range, and those that do not go together. kubelet 1.36: ValidateKubeletConfiguration. */
export function numberFindings({ given, defaults }: LintInput): readonly LintFinding[] {
  const ofEither = (field: string): number => (typeof given.raw[field] === "number" ? given : defaults).number(field);
  const found = RULES.flatMap(({ field, from, to, says }) => {
    const n = given.raw[field];
    if (typeof n !== "number" || (n >= from && n <= to)) return [];
    const fault = settingFault(field, `invalid configuration: ${says(n)}`);
    const range =
      to === MOST ? `at least ${from}` : field === "memoryThrottlingFactor" ? "above 0, at most 1" : `${from} to ${to}`;
    const byDefault = field === "maxParallelImagePulls" ? "one after the other" : String(defaults.number(field));
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
  return [...found, ...idsFindings(given.inside("userNamespaces").raw["idsPerPod"])];
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
