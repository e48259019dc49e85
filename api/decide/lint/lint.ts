import { joinPath } from "../../base/input-issue.ts";
import type { Fields } from "../../base/own.ts";
import { unwrapped } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { profileIn } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { isPrinted, unknownFields } from "../../profiles/unknown-fields.ts";
import { readThresholds } from "../eviction/configuration.ts";
import { quote } from "../go/strconv.ts";
import { parseUrl } from "../go/url.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { amountDoubts, amountFindings } from "./amounts.ts";
import { decodeFaults, headFindings, typeFindings } from "./decode-faults.ts";
import { draFindings } from "./dra.ts";
import { droppedDefaults, gateFindings } from "./dropped.ts";
import {
  error,
  inOrder,
  type LintFinding,
  note,
  refusal,
  spanText,
  suggestDuration,
  suggestQuantity,
  warning,
} from "./finding.ts";
import { imageGcFindings } from "./image-gc.ts";
import { ineffectiveFindings } from "./ineffective.ts";
import { type LintBy, type LintInput, lintInput, type RelativePaths } from "./input.ts";
import { managerFindings, podFindings } from "./managers.ts";
import { NAMED_SIGNALS, remainingRenames, SignalSuggestions, UNKNOWN_SIGNAL } from "./signal-fix.ts";
import { thresholdFindings } from "./thresholds.ts";
import { imageFindings } from "./validate-images.ts";
import { loggingFindings } from "./validate-logging.ts";
import { numberFindings, spanFindings } from "./validate-numbers.ts";
import { otherFindings, sysctlFindings, taintFindings } from "./validate-others.ts";
import { tlsFindings, wordFindings } from "./validate-words.ts";

/** Metrics and traces. kubelet 1.36: ValidateShowHiddenMetricsVersion, ValidateTracingConfiguration. */
function telemetryFindings(input: LintInput): readonly LintFinding[] {
  return [...hiddenMetrics(input), ...sampling(input), ...endpoint(input)];
}

const HIDDEN = "showHiddenMetricsForVersion";

function hiddenMetrics({ given, profile }: LintInput): readonly LintFinding[] {
  const { version, previousVersion: before, words } = profile;
  const text = given.text(HIDDEN);
  if (text === "" || text === before) return [];
  const fault = settingFault(HIDDEN, words.hiddenMetricsRefused(quote(text), before));
  const advice = `${before} shows the metrics that ${version} has hidden; else take it out`;
  return [refusal("unknown-value", fault, advice, { [HIDDEN]: null })];
}

const MAX_SAMPLES = 1_000_000;

function sampling({ given }: LintInput): readonly LintFinding[] {
  const field = "tracing.samplingRatePerMillion";
  const rate = given.inside("tracing").number("samplingRatePerMillion");
  if (rate >= 0 && rate <= MAX_SAMPLES) return [];
  const why =
    rate < 0 ? "sampling rate must be positive" : "sampling rate per million must be less than or equal to one million";
  const fault = settingFault(field, `${field}: Invalid value: ${rate}: ${why}`);
  const fix = { tracing: { samplingRatePerMillion: null } };
  return [refusal("out-of-range", fault, `0 to ${MAX_SAMPLES}; the default is 0`, fix)];
}

const SCHEMES = ["dns", "unix", "unix-abstract"];

function endpoint({ given }: LintInput): readonly LintFinding[] {
  const field = "tracing.endpoint";
  const tracing = given.inside("tracing");
  if (!tracing.has("endpoint")) return [];
  const text = tracing.text("endpoint");
  const whole = text.includes("//") ? text : `dns://${text}`;
  const url = parseUrl(whole);
  if (url.ok && SCHEMES.includes(url.value.scheme)) return [];
  const why = url.ok
    ? `unsupported scheme: ${url.value.scheme}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md`
    : url.error;
  const fault = settingFault(field, `${field}: Invalid value: ${quote(whole)}: ${why}`);
  // behind http:// stands what gRPC takes alone, with or without TLS
  const bare = /^https?:\/\/([^/?#@]+)\/?$/.exec(text)?.[1];
  const advice = "a host and port without http://, as gRPC names them: localhost:4317";
  const stands = bare !== undefined && parseUrl(`dns://${bare}`).ok;
  return [refusal("cannot-parse", fault, advice, stands ? { tracing: { endpoint: bare } } : null)];
}

/** Thresholds that cannot be read, and soft ones without a grace period. kubelet 1.36: ParseThresholdConfig. */
function thresholdFaults({ config, given }: LintInput): readonly LintFinding[] {
  const suggestions = new SignalSuggestions(given);
  return readThresholds(config).faults.map((fault) => {
    const [, field = "", name = ""] = /^(\w+)\["(.*)"\]$/.exec(fault.field) ?? [];
    const text = config[field as "evictionHard"][name] ?? "";
    return advised(fault, { field, signal: name, text }, suggestions);
  });
}

interface Entry {
  readonly field: string;
  readonly signal: string;
  readonly text: string;
}
function advised(fault: SettingFault, { field, signal, text }: Entry, suggestions: SignalSuggestions): LintFinding {
  const patch = (value: unknown): unknown => ({ [field]: value });
  if (fault.message.startsWith("unsupported eviction signal")) return unknownSignal(fault, signal, suggestions);
  if (fault.message.startsWith("grace period must be specified")) {
    const advice = "say in evictionSoftGracePeriod how long the threshold has to be met, such as 1m30s";
    return refusal("soft-without-grace", fault, advice);
  }
  if (field === "evictionSoftGracePeriod") {
    const meant = suggestDuration(text);
    return refusal("cannot-parse", fault, "a duration such as 90s or 1m30s", meant && patch({ [signal]: meant }));
  }
  const meant = suggestQuantity(text);
  const isRange = /must be|negative/.test(fault.message);
  const advice = "an amount such as 500Mi, or a share such as 10%; 0% is no threshold";
  return refusal(isRange ? "out-of-range" : "cannot-parse", fault, advice, meant && patch({ [signal]: meant }));
}

/**
 * The finding for an unknown signal. Without a likely signal there is no fix: removing the entry would leave nothing
 * in place of the threshold.
 */
function unknownSignal(fault: SettingFault, name: string, suggestions: SignalSuggestions): LintFinding {
  const meant = suggestions.meantBy(name);
  const known = `there are ${NAMED_SIGNALS.join(", ")}`;
  if (meant === null) return refusal(UNKNOWN_SIGNAL, fault, `${known}: name the one that is meant`);
  const fix = suggestions.patchOf(name, meant);
  const advice = `${known}; was \`${meant}\` meant?`;
  return fix.ok
    ? refusal(UNKNOWN_SIGNAL, fault, advice, fix.value)
    : refusal(UNKNOWN_SIGNAL, fault, `${advice} ${fix.error}`);
}

/** Fields that the kubelet still takes and no longer reads. kubelet 1.36: config/v1beta1. */
const IDLE_FIELDS: readonly string[] = ["iptablesDropBit", "iptablesMasqueradeBit", "streamingConnectionIdleTimeout"];
/** Values with which a file of kubeadm holds such a field; a /configz holds the defaults. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = { streamingConnectionIdleTimeout: ["4h", "0s"] };

/** Fields that a kubelet does not know, which it logs and leaves out, and those that do nothing. */
function fieldFindings({ posted, given, profile }: LintInput, isOfKubelet: boolean): readonly LintFinding[] {
  // a configuration that a kubelet itself printed has the fields of its version
  const unknown = isOfKubelet ? [] : unknownFields(posted, profile.fieldNames);
  const isUsual = (name: string): boolean =>
    given.raw[name] === profile.defaults[name] || DEFAULTS[name]?.includes(given.raw[name]) === true;
  const deprecated = IDLE_FIELDS.filter((name) => given.has(name) && !isUsual(name));
  return [
    ...unknown.map(({ path, fault, near }): LintFinding => {
      const found = error({
        code: "unknown-field",
        field: joinPath("", path),
        message: fault,
        advice:
          near === null
            ? "the kubelet logs it and leaves it out: take it out"
            : `the kubelet logs it and leaves it out; was \`${near}\` meant?`,
        fix: path.every((step) => typeof step === "string") ? patched(path as readonly string[], near, posted) : null,
      });
      return { ...found, kubelet: true };
    }),
    ...deprecated.map((field) => {
      const message = `${field} has no effect any more`;
      return note({ code: "deprecated-field", field, message, advice: "take it out", fix: { [field]: null } });
    }),
  ];
}

/** A patch that removes a field, and moves its value to the intended field if that is not set. */
function patched(path: readonly string[], near: string | null, raw: unknown): unknown {
  const [name = "", ...rest] = path;
  const at = (raw ?? {}) as Readonly<Record<string, unknown>>;
  if (rest.length > 0) return { [name]: patched(rest, near, at[name]) };
  return near === null || at[near] !== undefined ? { [name]: null } : { [name]: null, [near]: at[name] };
}

/** Reserves that are not enforced, and enforcement without reserves. kubelet 1.36: enforceNodeAllocatableCgroups. */
function enforcementFindings(input: LintInput): readonly LintFinding[] {
  return [...(["kube", "system"] as const).flatMap((who) => ofReserve(input, who)), ...kubeletCgroup(input)];
}

function ofReserve({ config }: LintInput, who: "kube" | "system"): readonly LintFinding[] {
  const keys = new Set(config.enforceNodeAllocatable);
  const [reserve, group] = [`${who}Reserved`, `${who}ReservedCgroup`] as const;
  const isEnforced = keys.has(`${who}-reserved`) || keys.has(`${who}-reserved-compressible`);
  const list = Object.keys(config[reserve]).filter((name) => name !== "ephemeral-storage");
  const cgroup = config[group];
  const key = `${who}-reserved`;
  if (isEnforced && list.length === 0 && cgroup !== "") {
    const message = `enforceNodeAllocatable names ${key}, and ${reserve} reserves nothing: ${cgroup} gets no limit`;
    const advice = `say in ${reserve} what these daemons may use`;
    return [warning({ code: "enforced-without-reserve", field: reserve, message, advice })];
  }
  if (isEnforced) return [];
  if (cgroup !== "") {
    const message = `${group} ${cgroup} does nothing: enforceNodeAllocatable does not name ${key}`;
    const advice = `add ${key} to enforceNodeAllocatable, or take it out`;
    return [note({ code: "reserved-cgroup-idle", field: group, message, advice, fix: { [group]: null } })];
  }
  if (list.length === 0) return [];
  const message = `${reserve} is taken off what pods get, and does not limit the daemons it is for: ${key} is not in enforceNodeAllocatable`;
  const advice = "nothing, unless they should be limited: that needs their cgroup, and a wrong one starves them";
  return [note({ code: "reserve-not-enforced", field: reserve, message, advice })];
}

/** kubelet 1.36: it logs so, and goes on. */
function kubeletCgroup({ given }: LintInput): readonly LintFinding[] {
  const own = given.text("kubeletCgroups");
  const reserved = given.text("kubeReservedCgroup");
  if (own === "" || reserved === "" || own.startsWith(reserved)) return [];
  const found = warning({
    code: "kubelet-outside-reserve",
    field: "kubeletCgroups",
    message: "unsupported configuration:KubeletCgroups is not within KubeReservedCgroup",
    advice: `put the kubelet into a cgroup below ${reserved}`,
  });
  return [{ ...found, kubelet: true }];
}

const ALL = "shutdownGracePeriod";
const CRITICAL = "shutdownGracePeriodCriticalPods";

/**
 * How a graceful shutdown's time is divided: the last part is for critical pods only. kubelet 1.36: migrateConfig of
 * nodeshutdown.
 */
function shutdownFindings({ given, isOn }: LintInput): readonly LintFinding[] {
  const all = given.nanos(ALL);
  const critical = given.nanos(CRITICAL);
  if (all <= 0 || !isOn("GracefulNodeShutdown")) return [];
  if (critical === all) {
    const message = `${CRITICAL} is all of ${ALL} ${spanText(all)}: other pods get no time to end`;
    const advice = `leave a part to them: ${CRITICAL} is taken off the end of ${ALL}`;
    return [warning({ code: "shutdown-without-others", field: CRITICAL, message, advice })];
  }
  if (critical !== 0) return [];
  const message = `without ${CRITICAL} all of ${ALL} ${spanText(all)} is of the other pods: critical ones get no time to end`;
  return [
    note({
      code: "shutdown-without-critical",
      field: CRITICAL,
      message,
      advice: "set it to a part of it, such as a third",
    }),
  ];
}

/** kubelet 1.36: NewContainerManager. */
function swapFindings({ config, snapshot }: LintInput): readonly LintFinding[] {
  if (!config.failSwapOn || (snapshot?.machine?.swapBytes ?? 0) === 0) return [];
  const message = "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false";
  const advice = "switch swap off on this node, or let the kubelet run with it";
  return [refusal("swap-on", settingFault("failSwapOn", message), advice, { failSwapOn: false })];
}

const CHECKS: readonly ((input: LintInput) => readonly LintFinding[])[] = [
  gateFindings,
  numberFindings,
  wordFindings,
  spanFindings,
  otherFindings,
  taintFindings,
  imageFindings,
  loggingFindings,
  telemetryFindings,
  tlsFindings,
  sysctlFindings,
  amountFindings,
  thresholdFaults,
  managerFindings,
  draFindings,
  swapFindings,
  droppedDefaults,
  thresholdFindings,
  imageGcFindings,
  podFindings,
  shutdownFindings,
  enforcementFindings,
  ineffectiveFindings,
  amountDoubts,
];

/**
 * Finds faults and likely faults of a KubeletConfiguration: settings with which the kubelet of the node's version does
 * not start (in its words), settings without effect, and settings that conflict. `configuration`: parsed JSON of a
 * file or of /configz; a `snapshot` adds checks of the node's sizes, machine and state files. Sorted by severity, then
 * field; defaults have no finding.
 */
export function lintConfiguration(
  configuration: unknown,
  snapshot?: Snapshot,
  profile: Profile = profileIn(snapshot),
  relativePaths: RelativePaths = "resolved",
): readonly LintFinding[] {
  const isOfKubelet = isPrinted(configuration);
  const document = unwrapped(configuration);
  if (typeof document !== "object" || document === null || Array.isArray(document)) return [noConfiguration(document)];
  if (isHuge(document)) return [HUGE];
  const unread = decodeFaults(document as Fields, profile);
  const readFindings = (given: Fields) => findingsOf(given, { profile, isOfKubelet, snapshot, relativePaths });
  return inOrder([
    ...headFindings(document as Fields, profile),
    ...typeFindings(unread, document as Fields, profile, readFindings),
  ]);
}
interface LintContext extends LintBy {
  readonly isOfKubelet: boolean;
}
function findingsOf(configuration: Fields, by: LintContext): readonly LintFinding[] {
  const checked = (given: Fields) => checkedBy(given, by);
  return remainingRenames(checked(configuration), configuration, checked);
}
function checkedBy(configuration: Fields, by: LintContext): readonly LintFinding[] {
  const input = lintInput(configuration, by);
  const found = [...CHECKS.flatMap((check) => check(input)), ...fieldFindings(input, by.isOfKubelet)];
  return [...found, ...untaken(input, found)];
}

const noConfiguration = (document: unknown): LintFinding => {
  const kind =
    document === null || document === undefined
      ? "nothing"
      : Array.isArray(document)
        ? "a list"
        : `a ${typeof document}`;
  return error({
    code: "no-configuration",
    field: "$",
    message: `this is ${kind}, and no KubeletConfiguration`,
    advice: "give its object",
  });
};

/** No configuration comes near; what was meant by a name is looked for among many. */
const MAX_ENTRIES = 2000;
const MAX_CHARACTERS = 128 * 1024;
const HUGE = error({
  code: "too-large",
  field: "$",
  message: `this has more than ${MAX_ENTRIES} entries or ${MAX_CHARACTERS} characters, which no KubeletConfiguration has`,
  advice: "give the configuration alone",
});
function isHuge(document: object): boolean {
  const queue: unknown[] = [document];
  let entries = 0;
  let characters = 0;
  for (let value = queue.pop(); value !== undefined; value = queue.pop()) {
    if (typeof value === "string") characters += value.length;
    if (typeof value === "object" && value !== null) {
      if (Array.isArray(value) && value.length > MAX_ENTRIES) return true;
      // counted as they are met: a list of all of them would be made first
      for (const name in value) {
        characters += name.length;
        if (++entries > MAX_ENTRIES) return true;
        const inner = (value as Fields)[name];
        if (inner !== undefined) queue.push(inner);
      }
    }
    if (characters > MAX_CHARACTERS) return true;
  }
  return false;
}

/** Fields that decisions refuse and that no other finding is about. */
function untaken({ untaken: fields }: LintInput, found: readonly LintFinding[]): readonly LintFinding[] {
  return [...fields].flatMap(([field, why]) => {
    if (found.some((f) => f.severity === "refuses-start" && f.field.startsWith(field))) return [];
    const message = `nodewise does not take this value: ${why}`;
    return [error({ code: "not-taken", field, message, advice: "no decision can be made with it: correct it" })];
  });
}
