import { startFaults } from "../allocatable/start-errors.ts";
import { parseCpus } from "../cpus/go-cpu-set.ts";
import { quote } from "../go/strconv.ts";
import { reservedMemoryIssues } from "../memory/reserved-memory.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** By what a fault says: what to do about it. The first that fits. */
const ADVICE: readonly (readonly [RegExp, code: string, advice: string, fix?: unknown])[] = [
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
    /^invalid configuration: cpuCFSQuotaPeriod/,
    "out-of-range",
    "1ms to 1s; the default is 100ms",
    { cpuCFSQuotaPeriod: null },
  ],
  [/is not a subset of online-cpus/, "reserved-cpus-absent", "name CPUs that this machine has"],
  [
    /cgroup v1 support is unsupported/,
    "cgroup-v1",
    "boot the node with cgroup v2; failCgroupV1: false puts it off by one version",
    { failCgroupV1: false },
  ],
  [/singleProcessOOMKill/, "needs-cgroup-v2", "take it out on cgroup v1", { singleProcessOOMKill: null }],
  [
    /only supported with cgroupv2/,
    "needs-cgroup-v2",
    "NoSwap is all there is on cgroup v1",
    { memorySwap: { swapBehavior: "NoSwap" } },
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
    ...reservedMemoryIssues(config.reservedMemory ?? []).map((text) => settingFault("reservedMemory", text)),
    ...textFaults(input),
  ];
  return faults.map(advised);
}

function advised(fault: SettingFault): LintFinding {
  const [, code = "refused", advice = "correct it", fix = null] =
    ADVICE.find(([form]) => form.test(fault.message)) ?? [];
  return refusal(code, fault, advice, fix);
}

function textFaults({ given, isOn }: LintInput): readonly SettingFault[] {
  const found: SettingFault[] = [];
  const say = (field: string, what: string): unknown =>
    found.push(settingFault(field, `invalid configuration: ${what}`));
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
  if (given.flag("runOnce", false)) {
    say("runOnce", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
  }
  if (given.flag("serverTLSBootstrap", false) && !isOn("RotateKubeletServerCertificate")) {
    say("serverTLSBootstrap", "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  }
  if (given.flag("enableSystemLogQuery", false) && !given.flag("enableSystemLogHandler", true)) {
    say("enableSystemLogQuery", "enableSystemLogHandler is required for enableSystemLogQuery");
  }
  found.push(...logsPath(given.text("podLogsDir")));
  return found;
}

/** A path that begins elsewhere was made one from the root by the time it is looked at. */
function logsPath(path: string): readonly SettingFault[] {
  const found: string[] = [];
  const parts = path.split("/").slice(1);
  const isClean = path === "/" || !parts.some((part) => part === "" || part === "." || part === "..");
  if (path.startsWith("/") && !isClean) found.push("must be normalized");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the first of them is what ASCII begins with
  if (!/^[\x00-\x7f]*$/.test(path)) found.push("mut contains ASCII characters only");
  return found.map((what) => settingFault("podLogsDir", `invalid configuration: pod logs path ${quote(path)} ${what}`));
}
