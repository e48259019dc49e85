import type { ProbeHttpGet } from "../../model/probe.ts";
import { ok, type Result } from "../../model/result.ts";
import { type GoUrl, parseUrl, pathAlone, urlText } from "../go/url.ts";
import { bytesOf } from "../go/url-text.ts";
import { containerPort, type NamedPort } from "./container-port.ts";
import { firstOf, type HttpHeaders, headersOf } from "./http-headers.ts";

/** A GET as Go's client is given it. */
export interface HttpRequest {
  readonly url: GoUrl;
  /** Of a `Host` header; empty: the URL's. */
  readonly host: string;
  readonly headers: HttpHeaders;
}
/** Who asks: a probe, or a container's hook. */
export type AskedFor = "probe" | "lifecycle";

/**
 * The request of an `httpGet`. Error: the kubelet's words for a port or a host that is none.
 * kubelet 1.36: NewRequestForHTTPGetAction.
 */
export function httpRequest(
  get: ProbeHttpGet,
  ports: readonly NamedPort[],
  podIP: string,
  askedFor: AskedFor,
): Result<HttpRequest, string> {
  const port = containerPort(get.port, ports);
  if (!port.ok) return port;
  const path = parseUrl(get.path);
  const host = get.host === "" ? podIP : get.host;
  const formatted: GoUrl = {
    ...(path.ok ? path.value : pathAlone(get.path)),
    scheme: get.scheme.toLowerCase(),
    host: bytesOf(hostPort(host, port.value)),
  };
  const url = parseUrl(urlText(formatted));
  if (!url.ok) return url;
  const headers = headersOf(get.headers);
  if (!headers.has("User-Agent")) headers.set("User-Agent", [`kube-${askedFor}/1.36`]);
  if (!headers.has("Accept")) headers.set("Accept", ["*/*"]);
  else if (firstOf(headers, "Accept") === "") headers.delete("Accept");
  return ok({ url: url.value, host: firstOf(headers, "Host"), headers });
}

/** Go: net.JoinHostPort. */
export const hostPort = (host: string, port: number): string =>
  /[:%]/.test(host) ? `[${host}]:${port}` : `${host}:${port}`;
