export type SysctlNamespace = "IPC" | "Net";

const IPC = [
  "kernel.sem",
  "kernel.shmall",
  "kernel.shmmax",
  "kernel.shmmni",
  "kernel.shm_rmid_forced",
  "kernel.shm",
  "kernel.msgmax",
  "kernel.msgmnb",
  "kernel.msgmni",
  "kernel.msg",
];

/** The kernel namespace of a sysctl or of the beginning of one; undefined: not known to have one. */
export function namespaceOf(name: string): SysctlNamespace | undefined {
  if (IPC.includes(name) || name.startsWith("fs.mqueue.")) return "IPC";
  return name.startsWith("net.") ? "Net" : undefined;
}

/** `net/ipv4/conf/eth0.1/x` and `net.ipv4.conf.eth0/1.x` are one name: the first separator decides. kubernetes 1.36: NormalizeName. */
export function normalized(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === "/" ? name.replace(/[./]/g, (c) => (c === "/" ? "." : "/")) : name;
}

/** Safe ones, and the first kernel that has them in a namespace (null: all). kubelet 1.36: safeSysctls. */
export const SAFE_SYSCTLS: ReadonlyMap<string, readonly [number, number] | null> = new Map([
  ["kernel.shm_rmid_forced", null],
  ["net.ipv4.ip_local_port_range", null],
  ["net.ipv4.tcp_syncookies", null],
  ["net.ipv4.ping_group_range", null],
  ["net.ipv4.ip_unprivileged_port_start", null],
  ["net.ipv4.ip_local_reserved_ports", [3, 16]],
  ["net.ipv4.tcp_keepalive_time", [4, 5]],
  ["net.ipv4.tcp_fin_timeout", [4, 6]],
  ["net.ipv4.tcp_keepalive_intvl", [4, 5]],
  ["net.ipv4.tcp_keepalive_probes", [4, 5]],
  ["net.ipv4.tcp_rmem", [4, 15]],
  ["net.ipv4.tcp_wmem", [4, 15]],
]);

/** Whether a kernel (`6.18.44-lts`) is at least the given one; a text that is no version is older than all. */
export function kernelAtLeast(kernel: string, [major, minor]: readonly [number, number]): boolean {
  const [, a, b] = /^\s*v?(0|[1-9]\d*)\.(\d+)/.exec(kernel) ?? [];
  return a !== undefined && (Number(a) > major || (Number(a) === major && Number(b) >= minor));
}
