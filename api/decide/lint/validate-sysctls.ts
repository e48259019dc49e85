import { LONGEST_SYSCTL, namespaceOf, normalized, SYSCTL_SEGMENT, unsafeSysctls } from "../admission/sysctls.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { entryField, type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

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
