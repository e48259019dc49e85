import { err, ok, type Result } from "../../base/result.ts";
import { quoteBytes } from "./strconv.ts";

/**
 * Parts of a URL as Go escapes them. Strings here are bytes (each character is one byte of the UTF-8 text), so that
 * escaped and unescaped bytes can be mixed. Go 1.26: net/url.
 */
type UrlPart = keyof typeof PLAIN;

const ALWAYS = "A-Za-z0-9\\-_.~";
/** The characters that stay as they are in each part. */
const PLAIN = {
  path: byteSet("$&+,/:;=@"),
  fragment: byteSet("$&+,/:;=?@!()*"),
  user: byteSet("$&+,;="),
  host: byteSet("!\"$&'()*+,:;<=>\\[\\]"),
  /** Characters allowed in a part that the user has already escaped. */
  given: byteSet("$&+,/:;=@!'()*%\\[\\]"),
  givenFragment: byteSet("$&+,/:;=?@!'()*%\\[\\]"),
} as const;
function byteSet(more: string): RegExp {
  return new RegExp(`^[${ALWAYS}${more}]*$`);
}

/** The UTF-8 bytes of a text, one character per byte. */
function bytesOf(text: string): string {
  if (isAscii(text)) return text;
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return bytes;
}
export const textOf = (bytes: string): string =>
  isAscii(bytes) ? bytes : new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
/** A loop, since most texts are too short for a regular expression to pay. */
function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

const isPlain = (bytes: string, part: UrlPart): boolean => PLAIN[part].test(bytes);

/** Go: url.escape. */
function escapeBytes(bytes: string, part: UrlPart): string {
  if (isPlain(bytes, part)) return bytes;
  return Array.from(bytes, (c) => (isPlain(c, part) ? c : `%${hex(c)}`)).join("");
}
const hex = (c: string): string => c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");

/** The first invalid escape, at most three characters; undefined: all are valid. */
function wrongEscape(bytes: string): string | undefined {
  if (!bytes.includes("%")) return undefined;
  const at = bytes.search(/%(?![0-9A-Fa-f]{2})/);
  return at < 0 ? undefined : bytes.slice(at, at + 3);
}
/** Decodes the escapes of a text that has no wrong ones. */
const unescapeBytes = (bytes: string): string =>
  bytes.includes("%")
    ? bytes.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    : bytes;

/** Escapes a path as Go does, unless it is already validly escaped in another way. Go: URL.EscapedPath. */
function escapedAnew(bytes: string, part: "path" | "fragment"): string {
  const given = part === "path" ? "given" : "givenFragment";
  return isPlain(bytes, given) ? bytes : escapeBytes(unescapeBytes(bytes), part);
}

/** Checks and unescapes a host with or without a port. Error: Go's message. Go 1.26: net/url, parseHost. */
function parseUrlHost(scheme: string, host: string): Result<string, string> {
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
const escapeFault = (part: string): string => `invalid URL escape ${quoteBytes(part)}`;

/** Unescapes a host, in which only bytes beyond ASCII may be escaped. */
function unescapeHost(host: string): Result<string, string> {
  if (isPlain(host, "host")) return ok(host);
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

/** A URL as Go keeps it, except that path and fragment stay escaped; strings are bytes. Go 1.26: net/url, URL. */
export interface GoUrl {
  readonly scheme: string;
  /** The text after the scheme if it does not begin with a slash; else empty. */
  readonly opaque: string;
  readonly user: { readonly name: string; readonly password: string | null } | null;
  /** The host with its port, if any; an IPv6 address is in brackets. */
  readonly host: string;
  readonly path: string;
  /** True: the URL ends in a `?` with an empty query. */
  readonly forceQuery: boolean;
  readonly query: string;
  readonly fragment: string;
  /** True: a slash follows the scheme, but there is no host. */
  readonly omitHost: boolean;
}
type MutableUrl = { -readonly [K in keyof GoUrl]: GoUrl[K] };
const NO_URL: GoUrl = {
  scheme: "",
  opaque: "",
  user: null,
  host: "",
  path: "",
  forceQuery: false,
  query: "",
  fragment: "",
  omitHost: false,
};
/** A URL that is only a path, escaped where necessary. */
export const pathAlone = (path: string): GoUrl => ({ ...NO_URL, path: escapeBytes(bytesOf(path), "path") });

/** Parses a URL. Error: Go's message, such as `parse "%zz": invalid URL escape "%zz"`. Go 1.26: url.Parse. */
export const parseUrl = (text: string): Result<GoUrl, string> => parseUrlBytes(bytesOf(text));
/** Parses a URL given as bytes, which need not be valid UTF-8. */
export function parseUrlBytes(all: string): Result<GoUrl, string> {
  const [text, fragment] = cut(all, "#");
  const url: MutableUrl = { ...NO_URL };
  const fault = readUrl(text, url);
  if (fault !== undefined) return err(`parse ${quoteBytes(text)}: ${fault}`);
  const wrong = wrongEscape(fragment);
  if (wrong !== undefined) return err(`parse ${quoteBytes(all)}: ${escapeFault(wrong)}`);
  if (fragment !== "") url.fragment = escapedAnew(fragment, "fragment");
  return ok(url);
}

/** Reads all but the fragment into `url`; returns Go's message if the text is no URL. */
function readUrl(text: string, url: MutableUrl): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return "net/url: invalid control character in URL";
  if (text === "*") {
    url.path = "*";
    return undefined;
  }
  if (text.startsWith(":")) return "missing protocol scheme";
  const scheme = (/^([A-Za-z][-A-Za-z0-9+.]*):/.exec(text)?.[1] ?? "").toLowerCase();
  const behind = scheme === "" ? text : text.slice(scheme.length + 1);
  const [rest, query] = cut(behind, "?");
  url.scheme = scheme;
  url.forceQuery = query === "" && rest.length === behind.length - 1;
  url.query = query;
  if (!rest.startsWith("/")) {
    if (scheme !== "") {
      url.opaque = rest;
      return undefined;
    }
    if (cut(rest, "/")[0].includes(":")) return "first path segment in URL cannot contain colon";
  }
  if (!rest.startsWith("//") || (scheme === "" && rest.startsWith("///"))) {
    url.omitHost = scheme !== "" && rest.startsWith("/");
    return readPath(rest, url);
  }
  const slash = rest.indexOf("/", 2);
  const fault = readAuthority(slash < 0 ? rest.slice(2) : rest.slice(2, slash), url);
  return fault ?? readPath(slash < 0 ? "" : rest.slice(slash), url);
}

function readPath(path: string, url: MutableUrl): string | undefined {
  const wrong = wrongEscape(path);
  if (wrong !== undefined) return escapeFault(wrong);
  url.path = escapedAnew(path, "path");
  return undefined;
}

function readAuthority(authority: string, url: MutableUrl): string | undefined {
  const at = authority.lastIndexOf("@");
  const host = parseUrlHost(url.scheme, authority.slice(at + 1));
  if (!host.ok) return host.error;
  url.host = host.value;
  if (at < 0) return undefined;
  const info = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(info)) return "net/url: invalid userinfo";
  const [name, password] = cut(info, ":");
  const wrong = wrongEscape(name) ?? wrongEscape(password);
  if (wrong !== undefined) return escapeFault(wrong);
  url.user = { name: unescapeBytes(name), password: info.includes(":") ? unescapeBytes(password) : null };
  return undefined;
}

/** Go 1.26: URL.String. */
export const urlText = (url: GoUrl): string => textOf(urlBytes(url));
const urlBytes = (url: GoUrl): string =>
  `${startOf(url)}${queryOf(url)}${url.fragment === "" ? "" : `#${url.fragment}`}`;

/** Sets scheme and host (with its port) of a URL, and parses the text of the result. Error: Go's message. */
export function atHost(url: GoUrl, scheme: "http" | "https", host: string): Result<GoUrl, string> {
  const whole = { ...url, scheme, host: bytesOf(host) };
  // parsing would change nothing
  const isPathAlone = url.scheme === "" && url.host === "" && url.user === null && url.path.startsWith("/");
  return isPathAlone && /^[A-Za-z0-9.-]+:\d+$/.test(host) ? ok(whole) : parseUrlBytes(urlBytes(whole));
}
function startOf(url: GoUrl): string {
  const { scheme, opaque, user, host, path } = url;
  const start = scheme === "" ? "" : `${scheme}:`;
  if (opaque !== "") return start + opaque;
  const isHostless = url.omitHost && host === "" && user === null;
  const hasAuthority = !isHostless && (host !== "" || user !== null || (scheme !== "" && path !== ""));
  const authority = hasAuthority ? `//${user === null ? "" : `${userText(user)}@`}${escapeBytes(host, "host")}` : "";
  const slash = path !== "" && !path.startsWith("/") && host !== "" ? "/" : "";
  const dot = start + authority + slash === "" && cut(path, "/")[0].includes(":") ? "./" : "";
  return start + authority + slash + dot + path;
}
const userText = ({ name, password }: NonNullable<GoUrl["user"]>): string =>
  escapeBytes(name, "user") + (password === null ? "" : `:${escapeBytes(password, "user")}`);
const queryOf = ({ forceQuery, query }: GoUrl): string => (forceQuery || query !== "" ? `?${query}` : "");

/** Returns the target in a request's first line. Go 1.26: URL.RequestURI. */
export function requestUri(url: GoUrl): string {
  const { scheme, opaque, path } = url;
  const target = opaque === "" ? path || "/" : opaque.startsWith("//") ? `${scheme}:${opaque}` : opaque;
  return textOf(target + queryOf(url));
}

/** Splits a host such as `[::1]:80` or `a:80`. Go 1.26: URL.Hostname, URL.Port. */
export function hostAndPort({ host }: GoUrl): { readonly hostname: string; readonly port: string } {
  const [, name = host, port = ""] = /^(.*):(\d*)$/s.exec(host) ?? [];
  const bare = name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
  return { hostname: textOf(bare), port };
}

/** The text before and after the first mark; without a mark, the whole text and an empty one. Go: strings.Cut. */
function cut(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** Resolves a reference against a base URL. Go 1.26: URL.ResolveReference. */
export function resolveReference(base: GoUrl, reference: GoUrl): GoUrl {
  const scheme = reference.scheme === "" ? base.scheme : reference.scheme;
  if (reference.scheme !== "" || reference.host !== "" || reference.user !== null) {
    return { ...reference, scheme, path: resolvePath(reference.path, "") };
  }
  if (reference.opaque !== "") return { ...reference, scheme, user: null, host: "", path: "" };
  const isSamePage = reference.path === "" && !reference.forceQuery && reference.query === "";
  const url = {
    ...reference,
    scheme,
    query: isSamePage ? base.query : reference.query,
    fragment: isSamePage && reference.fragment === "" ? base.fragment : reference.fragment,
  };
  if (reference.path === "" && base.opaque !== "") {
    return { ...url, opaque: base.opaque, user: null, host: "", path: "" };
  }
  return { ...url, host: base.host, user: base.user, path: resolvePath(base.path, reference.path) };
}

/** Resolves a path and removes its dot segments. RFC 3986, 5.2.4; Go 1.26: net/url, resolvePath. */
function resolvePath(base: string, reference: string): string {
  const full = fullPath(base, reference);
  if (full === "") return "";
  const elements = full.split("/");
  // a list, since a string would be copied at every step back
  const kept: string[] = [];
  for (const element of elements) {
    if (element === "..") kept.pop();
    else if (element !== ".") kept.push(element);
    else if (kept.length === 0) kept.push("");
  }
  const last = elements.at(-1);
  const path = `/${kept.join("/")}${last === "." || last === ".." ? "/" : ""}`;
  // the path began with one slash
  return path.length > 1 && path[1] === "/" ? path.slice(1) : path;
}
function fullPath(base: string, reference: string): string {
  if (reference === "") return base;
  return reference.startsWith("/") ? reference : base.slice(0, base.lastIndexOf("/") + 1) + reference;
}
