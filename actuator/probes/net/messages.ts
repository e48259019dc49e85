/** A stream that its server reset, in Go's words. Go 1.26: http2.StreamError. */
export const streamFault = (code: number | undefined): string =>
  `stream error: stream ID 1; ${nameOf(code ?? 0)}; received from peer`;

const nameOf = (code: number): string => ERRORS[code] ?? `unknown error code 0x${code.toString(16)}`;

/** By their codes. RFC 9113, 7. */
export const ERRORS: readonly string[] = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

/** An error of the system as Go's net package words it: `connect: connection refused`; a text that is none stays. */
export function netWords(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const words = code === undefined ? undefined : WORDS[code];
  return words === undefined ? message : `${syscall ?? "connect"}: ${words}`;
}
/** Describes an error of an open connection. `read tcp 127.0.0.1:4000->127.0.0.1:80: read: connection reset by peer` */
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

/** Describes a connection's fault in Go's words; most of them are about TLS. `begun`: the server's first five bytes. */
export function tlsWords(error: Error, local: string, remote: string, begun = ""): string {
  const { code = "" } = error as NodeJS.ErrnoException;
  const alert = /_ALERT_(.+)$/.exec(code)?.[1];
  if (alert !== undefined) return `remote error: tls: ${ALERTS[alert] ?? alert.toLowerCase().replaceAll("_", " ")}`;
  if (NO_TLS.has(code)) {
    return begun === "HTTP/"
      ? "http: server gave HTTP response to HTTPS client"
      : "tls: first record does not look like a TLS handshake";
  }
  if (code.startsWith("ERR_SSL_")) return `tls: ${code.slice("ERR_SSL_".length).toLowerCase().replaceAll("_", " ")}`;
  // node's own words for a peer that ends before the handshake does
  if (error.message.startsWith("Client network socket disconnected")) return "EOF";
  return openWords(error, local, remote);
}

const NO_TLS: ReadonlySet<string> = new Set(["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);

/** OpenSSL's names, and Go's. Go 1.26: crypto/tls, alertText. */
const ALERTS: Readonly<Record<string, string>> = {
  BAD_RECORD_MAC: "bad record MAC",
  PROTOCOL_VERSION: "protocol version not supported",
  UNKNOWN_CA: "unknown certificate authority",
  DECODE_ERROR: "error decoding message",
  DECRYPT_ERROR: "error decrypting message",
  CERTIFICATE_REVOKED: "revoked certificate",
  CERTIFICATE_EXPIRED: "expired certificate",
  CERTIFICATE_UNKNOWN: "unknown certificate",
  INSUFFICIENT_SECURITY: "insufficient security level",
  USER_CANCELLED: "user canceled",
};
