import { err, ok, type Result } from "../../model/result.ts";
import { quoteBytes } from "./quote-bytes.ts";
import { isPlain, unescapeBytes, wrongEscape } from "./url-text.ts";

/** A host with or without a port, checked and unescaped. Error: Go's words. Go 1.26: net/url, parseHost. */
export function parseUrlHost(scheme: string, host: string): Result<string, string> {
  const open = host.lastIndexOf("[");
  if (open > 0) return err("invalid IP-literal");
  if (open === 0) return bracketed(host);
  const first = host.indexOf(":");
  if (first >= 0) {
    const colon = scheme === "http" || scheme === "https" ? first : host.lastIndexOf(":");
    const port = host.slice(colon);
    if (!isPort(port)) return err(wrongPort(port));
  }
  return unescapeHost(host);
}

function bracketed(host: string): Result<string, string> {
  const close = host.lastIndexOf("]");
  if (close < 0) return err("missing ']' in host");
  const port = host.slice(close + 1);
  if (!isPort(port)) return err(wrongPort(port));
  const literal = host.slice(1, close);
  const zoneAt = literal.indexOf("%25");
  const address = unescapeHost(zoneAt < 0 ? literal : literal.slice(0, zoneAt));
  if (!address.ok) return address;
  const zone = zoneAt < 0 ? "" : literal.slice(zoneAt);
  const wrong = wrongEscape(zone);
  if (wrong !== undefined) return err(escapeFault(wrong));
  if (IPV4.test(address.value)) return err("invalid IP-literal");
  if (!isIPv6(address.value)) return err(`invalid host: ParseAddr(${quoteBytes(address.value)}): unable to parse IP`);
  return ok(`[${address.value}${unescapeBytes(zone)}]${port}`);
}
const isPort = (text: string): boolean => text === "" || /^:\d*$/.test(text);
const wrongPort = (port: string): string => `invalid port ${quoteBytes(port)} after host`;
export const escapeFault = (part: string): string => `invalid URL escape ${quoteBytes(part)}`;

/** Only bytes beyond ASCII may be escaped in a host. */
function unescapeHost(host: string): Result<string, string> {
  for (let i = 0; i < host.length; i++) {
    const c = host[i] as string;
    if (c === "%") {
      const part = host.slice(i, i + 3);
      if (!/^%([89A-Fa-f][0-9A-Fa-f]|25)$/.test(part)) return err(escapeFault(part));
      i += 2;
    } else if (c < "\x80" && !isPlain(c, "host")) return err(`invalid character ${quoteBytes(c)} in host name`);
  }
  return ok(unescapeBytes(host));
}

const IPV4 = /^(\d{1,3})(\.\d{1,3}){3}$/;
const isIPv4 = (text: string): boolean =>
  IPV4.test(text) && text.split(".").every((n) => String(Number(n)) === n && Number(n) < 256);
/** Go: netip.ParseAddr, without a zone. */
export function isIPv6(text: string): boolean {
  const halves = text.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  const last = groups.at(-1) ?? "";
  const endsIPv4 = last.includes(".");
  if (endsIPv4 && (!isIPv4(last) || text.endsWith("::"))) return false;
  const hextets = endsIPv4 ? groups.slice(0, -1) : groups;
  if (!hextets.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) return false;
  const count = hextets.length + (endsIPv4 ? 2 : 0);
  return halves.length === 2 ? count < 8 : count === 8;
}
