import { isDnsSubdomain, isNamePart } from "../../model/resource-name.ts";
import type { Defaults, Profile } from "../../profiles/profile.ts";
import { LONGEST_SYSCTL, namespaceOf, normalized, SYSCTL_SEGMENT, unsafeSysctls } from "../admission/sysctls.ts";
import { startFaults } from "../allocatable/start-errors.ts";
import { parseCpus } from "../cpus/sets.ts";
import { quote } from "../go/strconv.ts";
import { reservedMemoryIssues } from "../memory/reserved-memory.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { entryField, type LintFinding, refusal } from "./finding.ts";
import type { LintInput, RelativePaths } from "./input.ts";

const FIELD = "registerWithTaints";
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Taints that the kubelet does not start with. kubelet 1.36: ValidateKubeletConfiguration, CheckTaintValidation. */
export function taintFindings({ given }: LintInput): readonly LintFinding[] {
  return given.list(FIELD).flatMap((item, i) => {
    const taint = (item ?? {}) as Readonly<Record<string, unknown>>;
    const field = `${FIELD}[${i}]`;
    const time = typeof taint["timeAdded"] === "string" ? timeText(taint["timeAdded"]) : "<nil>";
    const [key, value, effect] = ["key", "value", "effect"].map((name) => String(taint[name] ?? ""));
    const wrong = wrongPart(key ?? "", value ?? "", effect ?? "");
    const found: LintFinding[] = [];
    if (wrong !== null) {
      const fault = settingFault(`${field}.${wrong.part}`, `invalid taint: {${key} ${value} ${effect} ${time ?? ""}}`);
      found.push(refusal("invalid-taint", fault, wrong.advice));
    }
    if (time !== "<nil>") found.push(timed(`${field}.timeAdded`, time));
    return found;
  });
}

interface TaintFault {
  readonly part: "key" | "value" | "effect";
  readonly advice: string;
}
const NAME = "at most 63 letters, digits, `-`, `_` and `.`, which begins and ends with a letter or a digit";

/** What is wrong with a taint; the kubelet does not report the part; null: nothing. An effect may be absent. */
function wrongPart(key: string, value: string, effect: string): TaintFault | null {
  if (!isQualifiedName(key))
    return { part: "key", advice: `the key is a name, or a DNS name, a slash and a name: ${NAME}` };
  if (value !== "" && !isNamePart(value)) return { part: "value", advice: `the value is ${NAME}; or none` };
  if (effect === "" || EFFECTS.includes(effect)) return null;
  const meant = EFFECTS.find((known) => known.toLowerCase() === effect.trim().toLowerCase());
  const was = meant === undefined ? "" : `; was \`${meant}\` meant?`;
  return { part: "effect", advice: `the effect is one of ${EFFECTS.join(", ")}${was}` };
}

/** kubernetes 1.36: IsQualifiedName. */
function isQualifiedName(key: string): boolean {
  const parts = key.split("/");
  const [name = "", prefix] = parts.reverse();
  return parts.length <= 2 && (prefix === undefined || isDnsSubdomain(prefix)) && isNamePart(name);
}

/** A time of a whole second in UTC as Go prints it; others only roughly. Null: it is no time. */
function timeText(text: string): string | null {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
}

function timed(field: string, time: string | null): LintFinding {
  const advice = "take it out: when a taint was added is for the cluster to say";
  if (time !== null)
    return refusal("taint-time", settingFault(field, "invalid configuration: taint.TimeAdded is not nil"), advice);
  const fault = settingFault(field, "this is no time of RFC 3339, and a taint of a configuration must have none");
  return { ...refusal("taint-time", fault, advice), kubelet: false };
}

/** The advice for each fault, by the fault's text. The first that matches is taken. */
const ADVICE: readonly (readonly [
  RegExp,
  code: string,
  advice: string | ((defaults: Defaults) => string),
  fix?: unknown,
])[] = [
  [/^invalid configuration: duplicated/, "enforced-twice", "name each once"],
  [
    /cgroups-per-qos\) must be set/,
    "enforced-without-qos-cgroups",
    "there is no cgroup to enforce it on without cgroupsPerQOS",
    { cgroupsPerQOS: true },
  ],
  [/may not contain additional/, "none-and-others", "`none` stands alone, or goes"],
  [/Valid options are/, "unknown-value", "take it out; the kubelet names what there is"],
  [
    /ReservedCgroup .* must be specified/,
    "reserved-cgroup-missing",
    "name the cgroup that holds these daemons, or do not enforce it: a wrong one would limit others",
  ],
  [/cannot be specified together/, "enforced-in-two-ways", "keep one: `-compressible` limits CPU shares alone"],
  [
    /^invalid configuration: can't use reservedSystemCPUs/,
    "reserved-cpus-and-cgroups",
    "keep the CPUs, or the cgroups",
  ],
  [
    /requires MemoryQoS/,
    "needs-feature-gate",
    "switch the gate MemoryQoS on, or leave the policy at None",
    { memoryReservationPolicy: null },
  ],
  [
    /require feature gates/,
    "needs-feature-gate",
    "take the field out, or the gate",
    { topologyManagerPolicyOptions: null },
  ],
  [
    /NodeLogQuery/,
    "needs-feature-gate",
    "take the field out, or switch the gate NodeLogQuery on",
    { enableSystemLogQuery: null },
  ],
  [
    /^invalid configuration: cpuCFSQuotaPeriod/,
    "out-of-range",
    ({ cpuCFSQuotaPeriod }) => `1ms to 1s; the default is ${cpuCFSQuotaPeriod}`,
    { cpuCFSQuotaPeriod: null },
  ],
  [/is not a subset of online-cpus/, "reserved-cpus-absent", "name CPUs that this machine has"],
  [
    /configured to not run on a host using cgroup v1/,
    "cgroup-v1",
    "boot the node with cgroup v2; failCgroupV1: false puts it off until a version that has no cgroup v1",
    { failCgroupV1: false },
  ],
  [/singleProcessOOMKill/, "needs-cgroup-v2", "take it out on cgroup v1", { singleProcessOOMKill: null }],
  [
    /only supported with cgroupv2/,
    "needs-cgroup-v2",
    "NoSwap is all there is on cgroup v1",
    { memorySwap: { swapBehavior: "NoSwap" } },
  ],
  [
    /must be absolute path/,
    "relative-path",
    "begin it at the root: only in the file of --config is a path taken from the folder of the file",
  ],
  [/unable to parse reservedSystemCPUs/, "cannot-parse", "a list such as 0-1,8-9"],
  [
    /^invalid configuration: (?:the limit type|reserved memory|the reserved memory)/,
    "reserved-memory",
    "each NUMA node once, memory or hugepages-SIZE, more than zero",
  ],
];

/** Whatever else ValidateKubeletConfiguration of 1.36 finds. */
export function otherFindings(input: LintInput): readonly LintFinding[] {
  const { config, snapshot } = input;
  const faults = [
    ...startFaults(config, snapshot ?? {}),
    ...reservedMemoryIssues(config.reservedMemory).map((text) => settingFault("reservedMemory", text)),
    ...textFaults(input),
  ];
  return faults.map((fault) => advised(fault, input.profile));
}

function advised(fault: SettingFault, { defaults }: Profile): LintFinding {
  const [, code = "refused", advice = "correct it", fix = null] =
    ADVICE.find(([form]) => form.test(fault.message)) ?? [];
  return refusal(code, fault, typeof advice === "string" ? advice : advice(defaults), fix);
}

function textFaults({ given, defaults, profile, isOn, relativePaths }: LintInput): readonly SettingFault[] {
  const found: SettingFault[] = [];
  const say = (field: string, what: string): unknown =>
    found.push(settingFault(field, `invalid configuration: ${what}`));
  const HANDLER = "enableSystemLogHandler";
  const cpus = given.text("reservedSystemCPUs");
  const parsed = parseCpus(cpus);
  if (!parsed.ok)
    say("reservedSystemCPUs", `unable to parse reservedSystemCPUs (--reserved-cpus) ${cpus}, error: ${parsed.error}`);
  if (given.text("systemCgroups") !== "" && given.text("cgroupRoot") === "") {
    say(
      "systemCgroups",
      "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
    );
  }
  if (given.flag("runOnce")) {
    say("runOnce", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
  }
  if (given.flag("serverTLSBootstrap") && !isOn("RotateKubeletServerCertificate")) {
    say("serverTLSBootstrap", "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  }
  if (given.flag("enableSystemLogQuery") && !isOn("NodeLogQuery")) {
    say("enableSystemLogQuery", profile.words.logQueryRefused);
  }
  if (given.flag("enableSystemLogQuery") && !(given.has(HANDLER) ? given : defaults).flag(HANDLER)) {
    say("enableSystemLogQuery", "enableSystemLogHandler is required for enableSystemLogQuery");
  }
  const options = Object.entries(given.inside("topologyManagerPolicyOptions").raw);
  if (given.has("topologyManagerPolicyOptions") && !isOn("TopologyManagerPolicyOptions")) {
    // kubelet 1.35: run of cmd/kubelet/app
    const list = options.map(([name, value]) => `${name}:${value}`).sort();
    const text = `topology manager policy options map[${list.join(" ")}] require feature gates "TopologyManagerPolicyOptions" enabled`;
    found.push(settingFault("topologyManagerPolicyOptions", text));
  }
  found.push(...logsPath(given.text("podLogsDir"), relativePaths));
  return found;
}

function logsPath(path: string, relativePaths: RelativePaths): readonly SettingFault[] {
  const found: string[] = [];
  const isAbsolute = path.startsWith("/");
  const parts = path.split("/").slice(isAbsolute ? 1 : 0);
  const isClean = path === "/" || path === "." || !parts.some((part) => part === "" || part === "." || part === "..");
  const isKept = relativePaths === "kept" && path !== "";
  if (!isAbsolute && isKept) found.push("must be absolute path");
  if ((isAbsolute || isKept) && !isClean) found.push("must be normalized");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the first of them is what ASCII begins with
  if (!/^[\x00-\x7f]*$/.test(path)) found.push("mut contains ASCII characters only");
  return found.map((what) => settingFault("podLogsDir", `invalid configuration: pod logs path ${quote(path)} ${what}`));
}

/** Sysctls that pods may set, and those that they get. */
export const sysctlFindings = (input: LintInput): readonly LintFinding[] => [...allowed(input), ...ofEachPod(input)];

const OF_NODE =
  "the kernel has it once for the whole node, so no pod can have its own: set it on the node, and take it out here";
const ALLOWED = "allowedUnsafeSysctls";

/** Each entry that the kubelet does not start with; it names the first. kubelet 1.36: NewAllowlist. */
function allowed({ given, profile: { behaviour } }: LintInput): readonly LintFinding[] {
  return given.list(ALLOWED).flatMap((item, i) => {
    const text = item ?? "";
    const read = typeof text === "string" ? unsafeSysctls([text], behaviour.namespacedSysctls) : null;
    if (read === null || read.ok) return [];
    const isKnown = read.error.startsWith("the sysctls ");
    const advice = isKnown
      ? OF_NODE
      : "a name such as net.core.somaxconn, or the beginning of some with a `*` at the end: net.ipv4.*";
    const fault = settingFault(`${ALLOWED}[${i}]`, read.error);
    return [refusal(isKnown ? "sysctl-of-node" : "cannot-parse", fault, advice)];
  });
}

const DEFAULTS = "defaultPodSysctls";
const GATE = "DefaultPodSysctls";
const IS_NAME = new RegExp(`^(${SYSCTL_SEGMENT}[./])*${SYSCTL_SEGMENT}$`);

/** kubelet 1.37: ValidateKubeletConfiguration. */
function ofEachPod({ given, isOn, profile: { behaviour } }: LintInput): readonly LintFinding[] {
  const names = given.texts(DEFAULTS).map(([name]) => name);
  if (names.length > 0 && !isOn(GATE)) {
    const what = `${GATE} feature gate is required for Kubelet configuration option ${DEFAULTS}`;
    const fault = settingFault(DEFAULTS, `invalid configuration: ${what}`);
    const fix = { [DEFAULTS]: null };
    return [refusal("needs-feature-gate", fault, "take the field out, or switch the gate on", fix)];
  }
  const seen = new Set<string>();
  return names.flatMap((name) => {
    const found: LintFinding[] = [];
    const say = (code: string, what: string, advice: string): unknown =>
      found.push(refusal(code, settingFault(entryField(DEFAULTS, name), `invalid configuration: ${what}`), advice));
    if (name.length > LONGEST_SYSCTL || !IS_NAME.test(name)) {
      say(
        "cannot-parse",
        `${quote(name)} is not a valid sysctl name for ${DEFAULTS}`,
        "a name such as net.ipv4.ip_forward",
      );
      return found;
    }
    const same = normalized(name);
    if (namespaceOf(same, behaviour.namespacedSysctls) === undefined) {
      say("sysctl-of-node", `${quote(name)} is not known to be namespaced for ${DEFAULTS}`, OF_NODE);
    }
    if (seen.has(same)) say("sysctl-twice", `duplicate sysctl ${quote(same)} found in ${DEFAULTS}`, "keep one of them");
    seen.add(same);
    return found;
  });
}
