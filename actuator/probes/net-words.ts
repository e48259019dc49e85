/** An error of the system as Go's net package words it: `connect: connection refused`; a text that is none stays. */
export function netWords(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const words = code === undefined ? undefined : WORDS[code];
  return words === undefined ? message : `${syscall ?? "connect"}: ${words}`;
}
/** Of a connection that is open. `read tcp 127.0.0.1:4000->127.0.0.1:80: read: connection reset by peer` */
export function openWords(error: unknown, local: string, remote: string): string {
  const { syscall } = error as NodeJS.ErrnoException;
  const verb = syscall === "write" ? "write" : "read";
  return `${verb} tcp ${local}->${remote}: ${netWords(error)}`;
}
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  ECONNABORTED: "software caused connection abort",
  EHOSTUNREACH: "no route to host",
  EHOSTDOWN: "host is down",
  ENETUNREACH: "network is unreachable",
  ENETDOWN: "network is down",
  ETIMEDOUT: "connection timed out",
  EADDRNOTAVAIL: "cannot assign requested address",
  EAFNOSUPPORT: "address family not supported by protocol",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  ENOBUFS: "no buffer space available",
  EPIPE: "broken pipe",
};
