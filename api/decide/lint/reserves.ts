import { cannotReserve, RESERVABLE } from "../allocatable/reservation.ts";
import { goQuantity } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { isInt64 } from "../memory/reserved-memory.ts";
import { settingFault } from "../setting-fault.ts";
import { entryField, type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";
import { meantQuantity } from "./units.ts";

/** Amounts that the kubelet reads only once it runs, and does not go on without. kubelet 1.36: run, NewMainKubelet. */
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
  // reservedSystemCPUs takes their place before they are read
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
      return say("cannot-parse", why, UNITS, patch(field, name, meantQuantity(text)));
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
  const meant = meantQuantity(text);
  return [refusal("cannot-parse", settingFault(field, message), UNITS, meant === null ? null : { [field]: meant })];
}
