import { parse } from "hono/utils/cookie";
import type { Store } from "../../../db/store.ts";
import { ok, type Result } from "../../model/result.ts";
import { type AuthSettings, type Caller, SCOPES, type Scope } from "../../ports.ts";
import { historyProblem, type Problem, problem } from "../../service/problem.ts";
import { parseToken, sameDigest } from "./token.ts";

export const ANONYMOUS: Caller = { id: "anonymous", scopes: SCOPES, node: null };
/** The program that the app runs in. */
export const INTERNAL: Caller = { id: "internal", scopes: SCOPES, node: null };

/** The cookie of a browser that is signed in: the token. */
export const TOKEN_COOKIE = "nodewise";
/** The token in a Cookie header. */
export const tokenOfCookie = (header: string | undefined): string | undefined =>
  parse(header ?? "", TOKEN_COOKIE)[TOKEN_COOKIE];

export interface Credentials {
  readonly authorization: string | undefined;
  /** The token with which a browser is signed in. */
  readonly cookie: string | undefined;
  /** The names by which it was asked, without ports: of Host, and of X-Forwarded-Host where that counts. */
  readonly hosts: readonly string[];
  /** A browser that looks at something may send the token as the password of Basic authentication, or as its cookie. */
  readonly basic: boolean;
  /** How it is asked for the token: a page of a browser has a form for it, and others of a page may send Basic. */
  readonly asked: "by-form" | "for-page" | "for-json";
}

interface AuthContext {
  readonly store: Store;
  readonly auth: AuthSettings;
  readonly sha256: (text: string) => string | Promise<string>;
}

/** Names the caller. Errors: no token where one is required, a wrong one, or a host that is not ours. */
export async function identify(
  { store, auth, sha256 }: AuthContext,
  credentials: Credentials,
): Promise<Result<Caller, Problem>> {
  const { authorization, cookie, hosts, basic, asked } = credentials;
  if (authorization === undefined) {
    const signedIn = cookie === undefined || !basic ? ok(null) : await callerWith({ store, auth, sha256 }, cookie);
    if (!signedIn.ok || signedIn.value !== null) return signedIn as Result<Caller, Problem>;
    if (auth.required) return unauthorized("this API requires a token", asked);
    const tokens = await store.countTokens();
    if (!tokens.ok) return historyProblem(tokens.error);
    const { active, revoked } = tokens.value;
    if (active > 0) return unauthorized("this API requires a token, since one exists", asked);
    if (revoked > 0)
      return unauthorized("this API requires a token, and all that there were are revoked", asked, ALL_REVOKED);
    const unknown = hosts.find((host) => auth.hosts?.has(host) === false);
    return unknown === undefined ? ok(ANONYMOUS) : wrongHost(unknown);
  }
  const token = tokenIn(authorization, basic) ?? "";
  if (parseToken(token) === null)
    return unauthorized("the Authorization header holds no token of the form `Bearer nw_ID_SECRET`", asked);
  const found = await callerWith({ store, auth, sha256 }, token);
  if (!found.ok) return found;
  return found.value === null ? unauthorized("the token is not known here, or was revoked", asked) : ok(found.value);
}

/** Null: the text is no token, or not one that is known here. */
export async function callerWith(
  { store, auth, sha256 }: AuthContext,
  text: string,
): Promise<Result<Caller | null, Problem>> {
  const token = parseToken(text);
  if (token === null) return ok(null);
  const hash = await sha256(token.text);
  if (auth.adminTokenHash !== undefined && sameDigest(hash, auth.adminTokenHash)) {
    return ok({ id: token.id, scopes: SCOPES, node: null });
  }
  const found = await store.findTokenByHash(hash);
  if (!found.ok) return historyProblem(found.error);
  const row = found.value;
  if (row === null || row.id !== token.id || !sameDigest(hash, row.hash)) return ok(null);
  return ok({ id: row.id, scopes: row.scopes as readonly Scope[], node: row.node });
}

export const speaksFor = (caller: Caller, node: string): boolean => caller.node === null || caller.node === node;

/** Errors: the caller's token has neither the scope nor `admin`. */
export function requireScope(caller: Caller, scope: Scope): Result<null, Problem> {
  if (caller.scopes.includes(scope) || caller.scopes.includes("admin")) return ok(null);
  return problem(
    "forbidden",
    `token \`${caller.id}\` has the scopes ${caller.scopes.join(", ") || "of nothing"}; this needs \`${scope}\``,
  );
}

/**
 * Errors: the caller's token is bound to another node. For nodes that the caller names; of what it names by an id it must not learn
 * whose that is, nor that it is there (http/found.ts).
 */
export function requireNode(caller: Caller, node: string): Result<null, Problem> {
  if (speaksFor(caller, node)) return ok(null);
  return problem(
    "forbidden_node",
    `token \`${caller.id}\` speaks for node \`${caller.node}\` only, this is of node \`${node}\``,
  );
}

function tokenIn(authorization: string, basic: boolean): string | undefined {
  const [scheme = "", value = ""] = authorization.trim().split(/\s+/, 2);
  if (/^bearer$/i.test(scheme)) return value;
  if (!basic || !/^basic$/i.test(scheme)) return undefined;
  try {
    return atob(value).split(":")[1];
  } catch {
    return undefined;
  }
}

const ALL_REVOKED =
  "`nodewise token create` makes one; `nodewise token open --to-everyone` opens an API on loopback to everybody again";

const BEARER = 'Bearer realm="nodewise"';
function unauthorized(detail: string, asked: Credentials["asked"], advice?: string): Result<never, Problem> {
  // a browser that is told of Basic shows a window of its own in front of the form
  const isBasic = asked === "for-page";
  const challenge = isBasic ? `Basic realm="nodewise: any user name, a token as the password", ${BEARER}` : BEARER;
  const headers = { "www-authenticate": challenge };
  return problem("unauthorized", detail, advice === undefined ? { headers } : { headers, advice });
}

const wrongHost = (host: string): Result<never, Problem> =>
  problem("forbidden_host", `an API without tokens answers to its own address only, not to \`${host.slice(0, 253)}\``);

/** The parts of a request that say where it comes from. Browsers fill these in by themselves, and no page can change them. */
interface Provenance {
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
