import { err, ok, type Result } from "../../model/result.ts";
import { quoteBytes } from "./quote-bytes.ts";
import { escapeFault, parseUrlHost } from "./url-host.ts";
import { bytesOf, escapeBytes, escapedAnew, textOf, unescapeBytes, wrongEscape } from "./url-text.ts";

/** A URL as Go keeps it, but path and fragment escaped; texts of bytes. Go 1.26: net/url, URL. */
export interface GoUrl {
  readonly scheme: string;
  /** What follows the scheme where no slash does; empty: none. */
  readonly opaque: string;
  readonly user: { readonly name: string; readonly password: string | null } | null;
  /** With the port, if there is one; an IPv6 address in brackets. */
  readonly host: string;
  readonly path: string;
  /** A `?` with nothing behind it. */
  readonly forceQuery: boolean;
  readonly query: string;
  readonly fragment: string;
  /** A slash follows the scheme, but no host. */
  readonly omitHost: boolean;
}
export const NO_URL: GoUrl = {
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
/** A path that is none, as Go keeps it: every byte that must be is escaped. */
export const pathAlone = (path: string): GoUrl => ({ ...NO_URL, path: escapeBytes(bytesOf(path), "path") });

/** Error: Go's words, `parse "%zz": invalid URL escape "%zz"`. Go 1.26: url.Parse. */
export const parseUrl = (text: string): Result<GoUrl, string> => parseUrlBytes(bytesOf(text));
/** The same of a text of bytes, which need not be UTF-8. */
export function parseUrlBytes(all: string): Result<GoUrl, string> {
  const [url, fragment] = cut(all, "#");
  const parsed = parse(url);
  if (!parsed.ok) return err(`parse ${quoteBytes(url)}: ${parsed.error}`);
  const wrong = wrongEscape(fragment);
  if (wrong !== undefined) return err(`parse ${quoteBytes(all)}: ${escapeFault(wrong)}`);
  return ok({ ...parsed.value, fragment: escapedAnew(fragment, "fragment") });
}

function parse(text: string): Result<GoUrl, string> {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return err("net/url: invalid control character in URL");
  if (text === "*") return ok({ ...NO_URL, path: "*" });
  if (text.startsWith(":")) return err("missing protocol scheme");
  const scheme = (/^([A-Za-z][-A-Za-z0-9+.]*):/.exec(text)?.[1] ?? "").toLowerCase();
  const behind = scheme === "" ? text : text.slice(scheme.length + 1);
  const forceQuery = behind.indexOf("?") === behind.length - 1 && behind !== "";
  const [rest, query] = cut(behind, "?");
  const url = { ...NO_URL, scheme, forceQuery, query };
  if (!rest.startsWith("/")) {
    if (scheme !== "") return ok({ ...url, opaque: rest });
    if (cut(rest, "/")[0].includes(":")) return err("first path segment in URL cannot contain colon");
  }
  if (!rest.startsWith("//") || (scheme === "" && rest.startsWith("///"))) {
    return withPath({ ...url, omitHost: scheme !== "" && rest.startsWith("/") }, rest);
  }
  const slash = rest.indexOf("/", 2);
  const authority = parseAuthority(scheme, slash < 0 ? rest.slice(2) : rest.slice(2, slash));
  return authority.ok ? withPath({ ...url, ...authority.value }, slash < 0 ? "" : rest.slice(slash)) : authority;
}

function withPath(url: GoUrl, path: string): Result<GoUrl, string> {
  const wrong = wrongEscape(path);
  return wrong === undefined ? ok({ ...url, path: escapedAnew(path, "path") }) : err(escapeFault(wrong));
}

function parseAuthority(scheme: string, authority: string): Result<Pick<GoUrl, "user" | "host">, string> {
  const at = authority.lastIndexOf("@");
  const host = parseUrlHost(scheme, authority.slice(at + 1));
  if (!host.ok) return host;
  if (at < 0) return ok({ user: null, host: host.value });
  const info = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(info)) return err("net/url: invalid userinfo");
  const [name, password] = cut(info, ":");
  const wrong = wrongEscape(name) ?? wrongEscape(password);
  if (wrong !== undefined) return err(escapeFault(wrong));
  const user = { name: unescapeBytes(name), password: info.includes(":") ? unescapeBytes(password) : null };
  return ok({ user, host: host.value });
}

/** Go 1.26: URL.String. */
export function urlText(url: GoUrl): string {
  return textOf(`${startOf(url)}${queryOf(url)}${url.fragment === "" ? "" : `#${url.fragment}`}`);
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

/** What a request's first line has. Go 1.26: URL.RequestURI. */
export function requestUri(url: GoUrl): string {
  const { scheme, opaque, path } = url;
  const target = opaque === "" ? path || "/" : opaque.startsWith("//") ? `${scheme}:${opaque}` : opaque;
  return textOf(target + queryOf(url));
}

/** Of `[::1]:80` and `a:80`. Go 1.26: URL.Hostname, URL.Port. */
export function hostAndPort({ host }: GoUrl): { readonly hostname: string; readonly port: string } {
  const [, name = host, port = ""] = /^(.*):(\d*)$/s.exec(host) ?? [];
  const bare = name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
  return { hostname: textOf(bare), port };
}

/** The text before the first mark and behind it; without one, all and nothing. Go: strings.Cut. */
function cut(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
