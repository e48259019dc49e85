import type { PodSpec, TextMap } from "../pod.ts";
import type { At } from "./at.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const MOST_LENGTH = 253;
const NAME = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const IPC = /^(?:kernel\.(?:sem|shm(?:all|max|mni|_rmid_forced)?|msg(?:max|mnb|mni)?)$|fs\.mqueue\.)/;
const namePattern = new RegExp(`^${NAME}$`);

/** Kernel settings of the pod's own namespaces. kubernetes 1.36: validateSysctls, ValidateHostSysctl. */
export function sysctlsOf(list: At, host: Pick<PodSpec, "hostNetwork" | "hostIPC">): TextMap {
  const sysctls = new Map<string, string>();
  for (const at of list.items()) {
    checkFields(at, RULES.Sysctl);
    const name = at.field("name");
    const text = name.text();
    if (name.isEmpty) name.required();
    else if (text.length > MOST_LENGTH || !namePattern.test(text)) {
      name.invalid(`must have at most ${MOST_LENGTH} characters and match regex ^${NAME}$`);
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
