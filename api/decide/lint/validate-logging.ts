import type { Fields } from "../../base/own.ts";
import type { Defaults, Profile } from "../../profiles/profile.ts";
import { goQuantity } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, RawConfiguration, refusal, spanText } from "./finding.ts";
import type { LintInput } from "./input.ts";

const MAX_INT32 = 2 ** 31 - 1;
const GATE = "LoggingAlphaOptions";
const invalid = (field: string, value: string, why: string) =>
  settingFault(field, `${field}: Invalid value: ${value}: ${why}`);

/**
 * Lists the logging settings that the kubelet does not start with; the format is among the words. k8s.io/component-base:
 * logs/api/v1 Validate.
 */
export function loggingFindings({ given, profile, isOn }: LintInput): readonly LintFinding[] {
  const logging = given.inside("logging");
  return [
    ...flush(logging, profile),
    ...levels(logging, profile.defaults.logging),
    ...modules(logging),
    ...(isOn(GATE) ? [] : alpha(logging)),
  ];
}

/** A text is a duration, a number nanoseconds; zero is the default. */
function flush(logging: RawConfiguration, { defaults, behaviour }: Profile): readonly LintFinding[] {
  const { flushFrequency } = defaults.logging;
  const value = logging.raw["flushFrequency"];
  const nanos = typeof value === "number" ? value : logging.nanos("flushFrequency");
  if (nanos >= 0 || !behaviour.flushFrequencyAboveZero) return [];
  const text = typeof value === "number" ? String(value) : quote(spanText(nanos));
  const fault = invalid("logging.flushFrequency", text, "Must be greater than zero");
  return [refusal("out-of-range", fault, `the default is ${flushFrequency}`, { logging: { flushFrequency: null } })];
}

function levels(logging: RawConfiguration, { verbosity }: Defaults["logging"]): readonly LintFinding[] {
  const level = logging.number("verbosity");
  if (level <= MAX_INT32) return [];
  const fault = invalid("logging.verbosity", String(level), `Must be <= ${MAX_INT32}`);
  return [
    refusal("out-of-range", fault, `0 to 10 are used; the default is ${verbosity}`, { logging: { verbosity: null } }),
  ];
}

function modules(logging: RawConfiguration): readonly LintFinding[] {
  const field = "logging.vmodule";
  const items = logging.list("vmodule").map((item) => new RawConfiguration((item ?? {}) as Fields));
  const found: LintFinding[] = [];
  const format = logging.text("format");
  if (items.length > 0 && format !== "" && format !== "text") {
    const fault = settingFault(field, `${field}: Forbidden: Only supported for text log format`);
    const fix = { logging: { vmodule: null } };
    found.push(refusal("vmodule-without-text", fault, "take it out, or log as text", fix));
  }
  for (const [i, item] of items.entries()) {
    const at = `${field}[${i}]`;
    const pattern = item.text("filePattern");
    const level = item.number("verbosity");
    const advice = "a file's name without .go, or a pattern of one";
    if (pattern === "") {
      const fault = settingFault(at, `${at}: Required value: File pattern must not be empty`);
      found.push(refusal("cannot-parse", fault, advice));
    }
    if (/[=,]/.test(pattern)) {
      const fault = invalid(at, quote(pattern), "File pattern must not contain equal sign or comma");
      found.push(refusal("cannot-parse", fault, `${advice}; each its own entry`));
    }
    if (level > MAX_INT32)
      found.push(refusal("out-of-range", invalid(at, String(level), `Must be <= ${MAX_INT32}`), "0 to 10 are used"));
  }
  return found;
}

function alpha(logging: RawConfiguration): readonly LintFinding[] {
  return ["text", "json"].flatMap((format) => {
    const options = logging.inside("options").inside(format);
    const set = [
      ...(options.flag("splitStream") ? ["splitStream"] : []),
      ...(isSome(options.raw["infoBufferSize"]) ? ["infoBufferSize"] : []),
    ];
    return set.map((name) => {
      const field = `logging.options.${format}.${name}`;
      const fault = settingFault(field, `${field}: Forbidden: Feature ${GATE} is disabled`);
      const fix = { logging: { options: { [format]: { [name]: null } } } };
      return refusal("needs-feature-gate", fault, `take the field out, or switch the gate ${GATE} on`, fix);
    });
  });
}
function isSome(size: unknown): boolean {
  const read = goQuantity(typeof size === "string" ? size : JSON.stringify(size ?? 0));
  return read.ok && read.value.amount !== 0;
}
