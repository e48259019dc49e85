import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { quote } from "../go/strconv.ts";
import type { Admitting, Refused } from "./admitting.ts";
import { kernelAtLeast, namespaceOf, normalized, SAFE_SYSCTLS, type SysctlNamespace } from "./sysctl-names.ts";

/** What the administrator allows beside the safe ones. */
export interface UnsafeSysctls {
  readonly names: ReadonlyMap<string, SysctlNamespace>;
  readonly prefixes: ReadonlyMap<string, SysctlNamespace>;
}
const LONGEST = 253;
const SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const PATTERN = `(${SEGMENT}[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]`;
const IS_PATTERN = new RegExp(`^${PATTERN}$`);

/** Parses allowedUnsafeSysctls; the error is what the kubelet says when it does not start. kubelet 1.36: NewAllowlist. */
export function unsafeSysctls({ allowedUnsafeSysctls = [] }: KubeletConfiguration): Result<UnsafeSysctls, string> {
  const names = new Map<string, SysctlNamespace>();
  const prefixes = new Map<string, SysctlNamespace>();
  for (const text of allowedUnsafeSysctls) {
    if (text.length > LONGEST || !IS_PATTERN.test(text)) {
      return err(`sysctl ${quote(text)} must have at most ${LONGEST} characters and match regex ${PATTERN}`);
    }
    const name = normalized(text);
    const star = name.indexOf("*");
    const known = star < 0 ? name : name.slice(0, star);
    const namespace = namespaceOf(known);
    if (namespace === undefined) return err(`the sysctls ${quote(known)} are not known to be namespaced`);
    (star < 0 ? names : prefixes).set(known, namespace);
  }
  return ok({ names, prefixes });
}

/** Every sysctl of the pod that the node does not allow; the kubelet stops at the first. kubelet 1.36: patternAllowlist.Admit. */
export function sysctlRefusals(admitting: Admitting, unsafe: UnsafeSysctls): readonly Refused[] {
  const { pod } = admitting;
  return (pod.spec.securityContext?.sysctls ?? []).flatMap(({ name: given }) => {
    const name = normalized(given);
    const namespace = safeNamespace(name, admitting) ?? unsafeNamespace(name, unsafe);
    if (namespace === undefined) return [forbidden(`${quote(name)} not allowlisted`)];
    const shared = namespace === "IPC" ? pod.spec.hostIPC : pod.spec.hostNetwork;
    return shared === true ? [forbidden(`${quote(name)} not allowed with host ${namespace} enabled`)] : [];
  });
}
const forbidden = (what: string): Refused => ({ reason: "SysctlForbidden", message: `forbidden sysctl: ${what}` });

function safeNamespace(name: string, { node, reasons, needs }: Admitting): SysctlNamespace | undefined {
  const since = SAFE_SYSCTLS.get(name);
  if (since === undefined) return undefined;
  if (since === null) return namespaceOf(name);
  const kernel = node.status?.nodeInfo?.kernelVersion;
  if (kernel === undefined || kernel === "") {
    needs.add("node.status.nodeInfo.kernelVersion");
    return namespaceOf(name);
  }
  reasons.add("safe_since_kernel", "sysctl", name, { kernel, since: since.join(".") });
  return kernelAtLeast(kernel, since) ? namespaceOf(name) : undefined;
}
function unsafeNamespace(name: string, { names, prefixes }: UnsafeSysctls): SysctlNamespace | undefined {
  const exact = names.get(name);
  if (exact !== undefined) return exact;
  for (const [prefix, namespace] of prefixes) if (name.startsWith(prefix)) return namespace;
  return undefined;
}
