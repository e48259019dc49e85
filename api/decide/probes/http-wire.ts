import { err, ok, type Result } from "../../base/result.ts";
import { quote, quoteBytes } from "../go/strconv.ts";
import { type GoUrl, hostAndPort, parseUrlBytes, requestUri, resolveReference, textOf, urlText } from "../go/url.ts";
import { firstOf, type HttpHeaders, type HttpRequest, isToken } from "./http-request.ts";

const FOLLOWED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Go 1.26: redirectBehavior; without a location an answer is the last one. */
export const isRedirect = (status: number, location: string): boolean => FOLLOWED.has(status) && location !== "";

/** The longest location that is kept to be followed. */
const MAX_LOCATION_BYTES = 32 * 1024;

/**
 * The request that a redirect leads to. Null: it leads to another host, which a probe does not follow. Error: Go's
 * message for an invalid location. `location`: a string of bytes. kubelet 1.36: RedirectChecker; Go 1.26: Client.do.
 */
export function redirected(
  first: HttpRequest,
  last: HttpRequest,
  location: string,
): Result<HttpRequest | null, string> {
  if (location.length > MAX_LOCATION_BYTES) {
    return err(`the Location header is longer than the ${MAX_LOCATION_BYTES} bytes that are followed`);
  }
  const reference = parseUrlBytes(location);
  if (!reference.ok) return err(`failed to parse Location header ${quoteBytes(location)}: ${reference.error}`);
  const url = resolveReference(last.url, reference.value);
  if (hostAndPort(url).hostname !== hostAndPort(first.url).hostname) return ok(null);
  const keepsHost = last.host !== "" && last.host !== last.url.host && reference.value.scheme === "";
  return ok({ url, host: keepsHost ? last.host : "", headers: withReferer(first, last.url, url) });
}

function withReferer({ headers }: HttpRequest, from: GoUrl, to: GoUrl): HttpRequest["headers"] {
  if ((from.scheme === "https" && to.scheme === "http") || firstOf(headers, "Referer") !== "") return headers;
  return new Map(headers).set("Referer", [refererOf(from)]);
}

/** An HTTP request as it is sent, whatever the version of HTTP. */
export interface WireRequest {
  readonly target: string;
  readonly host: string;
  /** The headers sorted by name; without `Host`, and with the credentials of the URL. */
  readonly headers: readonly (readonly [string, string])[];
}

/**
 * Builds the request as Go sends it. Error: Go's message for a request that its client refuses. Go 1.26:
 * http.Transport.roundTrip, Request.write.
 */
export function wireRequest({ url, host, headers }: HttpRequest): Result<WireRequest, string> {
  for (const [name, values] of headers) {
    if (!isToken(name)) return err(`net/http: invalid header field name ${quote(name)}`);
    if (!values.every(isValue)) return err(`net/http: invalid header field value for ${quote(name)}`);
  }
  if (url.scheme !== "http" && url.scheme !== "https") {
    return err(`unsupported protocol scheme ${quote(textOf(url.scheme))}`);
  }
  if (url.host === "") return err("http: no Host in request URL");
  const target = requestUri(url);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(target)) return err("net/http: can't write control character in Request.URL");
  const asked = host === "" ? textOf(url.host) : host;
  // a host that is none is sent empty, and never cut: that is how requests are smuggled
  const sent = /^[A-Za-z0-9!$%&'()*+,\-.:;=[\]_~]*$/.test(asked) ? asked.replace(/^(\[[^%\]]*)%[^\]]*\]/, "$1]") : "";
  return ok({ target, host: sent, headers: sentHeaders(withCredentials(headers, url)) });
}
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no header may have
const isValue = (value: string): boolean => !/[\x00-\x08\x0a-\x1f\x7f]/.test(value);

/** The first lines of HTTP/1.1, and the empty one behind them. The connection is for this one request. */
export function requestText({ target, host, headers }: WireRequest): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const hasConnectionHeader = wantsClose(headers) || switchesProtocol(headers);
  return `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${lines}${hasConnectionHeader ? "" : "Connection: close\r\n"}\r\n`;
}
/** Go 1.26: Request.wantsClose, which looks at the first value alone. */
const wantsClose = (headers: WireRequest["headers"]): boolean =>
  /(^|[ ,\t])close($|[ ,\t])/i.test(headers.find(([name]) => name === "Connection")?.[1] ?? "");
/** Go 1.26: isProtocolSwitchHeader. */
const switchesProtocol = (headers: WireRequest["headers"]): boolean =>
  (headers.find(([name]) => name === "Upgrade")?.[1] ?? "") !== "" &&
  headers.some(([name, value]) => name === "Connection" && /(^|,)[ \t]*upgrade[ \t]*($|,)/i.test(value));

const NEVER_SENT: ReadonlySet<string> = new Set(["Host", "Content-Length", "Transfer-Encoding", "Trailer"]);
function sentHeaders(headers: HttpHeaders): readonly (readonly [string, string])[] {
  const agent = firstOf(headers, "User-Agent");
  const rest = [...headers.keys()].filter((name) => name !== "User-Agent" && !NEVER_SENT.has(name)).sort();
  const lines = rest.flatMap((name) => (headers.get(name) ?? []).map((value) => [name, value.trim()] as const));
  return agent === "" ? lines : [["User-Agent", agent.trim()], ...lines];
}

function withCredentials(headers: HttpHeaders, { user }: GoUrl): HttpHeaders {
  if (user === null || firstOf(headers, "Authorization") !== "") return headers;
  return new Map(headers).set("Authorization", [`Basic ${btoa(`${user.name}:${user.password ?? ""}`)}`]);
}

/** The URL as errors show it: without the password. Go 1.26: http.stripPassword. */
export const shownUrl = (url: GoUrl): string =>
  url.user?.password == null
    ? urlText(url)
    : urlText({ ...url, user: { name: url.user.name, password: "***" } }).replace("%2A%2A%2A@", "***@");

/** The URL as `Referer`: without anything of its user. */
const refererOf = (url: GoUrl): string => urlText({ ...url, user: null });
