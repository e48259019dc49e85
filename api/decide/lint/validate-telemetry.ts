import { quote } from "../go/strconv.ts";
import { parseUrl } from "../go/url.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Metrics and traces. kubelet 1.36: ValidateShowHiddenMetricsVersion, ValidateTracingConfiguration. */
export function telemetryFindings(input: LintInput): readonly LintFinding[] {
  return [...hiddenMetrics(input), ...sampling(input), ...endpoint(input)];
}

const HIDDEN = "showHiddenMetricsForVersion";
const VERSION_BEFORE = "1.35";

function hiddenMetrics({ given }: LintInput): readonly LintFinding[] {
  const text = given.text(HIDDEN);
  if (text === "" || text === VERSION_BEFORE) return [];
  const why = `must be omitted or have the value '${VERSION_BEFORE}'; only the previous minor version is allowed`;
  const fault = settingFault(HIDDEN, `invalid ${HIDDEN}: ${HIDDEN}: Invalid value: ${quote(text)}: ${why}`);
  const advice = `${VERSION_BEFORE} shows the metrics that 1.36 has hidden; else take it out`;
  return [refusal("unknown-value", fault, advice, { [HIDDEN]: null })];
}

const MOST_SAMPLES = 1_000_000;

function sampling({ given }: LintInput): readonly LintFinding[] {
  const field = "tracing.samplingRatePerMillion";
  const rate = given.inside("tracing").number("samplingRatePerMillion", 0);
  if (rate >= 0 && rate <= MOST_SAMPLES) return [];
  const why =
    rate < 0 ? "sampling rate must be positive" : "sampling rate per million must be less than or equal to one million";
  const fault = settingFault(field, `${field}: Invalid value: ${rate}: ${why}`);
  const fix = { tracing: { samplingRatePerMillion: null } };
  return [refusal("out-of-range", fault, `0 to ${MOST_SAMPLES}; the default is 0`, fix)];
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
