import { err, ok, type Result } from "../../base/result.ts";
import type { ProbeHttpGet, ProbePort } from "../../model/probe-spec.ts";
import type { Behaviour, Profile } from "../../profiles/profile.ts";
import { parseWhole, quote } from "../go/strconv.ts";
import { atHost, type GoUrl, parseUrl, pathAlone } from "../go/url.ts";

/** A GET as Go's client is given it. */
export interface HttpRequest {
  readonly url: GoUrl;
  /** The value of a `Host` header; empty: the URL's host is used. */
  readonly host: string;
  readonly headers: HttpHeaders;
}
/** The sender: a probe, or a container's hook. */
export type ProbeTarget = "probe" | "lifecycle";

/**
 * The request of an `httpGet`. Error: the kubelet's message for an invalid port or host. kubelet 1.36:
 * NewRequestForHTTPGetAction.
 */
export function httpRequest(
  get: ProbeHttpGet,
  ports: readonly NamedPort[],
  podIP: string,
  askedFor: ProbeTarget,
  { version, behaviour }: Profile,
): Result<HttpRequest, string> {
  const port = containerPort(get.port, ports, behaviour);
  if (!port.ok) return port;
  const path = parseUrl(get.path);
  const host = get.host === "" ? podIP : get.host;
  const scheme = get.scheme === "HTTPS" ? "https" : "http";
  const url = atHost(path.ok ? path.value : pathAlone(get.path), scheme, hostPort(host, port.value));
  if (!url.ok) return url;
  const headers = headersOf(get.headers);
  if (!headers.has("User-Agent")) headers.set("User-Agent", [`kube-${askedFor}/${version}`]);
  if (!headers.has("Accept")) headers.set("Accept", ["*/*"]);
  else if (firstOf(headers, "Accept") === "") headers.delete("Accept");
  return ok({ url: url.value, host: firstOf(headers, "Host"), headers });
}

/** Go: net.JoinHostPort. */
export const hostPort = (host: string, port: number): string =>
  /[:%]/.test(host) ? `[${host}]:${port}` : `${host}:${port}`;

export interface NamedPort {
  readonly name: string;
  readonly containerPort: number;
}

/**
 * A port by number, by the name of a container port, or in some versions by a number written as text. Error: the
 * kubelet's message. kubelet 1.36: probe.ResolveContainerPort.
 */
export function containerPort(
  port: ProbePort,
  ports: readonly NamedPort[],
  { probePortsByName }: Behaviour,
): Result<number, string> {
  if (typeof port === "number") return inRange(port);
  const named = ports.find(({ name }) => name === port);
  if (named !== undefined) return inRange(named.containerPort);
  if (probePortsByName) return err(`port ${quote(port)} not found`);
  const number = parseWhole(port);
  return number.ok ? inRange(number.value) : number;
}
const inRange = (port: number | bigint): Result<number, string> =>
  port > 0 && port < 65_536 ? ok(Number(port)) : err(`invalid port number: ${port}`);

/** Go's canonical name of a header -> its values, in their order. */
export type HttpHeaders = ReadonlyMap<string, readonly string[]>;

/** `x-test` as `X-Test`; what is no header's name stays as it is. Go: textproto.CanonicalMIMEHeaderKey. */
export const headerKey = (name: string): string =>
  UNUSUAL.test(name) && isToken(name)
    ? name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
    : name;
/** A letter of the other case than Go writes there. */
const UNUSUAL = /(?:^|-)[a-z]|[^-][A-Z]/;
export const isToken = (name: string): boolean => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);

/** Go: http.Header.Add of each. */
function headersOf(list: readonly { readonly name: string; readonly value: string }[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const { name, value } of list) {
    const key = headerKey(name);
    const known = headers.get(key);
    if (known === undefined) headers.set(key, [value]);
    else known.push(value);
  }
  return headers;
}
/** The first value; empty: there is none. Go: http.Header.Get, of a canonical name. */
export const firstOf = (headers: HttpHeaders, key: string): string => headers.get(key)?.[0] ?? "";
