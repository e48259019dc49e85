import type { TokenRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import { type AuthSettings, type Caller, SCOPES, type Scope } from "../../dependencies.ts";
import type { EpochMs } from "../../model/units.ts";
import { historyProblem, type Problem, problem } from "../../service/problem.ts";
import { isOpen, renewed, type Session, type SessionCookie, sessionsIn } from "./session.ts";
import { parseToken, sameDigest } from "./tokens.ts";

export const ANONYMOUS: Caller = { id: "anonymous", scopes: SCOPES, node: null };
/** The program that the app runs in. */
export const INTERNAL: Caller = { id: "internal", scopes: SCOPES, node: null };

interface Credentials {
  readonly authorization: string | undefined;
  /** The Cookie header, which may hold the session of a browser that is signed in. */
  readonly cookie: string | undefined;
  /** The host names of the request, without ports: of Host, and of X-Forwarded-Host where that counts. */
  readonly hosts: readonly string[];
  /**
   * True: a request that only reads may send the token as the password of Basic authentication, or a browser session.
   */
  readonly basic: boolean;
  /** True: the request is from a browser, which shows a form for the token. */
  readonly isBrowser: boolean;
}
/** The identified caller. */
export interface Identified {
  readonly caller: Caller;
  /** The session that the browser is to have from now on; null: it has none, or keeps it as it is. */
  readonly session: SessionCookie | null;
}

interface AuthContext {
  readonly store: Store;
  readonly auth: AuthSettings;
  readonly sha256: (text: string) => string | Promise<string>;
  readonly now: () => EpochMs;
}

/** Names the caller. Errors: no token where one is required, a wrong one, or a host that is not ours. */
export async function identify(context: AuthContext, credentials: Credentials): Promise<Result<Identified, Problem>> {
  const { store, auth } = context;
  const { authorization, cookie, hosts, basic } = credentials;
  if (authorization === undefined) {
    const signedIn = await signedInBy(context, cookie);
    if (!signedIn.ok) return signedIn;
    if (signedIn.value !== null) return basic ? ok(signedIn.value) : readOnly();
    const ended = sessionsIn(cookie).length > 0 ? SESSION_ENDED : undefined;
    if (auth.required) return unauthorized(ended ?? "this API requires a token", credentials);
    const tokens = await store.countTokens();
    if (!tokens.ok) return historyProblem(tokens.error);
    const { active, revoked } = tokens.value;
    if (active > 0) return unauthorized(ended ?? "this API requires a token, since one exists", credentials);
    if (revoked > 0)
      return unauthorized("this API requires a token, and all that there were are revoked", credentials, ALL_REVOKED);
    const unknown = hosts.find((host) => auth.hosts?.has(host) === false);
    return unknown === undefined ? ok({ caller: ANONYMOUS, session: null }) : wrongHost(unknown);
  }
  const token = tokenIn(authorization, basic) ?? "";
  if (parseToken(token) === null)
    return unauthorized("the Authorization header holds no token of the form `Bearer nw_ID_SECRET`", credentials);
  const found = await callerWith(context, token);
  if (!found.ok) return found;
  if (found.value === null) return unauthorized("the token is not known here, or was revoked", credentials);
  return ok({ caller: found.value, session: null });
}

const adminOf = (id: string): Caller => ({ id, scopes: SCOPES, node: null });
const callerOf = ({ id, scopes, node }: TokenRow): Caller => ({ id, scopes: scopes as readonly Scope[], node });

/** The caller of a browser's session. Null: it has none that lasts and whose token is known. `cookie`: its Cookie header. */
export async function signedInBy(
  { store, auth, now }: AuthContext,
  cookie: string | undefined,
): Promise<Result<Identified | null, Problem>> {
  for (const session of sessionsIn(cookie)) {
    const known = await knownBy(session, { store, auth, now });
    if (!known.ok || known.value !== null) return known;
  }
  return ok(null);
}

async function knownBy(
  session: Session,
  { store, auth, now }: Omit<AuthContext, "sha256">,
): Promise<Result<Identified | null, Problem>> {
  const by = async (hash: string, caller: Caller): Promise<Identified | null> =>
    (await isOpen(session, hash, now())) ? { caller, session: await renewed(session, hash, now()) } : null;
  const admin = auth.adminTokenHash === undefined ? null : await by(auth.adminTokenHash, adminOf(session.id));
  if (admin !== null) return ok(admin);
  const found = await store.findToken(session.id);
  if (!found.ok) return historyProblem(found.error);
  return ok(found.value === null ? null : await by(found.value.hash, callerOf(found.value)));
}

/** The caller with a token; null: the text is no token, or an unknown one. */
export async function callerWith(
  { store, auth, sha256 }: Pick<AuthContext, "store" | "auth" | "sha256">,
  text: string,
): Promise<Result<Caller | null, Problem>> {
  const token = parseToken(text);
  if (token === null) return ok(null);
  const hash = await sha256(token.text);
  if (auth.adminTokenHash !== undefined && sameDigest(hash, auth.adminTokenHash)) {
    return ok(adminOf(token.id));
  }
  const found = await store.findToken(token.id);
  if (!found.ok) return historyProblem(found.error);
  const row = found.value;
  return ok(row === null || !sameDigest(hash, row.hash) ? null : callerOf(row));
}

export const mayAccessNode = (caller: Caller, node: string): boolean => caller.node === null || caller.node === node;

/** Errors: the caller's token has neither the scope nor `admin`. */
export function requireScope(caller: Caller, scope: Scope): Result<null, Problem> {
  if (caller.scopes.includes(scope) || caller.scopes.includes("admin")) return ok(null);
  return problem(
    "forbidden",
    `token \`${caller.id}\` has the scopes ${caller.scopes.join(", ") || "of nothing"}; this needs \`${scope}\``,
  );
}

/**
 * Errors: the caller's token is bound to another node. Only for nodes that the caller names: about an id, the caller
 * must not learn which node it belongs to, nor that it exists (route.ts).
 */
export function requireNode(caller: Caller, node: string): Result<null, Problem> {
  if (mayAccessNode(caller, node)) return ok(null);
  return problem(
    "forbidden_node",
    `token \`${caller.id}\` acts only for node \`${caller.node}\`, this request is for node \`${node}\``,
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
  "`nodewise token create` makes one; `nodewise token open --to-everyone` opens an API on loopback to every caller again";

/**
 * Refuses a session for a request that changes something, since browsers attach sessions to every request; the token
 * itself is required.
 */
const readOnly = (): Result<never, Problem> =>
  problem("forbidden", "this browser's session is read-only: it opens pages and GET requests", {
    advice: "send the token itself, `Authorization: Bearer nw_...`",
  });
const SESSION_ENDED = "this browser's session has ended, or its token was revoked: sign in again";

export const BEARER = 'Bearer realm="nodewise"';
const BASIC = 'Basic realm="nodewise: any user name, a token as the password"';
/**
 * Names the accepted credentials. Basic is not offered to browsers, which would show their own window in front of the
 * form.
 */
function unauthorized(
  detail: string,
  { basic, isBrowser }: Pick<Credentials, "basic" | "isBrowser">,
  advice?: string,
): Result<never, Problem> {
  const headers = { "www-authenticate": basic && !isBrowser ? `${BASIC}, ${BEARER}` : BEARER };
  return problem("unauthorized", detail, advice === undefined ? { headers } : { headers, advice });
}

const wrongHost = (host: string): Result<never, Problem> =>
  problem("forbidden_host", `an API without tokens answers to its own address only, not to \`${host.slice(0, 253)}\``);

/** The headers that say where a request comes from. Browsers set them, and no page can change them. */
interface Provenance {
  readonly method: string;
  /** The Host that the client asked for, with its port. */
  readonly host: string;
  readonly origin: string | undefined;
  /** Sec-Fetch-Site; browsers leave it out over plain HTTP beyond loopback. */
  readonly site: string | undefined;
}

/**
 * Whether a page of another site made a browser send a request that may change something. Sec-Fetch-Site counts first,
 * then Origin, which must match the requested host; `null` matches nothing. Programs send neither and are not checked.
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
