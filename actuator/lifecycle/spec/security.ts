import type { ContainerSecurity, PodSecurity, PodSpec, Profile } from "../pod.ts";
import type { At } from "./at.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { checkDescending } from "./path.ts";
import { checkFields, type FieldRules } from "./rule.ts";
import { RULES } from "./rules.ts";
import { sysctlsOf } from "./sysctls.ts";

const MOST_ID = 2_147_483_647;
const PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"] as const;

/** kubernetes 1.36: validatePodSpecSecurityContext. */
export function podSecurityOf(at: At, host: Pick<PodSpec, "hostNetwork" | "hostIPC">): PodSecurity {
  if (!at.isAbsent) checkFields(at, RULES.PodSecurityContext);
  return {
    runAsUser: at.field("runAsUser").between(0, MOST_ID),
    runAsGroup: at.field("runAsGroup").between(0, MOST_ID),
    runAsNonRoot: at.field("runAsNonRoot").flag() ?? false,
    supplementalGroups: at
      .field("supplementalGroups")
      .items()
      .map((group) => group.between(0, MOST_ID) ?? 0),
    fsGroup: at.field("fsGroup").between(0, MOST_ID),
    seccomp: profileOf(at.field("seccompProfile"), "seccomp", RULES.SeccompProfile),
    appArmor: profileOf(at.field("appArmorProfile"), "AppArmor", RULES.AppArmorProfile),
    sysctls: sysctlsOf(at.field("sysctls"), host),
  };
}

/** kubernetes 1.36: ValidateSecurityContext. */
export function containerSecurityOf(at: At): ContainerSecurity {
  if (!at.isAbsent) checkFields(at, RULES.SecurityContext);
  const capabilities = at.field("capabilities");
  if (!capabilities.isAbsent) checkFields(capabilities, RULES.Capabilities);
  const security: ContainerSecurity = {
    runAsUser: at.field("runAsUser").between(0, MOST_ID),
    runAsGroup: at.field("runAsGroup").between(0, MOST_ID),
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

function checkEscalation(at: At, security: ContainerSecurity): void {
  if (security.allowPrivilegeEscalation !== false) return;
  if (security.privileged) at.fault("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  if (security.addCapabilities.includes("CAP_SYS_ADMIN")) {
    at.fault("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

function profileOf(at: At, what: "seccomp" | "AppArmor", rules: FieldRules): Profile | null {
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
