import { err, ok, type Result } from "../../model/result.ts";
import { quoteBytes } from "../go/quote-bytes.ts";
import { type GoUrl, hostAndPort, parseUrlBytes } from "../go/url.ts";
import { resolveReference } from "../go/url-reference.ts";
import { firstOf } from "./http-headers.ts";
import type { HttpRequest } from "./http-request.ts";
import { refererOf } from "./http-wire.ts";

const FOLLOWED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Go 1.26: redirectBehavior; without a location an answer is the last one. */
export const isRedirect = (status: number, location: string): boolean => FOLLOWED.has(status) && location !== "";

/** Of a longer location nothing is kept to go to. */
const MOST_LOCATION_BYTES = 32 * 1024;

/**
 * The request that an answer leads to. Null: it leads to another host, where a probe does not go.
 * Error: Go's words for a location that is none. `location`: a text of bytes. kubelet 1.36: RedirectChecker; Go 1.26: Client.do.
 */
export function redirected(
  first: HttpRequest,
  last: HttpRequest,
  location: string,
): Result<HttpRequest | null, string> {
  if (location.length > MOST_LOCATION_BYTES) {
    return err(`the Location header is longer than the ${MOST_LOCATION_BYTES} bytes that are followed`);
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
