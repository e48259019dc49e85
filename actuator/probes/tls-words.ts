import { openWords } from "./net-words.ts";

/** What went wrong with a connection, in Go's words; most of it is about TLS. `begun`: the server's first five bytes. */
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
