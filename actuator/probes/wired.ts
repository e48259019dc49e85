import { hostAndPort } from "../../api/decide/go/url.ts";
import type { HttpRequest } from "../../api/decide/probes/http-request.ts";
import { requestText, type WireRequest, wireRequest } from "../../api/decide/probes/http-wire.ts";
import { ok, type Result } from "../../api/model/result.ts";

/** A request as it is sent, and where to. */
export type Wired = PlainWired | SecureWired;
export interface PlainWired {
  readonly isSecure: false;
  readonly host: string;
  readonly port: number;
  /** Of HTTP/1.1. */
  readonly text: string;
}
export interface SecureWired extends Omit<PlainWired, "isSecure"> {
  readonly isSecure: true;
  /** For HTTP/2. */
  readonly wire: WireRequest;
}
const known = new WeakMap<HttpRequest, Result<Wired, string>>();

/** The same for the same request, which a probe sends again and again. Error: Go's words for one that is not sent. */
export function wired(request: HttpRequest): Result<Wired, string> {
  const before = known.get(request);
  if (before !== undefined) return before;
  const made = wiredAnew(request);
  known.set(request, made);
  return made;
}

function wiredAnew(request: HttpRequest): Result<Wired, string> {
  const wire = wireRequest(request);
  if (!wire.ok) return wire;
  const { hostname: host, port } = hostAndPort(request.url);
  const text = requestText(wire.value);
  return request.url.scheme === "https"
    ? ok({ isSecure: true, host, port: port === "" ? 443 : Number(port), wire: wire.value, text })
    : ok({ isSecure: false, host, port: port === "" ? 80 : Number(port), text });
}
