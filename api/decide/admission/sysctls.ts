import { err, ok, type Result } from "../../base/result.ts";
import type { Behaviour, SysctlNamespace } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";
import type { AdmissionContext, Refused } from "./prepare.ts";

type Namespaces = Behaviour["namespacedSysctls"];

/** The kernel namespace of a sysctl or of a sysctl prefix; undefined: none is known. kubernetes 1.37: namespaceOf. */
export function namespaceOf(name: string, namespaces: Namespaces): SysctlNamespace | undefined {
  const exact = namespaces.get(name);
  if (exact !== undefined) return exact;
  for (const [known, namespace] of namespaces) if (known.endsWith(".") && name.startsWith(known)) return namespace;
  return undefined;
}

/** `net/ipv4/conf/eth0.1/x` and `net.ipv4.conf.eth0/1.x` are one name: the first separator decides. kubernetes 1.36: NormalizeName. */
export function normalized(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === "/" ? name.replace(/[./]/g, (c) => (c === "/" ? "." : "/")) : name;
}

/** Checks that a kernel (`6.18.44-lts`) is at least the given version; a text that is no version is older than all. */
export function kernelAtLeast(kernel: string, [major, minor]: readonly [number, number]): boolean {
  const [, a, b] = /^\s*v?(0|[1-9]\d*)\.(\d+)/.exec(kernel) ?? [];
  return a !== undefined && (Number(a) > major || (Number(a) === major && Number(b) >= minor));
}

/** The sysctls that the administrator allows in addition to the safe ones. */
export interface UnsafeSysctls {
  readonly names: ReadonlyMap<string, SysctlNamespace>;
  readonly prefixes: ReadonlyMap<string, SysctlNamespace>;
}
/** Kubernetes: SysctlMaxLength, SysctlSegmentFmt. */
export const LONGEST_SYSCTL = 253;
export const SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const PATTERN = `(${SYSCTL_SEGMENT}[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]`;
const IS_PATTERN = new RegExp(`^${PATTERN}$`);

/** Parses allowedUnsafeSysctls; the error is what the kubelet says when it does not start. kubelet 1.36: NewAllowlist. */
export function unsafeSysctls(
  allowedUnsafeSysctls: readonly string[],
  namespaces: Namespaces,
): Result<UnsafeSysctls, string> {
  const names = new Map<string, SysctlNamespace>();
  const prefixes = new Map<string, SysctlNamespace>();
  for (const text of allowedUnsafeSysctls) {
    if (text.length > LONGEST_SYSCTL || !IS_PATTERN.test(text)) {
      return err(`sysctl ${quote(text)} must have at most ${LONGEST_SYSCTL} characters and match regex ${PATTERN}`);
    }
    const name = normalized(text);
    const star = name.indexOf("*");
    const known = star < 0 ? name : name.slice(0, star);
    const namespace = namespaceOf(known, namespaces);
    if (namespace === undefined) return err(`the sysctls ${quote(known)} are not known to be namespaced`);
    (star < 0 ? names : prefixes).set(known, namespace);
  }
  return ok({ names, prefixes });
}

/**
 * One refusal for every sysctl of the pod that the node does not allow; the kubelet stops at the first. kubelet 1.36:
 * patternAllowlist.Admit.
 */
export function sysctlRefusals(admitting: AdmissionContext, unsafe: UnsafeSysctls): readonly Refused[] {
  const { pod } = admitting;
  return (pod.spec.securityContext?.sysctls ?? []).flatMap(({ name: given }) => {
    const name = normalized(given);
    const namespace = safeNamespace(name, admitting) ?? unsafeNamespace(name, unsafe);
    if (namespace === undefined) return [forbidden(`${quote(name)} not allowlisted`)];
    return isShared(namespace, pod) ? [forbidden(`${quote(name)} not allowed with host ${namespace} enabled`)] : [];
  });
}
/** Whether the pod shares the host's namespace; no sysctl needs the UTS namespace. kubelet 1.37: validateSysctl. */
function isShared(namespace: SysctlNamespace, { spec }: AdmissionContext["pod"]): boolean {
  if (namespace === "IPC") return spec.hostIPC === true;
  if (namespace === "Net") return spec.hostNetwork === true;
  return namespace === "User" && spec.hostUsers !== false;
}
const forbidden = (what: string): Refused => ({ reason: "SysctlForbidden", message: `forbidden sysctl: ${what}` });

function safeNamespace(name: string, { node, config, reasons, needs }: AdmissionContext): SysctlNamespace | undefined {
  const { safeSysctls, namespacedSysctls } = config.profile.behaviour;
  const since = safeSysctls.get(name);
  if (since === undefined) return undefined;
  if (since === null) return namespaceOf(name, namespacedSysctls);
  const kernel = node.status?.nodeInfo?.kernelVersion;
  if (kernel === undefined || kernel === "") {
    needs.add("node.status.nodeInfo.kernelVersion");
    return namespaceOf(name, namespacedSysctls);
  }
  reasons.add("safe_since_kernel", "sysctl", name, { kernel, since: since.join(".") });
  return kernelAtLeast(kernel, since) ? namespaceOf(name, namespacedSysctls) : undefined;
}
function unsafeNamespace(name: string, { names, prefixes }: UnsafeSysctls): SysctlNamespace | undefined {
  const exact = names.get(name);
  if (exact !== undefined) return exact;
  for (const [prefix, namespace] of prefixes) if (name.startsWith(prefix)) return namespace;
  return undefined;
}
