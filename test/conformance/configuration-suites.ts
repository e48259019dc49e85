import type { Fields } from "../../api/base/own.ts";
import type { LintFinding } from "../../api/decide/lint/finding.ts";
import { lintConfiguration } from "../../api/decide/lint/lint.ts";
import { decoded } from "../kit/snapshots.ts";
import { type Suite, suite } from "./suite.ts";

interface Asked {
  readonly configuration: Fields;
  /** The names of the feature gates in the order in which the kubelet processes them, which is random in Go. */
  readonly gates: readonly string[];
}
interface AnsweredCase extends Asked {
  readonly findings: readonly LintFinding[];
}

/** The vectors were recorded on a machine with cgroup v1. */
const MACHINE = decoded({ cgroup: { version: 1 } });
/** The prefixes of the messages of ValidateKubeletConfiguration; the lint also reports messages of later functions. */
const VALIDATION = /^(?:invalid (?:configuration|taint): |invalid showHidden|--show-hidden|logging\.|tracing\.)/;
const PANIC = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: ";
const UNKNOWN = "strict decoding error: ";

function decide({ configuration, gates }: Asked, profile: Parameters<typeof lintConfiguration>[2]): AnsweredCase {
  // the kubelet decoded an object, not a file, so no folder is known for relative paths
  const findings = lintConfiguration(configuration, MACHINE, profile, "kept");
  return { configuration, gates, findings: findings.filter(({ kubelet }) => kubelet) };
}

/** The kubelet sets defaults before it checks the error of strict decoding. */
function show(reported: AnsweredCase): unknown {
  const gates = gateFaults(reported);
  if (gates.length > 0) {
    const [one = ""] = gates;
    return { decodeError: `panic: ${PANIC}${gates.length === 1 ? one : `[${gates.join(", ")}]`}` };
  }
  const names = Object.keys(reported.configuration);
  const unknown = reported.findings
    .filter(({ code }) => code === "unknown-field")
    .sort((a, b) => names.indexOf(a.field) - names.indexOf(b.field))
    .map(({ message }) => message.slice(UNKNOWN.length));
  if (unknown.length > 0) return { decodeError: `${UNKNOWN}${unknown.join(", ")}` };
  const errors = reported.findings.map(({ message }) => message).filter((text) => VALIDATION.test(text));
  return errors.length === 0 ? { ok: true } : { errors: errors.sort() };
}

/** The kubelet stops at the first unknown gate. */
function gateFaults({ findings, gates }: AnsweredCase): readonly string[] {
  const place = ({ field }: LintFinding): number => gates.findIndex((name) => field === `featureGates["${name}"]`);
  const faults = findings
    .filter(({ message }) => message.startsWith(PANIC))
    .sort((a, b) => place(a) - place(b))
    .map(({ message }) => message.slice(PANIC.length));
  const stop = faults.findIndex((text) => text.startsWith("unrecognized feature gate"));
  return stop < 0 ? faults : faults.slice(0, stop + 1);
}

const orders = (names: readonly string[]): readonly (readonly string[])[] =>
  names.length < 2
    ? [names]
    : names.flatMap((name) => orders(names.filter((other) => other !== name)).map((rest) => [name, ...rest]));

export const CONFIGURATION_SUITES: Readonly<Record<string, Suite>> = {
  "config-validation": suite({
    read: (configuration: Fields): Asked => ({
      configuration,
      gates: Object.keys((configuration["featureGates"] ?? {}) as Fields),
    }),
    decide,
    show,
    // the kubelet repeats some messages, the lint does not
    expected: (out: { readonly errors?: readonly string[] }) =>
      out.errors === undefined ? out : { errors: [...new Set(out.errors)] },
    alike: (asked) => orders(asked.gates).map((gates) => ({ ...asked, gates })),
  }),
};
