import { APP_ARMOR_ANNOTATION } from "../../../api/model/placement.ts";
import type { ContainerSecurity, PodSecurity, PodSpec, Profile, TextMap } from "../pod.ts";
import type { FieldValue } from "./field-value.ts";
import { checkDescending } from "./names.ts";
import { checkFields, type FieldRules, nearName } from "./rule.ts";
import { RULES } from "./rules.ts";

const LOCALHOST = "localhost/";

/**
 * A container's AppArmor profile from the annotations of older manifests; null: none. kubelet 1.36:
 * getProfileFromPodAnnotations.
 */
export function annotatedProfile(annotations: TextMap, container: string): Profile | null {
  const text = Object.hasOwn(annotations, APP_ARMOR_ANNOTATION + container)
    ? annotations[APP_ARMOR_ANNOTATION + container]
    : undefined;
  if (text === "runtime/default") return { type: "RuntimeDefault" };
  if (text === "unconfined") return { type: "Unconfined" };
  if (text?.startsWith(LOCALHOST)) return { type: "Localhost", ref: text.slice(LOCALHOST.length) };
  return null;
}

/** Reports AppArmor annotations that name no container or no valid profile. */
export function checkAppArmor(annotations: FieldValue, containers: ReadonlySet<string>): void {
  for (const key of annotations.keys) {
    if (!key.startsWith(APP_ARMOR_ANNOTATION)) continue;
    const at = annotations.field(key);
    if (!containers.has(key.slice(APP_ARMOR_ANNOTATION.length))) at.invalid("container not found");
    else if (!/^(?:runtime\/default|unconfined|localhost\/.+)$/.test(at.text()))
      at.invalid("invalid AppArmor profile name");
  }
}

const MAX_LENGTH = 253;
const NAME = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const IPC = /^(?:kernel\.(?:sem|shm(?:all|max|mni|_rmid_forced)?|msg(?:max|mnb|mni)?)$|fs\.mqueue\.)/;
const namePattern = new RegExp(`^${NAME}$`);

/** Sysctls of the pod's own namespaces. kubernetes 1.36: validateSysctls, ValidateHostSysctl. */
function sysctlsOf(list: FieldValue, host: Pick<PodSpec, "hostNetwork" | "hostIPC">): TextMap {
  const sysctls = new Map<string, string>();
  for (const at of list.items()) {
    checkFields(at, RULES.Sysctl);
    const name = at.field("name");
    const text = name.text();
    if (name.isEmpty) name.required();
    else if (text.length > MAX_LENGTH || !namePattern.test(text)) {
      name.invalid(`must have at most ${MAX_LENGTH} characters and match regex ^${NAME}$`);
    } else if (sysctls.has(text)) name.duplicate();
    const namespace = namespaceOf(text);
    if (host.hostNetwork && namespace === "net") name.invalid("may not be specified when 'hostNetwork' is true");
    if (host.hostIPC && namespace === "ipc") name.invalid("may not be specified when 'hostIPC' is true");
    sysctls.set(text, at.field("value").text());
  }
  return Object.fromEntries(sysctls);
}

/** A name with slashes has dots inside its parts. kubernetes 1.36: component-helpers/node/util/sysctl, GetNamespace. */
function namespaceOf(name: string): "net" | "ipc" | null {
  const dotted = /^[^.]*\//.test(name) ? name.replaceAll("/", ".") : name;
  if (dotted.startsWith("net.")) return "net";
  return IPC.test(dotted) ? "ipc" : null;
}

/** capabilities(7), Linux 6.12: all that there are. */
const KNOWN = (
  "AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER " +
  "FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE " +
  "NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE " +
  "SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM"
).split(" ");
const PREFIX = "CAP_";

/**
 * Capability names for the runtime: in any case, `ALL`, and without `CAP_`, which containerd adds to each.
 * The runtime would silently ignore an unknown name, so that is a fault.
 */
function capabilitiesOf(list: FieldValue): readonly string[] {
  const names = list.texts();
  for (const at of list.items()) if (typeof at.value === "string") checkName(at, at.value.toUpperCase());
  return names;
}

function checkName(at: FieldValue, name: string): void {
  if (name === "ALL" || KNOWN.includes(name)) return;
  const bare = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  if (bare !== name && (bare === "ALL" || KNOWN.includes(bare))) {
    at.invalid(`the runtime puts ${PREFIX} before each name: write ${bare}`);
    return;
  }
  const near = nearName(bare, KNOWN);
  at.invalid(`Linux has no such capability${near === undefined ? "" : `; \`${near}\`?`}`);
}

const MAX_ID = 2_147_483_647;
const PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"] as const;

/** kubernetes 1.36: validatePodSpecSecurityContext. */
export function podSecurityOf(at: FieldValue, host: Pick<PodSpec, "hostNetwork" | "hostIPC">): PodSecurity {
  if (!at.isAbsent) checkFields(at, RULES.PodSecurityContext);
  return {
    runAsUser: at.field("runAsUser").between(0, MAX_ID),
    runAsGroup: at.field("runAsGroup").between(0, MAX_ID),
    runAsNonRoot: at.field("runAsNonRoot").flag() ?? false,
    supplementalGroups: at
      .field("supplementalGroups")
      .items()
      .map((group) => group.between(0, MAX_ID) ?? 0),
    fsGroup: at.field("fsGroup").between(0, MAX_ID),
    seccomp: profileOf(at.field("seccompProfile"), "seccomp", RULES.SeccompProfile),
    appArmor: profileOf(at.field("appArmorProfile"), "AppArmor", RULES.AppArmorProfile),
    sysctls: sysctlsOf(at.field("sysctls"), host),
  };
}

/** kubernetes 1.36: ValidateSecurityContext. */
export function containerSecurityOf(at: FieldValue): ContainerSecurity {
  if (!at.isAbsent) checkFields(at, RULES.SecurityContext);
  const capabilities = at.field("capabilities");
  if (!capabilities.isAbsent) checkFields(capabilities, RULES.Capabilities);
  const security: ContainerSecurity = {
    runAsUser: at.field("runAsUser").between(0, MAX_ID),
    runAsGroup: at.field("runAsGroup").between(0, MAX_ID),
    runAsNonRoot: at.field("runAsNonRoot").flag(),
    privileged: at.field("privileged").flag() ?? false,
    readOnlyRootFilesystem: at.field("readOnlyRootFilesystem").flag() ?? false,
    allowPrivilegeEscalation: at.field("allowPrivilegeEscalation").flag(),
    addCapabilities: capabilitiesOf(capabilities.field("add")),
    dropCapabilities: capabilitiesOf(capabilities.field("drop")),
    seccomp: profileOf(at.field("seccompProfile"), "seccomp", RULES.SeccompProfile),
    appArmor: profileOf(at.field("appArmorProfile"), "AppArmor", RULES.AppArmorProfile),
  };
  checkEscalation(at, security);
  return security;
}

function checkEscalation(at: FieldValue, security: ContainerSecurity): void {
  if (security.allowPrivilegeEscalation !== false) return;
  if (security.privileged) at.fault("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  if (security.addCapabilities.includes("CAP_SYS_ADMIN")) {
    at.fault("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

function profileOf(at: FieldValue, what: "seccomp" | "AppArmor", rules: FieldRules): Profile | null {
  if (at.isAbsent || !checkFields(at, rules)) return null;
  const place = at.field("type");
  const ref = at.field("localhostProfile");
  if (place.isEmpty) place.required(`type is required when ${what === "seccomp" ? what : "appArmor"}Profile is set`);
  const type = place.choice(PROFILES, "");
  if (type === "") return null;
  if (type !== "Localhost") {
    if (!ref.isAbsent) ref.invalid(`can only be set when ${what} type is Localhost`);
    return { type };
  }
  const text = ref.text();
  if (ref.isEmpty) ref.required(`must be set when ${what} type is Localhost`);
  else if (what === "seccomp") checkDescending(ref);
  else if (text.trim() !== text) ref.invalid("must not be padded with whitespace");
  return { type, ref: text };
}
