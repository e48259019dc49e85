import { compare, fromUnits, isZero, milliValue } from "../../model/amount.ts";
import { cannotReserve, RESERVABLE } from "../allocatable/reservation.ts";
import { goQuantity, isSignal } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { isInt64 } from "../memory/reserved-memory.ts";
import { settingFault } from "../setting-fault.ts";
import { entryField, error, type LintFinding, note, refusal, suggestQuantity, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/**
 * Amounts that the kubelet parses only when it runs, and that stop it if they are wrong. kubelet 1.36: run,
 * NewMainKubelet.
 */
export function amountFindings(input: LintInput): readonly LintFinding[] {
  return [
    ...listFindings(input, "kubeReserved", "--kube-reserved"),
    ...listFindings(input, "systemReserved", "--system-reserved"),
    ...qosFindings(input),
    ...logSizeFindings(input),
  ];
}

/** kubelet 1.36: parseResourceList. */
function listFindings({ given }: LintInput, field: string, flag: string): readonly LintFinding[] {
  // reservedSystemCPUs replaces the cpu of the reserves before they are parsed
  const noCpu = given.text("reservedSystemCPUs") !== "";
  return given.texts(field).flatMap(([name, text]) => {
    if (noCpu && name === "cpu") return [];
    const say = (code: string, why: string, advice: string, fix: unknown): readonly LintFinding[] => {
      const fault = settingFault(entryField(field, name), `${flag} value failed to parse: ${why}`);
      return [refusal(code, fault, advice, fix)];
    };
    if (!RESERVABLE.includes(name)) {
      const advice = `${RESERVABLE.join(", ")} can be reserved`;
      return say("cannot-reserve", cannotReserve(name), advice, { [field]: { [name]: null } });
    }
    const read = goQuantity(text);
    if (!read.ok) {
      const why = `failed to parse quantity ${quote(text)} for ${quote(name)} resource: ${read.error}`;
      return say("cannot-parse", why, UNITS, patch(field, name, suggestQuantity(text)));
    }
    if (read.value.amount >= 0) return [];
    return say(
      "out-of-range",
      `resource quantity for ${quote(name)} cannot be negative: ${text}`,
      "zero or more",
      null,
    );
  });
}
const UNITS = "write 512Mi, 2Gi or 500m: Kubernetes' units are Ki, Mi, Gi and k, M, G, without B";
const patch = (field: string, name: string, value: string | null): unknown =>
  value === null ? null : { [field]: { [name]: value } };

/** kubelet 1.36: ParseQOSReserved. */
function qosFindings({ given }: LintInput): readonly LintFinding[] {
  return given.texts("qosReserved").flatMap(([name, text]) => {
    const why = name === "memory" ? percentFault(text) : cannotReserve(name);
    if (why === undefined) return [];
    const message = `--qos-reserved value failed to parse: ${name === "memory" ? `failed to parse percentage ${quote(text)} for "memory" resource: ${why}` : why}`;
    const fix =
      name !== "memory"
        ? { qosReserved: { [name]: null } }
        : patch("qosReserved", name, /^\d{1,2}$/.test(text) ? `${text}%` : null);
    return [
      refusal("cannot-parse", settingFault(entryField("qosReserved", name), message), "memory alone, as 50%", fix),
    ];
  });
}
/** kubelet 1.36: parsePercentage of package cm. */
function percentFault(text: string): string | undefined {
  if (!text.endsWith("%")) return `percentage expected, got '${text}'`;
  const number = text.replace(/%+$/, "");
  if (!/^[+-]?\d{1,18}$/.test(number)) return `invalid number in percentage '${text}'`;
  return Number(number) < 0 || Number(number) > 100 ? "percentage must be between 0 and 100" : undefined;
}

/** kubelet 1.36: NewContainerLogManager. */
function logSizeFindings({ given, profile }: LintInput): readonly LintFinding[] {
  const field = "containerLogMaxSize";
  const text = given.text(field) || profile.defaults.containerLogMaxSize;
  const read = goQuantity(text);
  const why = !read.ok ? read.error : isInt64({ text }) ? undefined : "invalid max log size";
  if (why === undefined) return [];
  const message = `failed to initialize container log manager: failed to parse container log max size ${quote(text)}: ${why}`;
  const meant = suggestQuantity(text);
  return [refusal("cannot-parse", settingFault(field, message), UNITS, meant === null ? null : { [field]: meant })];
}

/** Checks that a resource or a signal is counted in bytes; for a signal that does not exist this is unknown. */
const isBytes = (name: string): boolean =>
  name === "memory" ||
  name === "ephemeral-storage" ||
  (isSignal(name) && name.endsWith(".available") && name !== "pid.available");
const MAPS = ["kubeReserved", "systemReserved", "evictionHard", "evictionSoft", "evictionMinimumReclaim"] as const;
/** The least plausible amount of memory or disk space. */
const FEWEST_BYTES = 64 * 1024;
const MIN_LOG_BYTES = 4096;

/** Amounts that are valid but probably not intended. */
export function amountDoubts(input: LintInput): readonly LintFinding[] {
  const { given } = input;
  const maps = MAPS.flatMap((field) =>
    given
      .texts(field)
      .filter(([name]) => isBytes(name))
      .flatMap(([name, text]) =>
        doubt(entryField(field, name), text, FEWEST_BYTES, (v) => ({ [field]: { [name]: v } })),
      ),
  );
  const log = "containerLogMaxSize";
  const ofLog = given.has(log) ? doubt(log, given.text(log), MIN_LOG_BYTES, (v) => ({ [log]: v })) : [];
  return [...maps, ...ofLog, ...unlimitedLog(input), ...roundedCpus(input), ...smallThreshold(input)];
}

function doubt(field: string, text: string, fewest: number, patch: (v: string) => unknown): readonly LintFinding[] {
  if (text.endsWith("%")) return [];
  const read = goQuantity(text);
  if (!read.ok || isZero(read.value.amount) || read.value.amount < 0) return [];
  const milli = /^(\d+(?:\.\d+)?)m$/.exec(text);
  if (milli !== null) {
    const message = `${text} is thousandths of a byte: m is milli, and Mi or M is meant by megabytes`;
    const fix = patch(`${milli[1]}Mi`);
    return [error({ code: "milli-bytes", field, message, advice: `write ${milli[1]}Mi`, fix })];
  }
  if (compare(read.value.amount, fromUnits(fewest)) >= 0) return [];
  const message = `${text} is a number of bytes, and so few are next to nothing`;
  const code = "bytes-without-unit";
  if (field.startsWith("eviction") && /^\d{1,2}$/.test(text))
    return [warning({ code, field, message, advice: "was Mi, Gi or % left out?" })];
  const fix = /^\d+$/.test(text) ? patch(`${text}Mi`) : null;
  return [warning({ code, field, message, advice: "was Mi or Gi left out?", fix })];
}

function unlimitedLog({ given, profile: { defaults } }: LintInput): readonly LintFinding[] {
  const field = "containerLogMaxSize";
  const read = goQuantity(given.text(field) || defaults.containerLogMaxSize);
  if (!read.ok || read.value.amount >= 0) return [];
  const message = "a negative size switches the rotation of container logs off: they grow until the disk is full";
  return [
    warning({
      code: "logs-not-rotated",
      field,
      message,
      advice: `give a size; the default is ${defaults.containerLogMaxSize}`,
      fix: { [field]: null },
    }),
  ];
}

/** kubelet 1.36: NewManager of the CPU manager. */
function roundedCpus({ config }: LintInput): readonly LintFinding[] {
  if (config.cpuManagerPolicy !== "static" || config.reservedSystemCPUs !== "") return [];
  const milli = (["kubeReserved", "systemReserved"] as const).reduce(
    (sum, list) => sum + milliValue(config[list]["cpu"]?.amount ?? 0),
    0,
  );
  if (milli === 0 || milli % 1000 === 0) return [];
  const whole = Math.ceil(milli / 1000);
  const message = `kubeReserved and systemReserved reserve ${milli}m of CPU, and the static policy keeps whole CPUs back: ${whole}. Pods are promised the rest, which no exclusive CPU is for`;
  const advice = `reserve ${whole * 1000}m together, or name the CPUs in reservedSystemCPUs`;
  return [note({ code: "reserved-cpu-rounded", field: "kubeReserved", message, advice })];
}

const SMALL = 32 * 1024 * 1024;
function smallThreshold({ config }: LintInput): readonly LintFinding[] {
  const text = config.evictionHard["memory.available"];
  if (text === undefined || text.endsWith("%")) return [];
  const read = goQuantity(text);
  const isSmall = read.ok && compare(read.value.amount, fromUnits(SMALL)) < 0;
  if (!isSmall || compare(read.value.amount, fromUnits(FEWEST_BYTES)) < 0) return [];
  return [
    warning({
      code: "memory-threshold-small",
      field: entryField("evictionHard", "memory.available"),
      message: `with ${text} left the kernel has begun to kill before the kubelet looks, which it does every 10s`,
      advice: `the default is ${config.profile.defaults.evictionHard["memory.available"]}; large nodes want more`,
    }),
  ];
}
