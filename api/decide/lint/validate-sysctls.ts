import { unsafeSysctls } from "../admission/sysctls.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

const FIELD = "allowedUnsafeSysctls";

/** Each entry that the kubelet does not start with; it names the first. kubelet 1.36: NewAllowlist. */
export function sysctlFindings({ given }: LintInput): readonly LintFinding[] {
  return given.list(FIELD).flatMap((item, i) => {
    const text = item ?? "";
    const read = typeof text === "string" ? unsafeSysctls({ allowedUnsafeSysctls: [text] }) : null;
    if (read === null || read.ok) return [];
    const isKnown = read.error.startsWith("the sysctls ");
    const advice = isKnown
      ? "the kernel has it once for the whole node, so no pod can have its own: set it on the node, and take it out here"
      : "a name such as net.core.somaxconn, or the beginning of some with a `*` at the end: net.ipv4.*";
    const fault = settingFault(`${FIELD}[${i}]`, read.error);
    return [refusal(isKnown ? "sysctl-of-node" : "cannot-parse", fault, advice)];
  });
}
