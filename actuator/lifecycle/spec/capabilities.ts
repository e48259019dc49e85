import type { At } from "./at.ts";
import { nearName } from "./near.ts";

/** capabilities(7), Linux 6.12: all that there are. */
const KNOWN = (
  "AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER " +
  "FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE " +
  "NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE " +
  "SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM"
).split(" ");
const PREFIX = "CAP_";

/**
 * Names of capabilities as the runtime takes them: in any case, `ALL`, and without `CAP_`, which containerd puts before each.
 * What it does not know it would leave out without a word, so it is a fault.
 */
export function capabilitiesOf(list: At): readonly string[] {
  const names = list.texts();
  for (const at of list.items()) if (typeof at.value === "string") checkName(at, at.value.toUpperCase());
  return names;
}

function checkName(at: At, name: string): void {
  if (name === "ALL" || KNOWN.includes(name)) return;
  const bare = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  if (bare !== name && (bare === "ALL" || KNOWN.includes(bare))) {
    at.invalid(`the runtime puts ${PREFIX} before each name: write ${bare}`);
    return;
  }
  const near = nearName(bare, KNOWN);
  at.invalid(`Linux has no such capability${near === undefined ? "" : `; \`${near}\`?`}`);
}
