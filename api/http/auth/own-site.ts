/** The parts of a request that say where it comes from. Browsers fill these in by themselves, and no page can change them. */
export interface Provenance {
  readonly method: string;
  /** The Host that the client asked for, with its port. */
  readonly host: string;
  readonly origin: string | undefined;
  /** Sec-Fetch-Site; browsers leave it out over plain HTTP beyond loopback. */
  readonly site: string | undefined;
}

/**
 * Checks that a page of another site made a browser send a request that may change something. A browser's own word counts
 * first, then its Origin, which must be of the host that was asked; `null` is nobody's. Programs send neither and are not
 * meant.
 */
export function isForeign({ method, host, origin, site }: Provenance): boolean {
  if (method === "GET" || method === "HEAD" || site === "same-origin") return false;
  if (site !== undefined && site !== "none") return true;
  return origin !== undefined && !isOf(origin, host);
}

/** The scheme is not compared: a proxy may have undone the TLS. A port that the scheme implies may be left out on either side. */
function isOf(origin: string, host: string): boolean {
  const [, scheme, named = ""] = /^(https?):\/\/([^/]+)$/i.exec(origin) ?? [];
  if (scheme === undefined) return false;
  const implied = scheme.toLowerCase() === "https" ? /:443$/ : /:80$/;
  return named.toLowerCase().replace(implied, "") === host.toLowerCase().replace(implied, "");
}

/** Lower case, without the port. */
export const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, "");
