import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";
import { historyProblem } from "../routes/history-problem.ts";
import { type Problem, problem } from "../routes/problem.ts";
import { parseToken, SCOPES, type Scope, sameDigest } from "./token.ts";

export interface AuthSettings {
  /** True: a token is always required. False: only once the history holds an active one. */
  readonly required: boolean;
  /** Hosts that a request without a token may name; null: any. Keeps web pages off an open API on loopback (DNS rebinding). */
  readonly hosts: ReadonlySet<string> | null;
  /** sha256 of an administrator's token that is kept outside the history. */
  readonly adminTokenHash?: string;
}

/** Who asks. */
export interface Caller {
  /** The token's id, `anonymous`, or `internal`. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** The only node that the caller may speak for; null: any. */
  readonly node: string | null;
}
export const ANONYMOUS: Caller = { id: "anonymous", scopes: SCOPES, node: null };
/** The program that the app runs in. */
export const INTERNAL: Caller = { id: "internal", scopes: SCOPES, node: null };

export interface Credentials {
  readonly authorization: string | undefined;
  /** Without the port. */
  readonly host: string;
  /** A browser that looks at something may send the token as the password of Basic authentication. */
  readonly basic: boolean;
  /** It is asked for the token itself. */
  readonly isPage: boolean;
}

interface World {
  readonly store: Store;
  readonly auth: AuthSettings;
  readonly sha256: (text: string) => string | Promise<string>;
}

/** Names the caller. Errors: no token where one is required, a wrong one, or a host that is not ours. */
export async function identify(
  { store, auth, sha256 }: World,
  credentials: Credentials,
): Promise<Result<Caller, Problem>> {
  const { authorization, host, basic, isPage } = credentials;
  if (authorization === undefined) {
    if (auth.required) return unauthorized("this API requires a token", isPage);
    const active = await store.countActiveTokens();
    if (!active.ok) return historyProblem(active.error);
    if (active.value > 0) return unauthorized("this API requires a token, since one exists", isPage);
    return auth.hosts === null || auth.hosts.has(host) ? ok(ANONYMOUS) : wrongHost(host);
  }
  const token = parseToken(tokenIn(authorization, basic) ?? "");
  if (token === null)
    return unauthorized("the Authorization header holds no token of the form `Bearer nw_ID_SECRET`", isPage);
  const hash = await sha256(token.text);
  if (auth.adminTokenHash !== undefined && sameDigest(hash, auth.adminTokenHash)) {
    return ok({ id: token.id, scopes: SCOPES, node: null });
  }
  const found = await store.findTokenByHash(hash);
  if (!found.ok) return historyProblem(found.error);
  const row = found.value;
  if (row === null || row.id !== token.id || !sameDigest(hash, row.hash)) {
    return unauthorized("the token is not known here, or was revoked", isPage);
  }
  return ok({ id: row.id, scopes: row.scopes as readonly Scope[], node: row.node });
}

/** Errors: the caller's token has neither the scope nor `admin`. */
export function requireScope(caller: Caller, scope: Scope): Result<null, Problem> {
  if (caller.scopes.includes(scope) || caller.scopes.includes("admin")) return ok(null);
  return problem(
    "forbidden",
    `token \`${caller.id}\` has the scopes ${caller.scopes.join(", ") || "of nothing"}; this needs \`${scope}\``,
  );
}

/** Errors: the caller's token is bound to another node. */
export function requireNode(caller: Caller, node: string): Result<null, Problem> {
  if (caller.node === null || caller.node === node) return ok(null);
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

function unauthorized(detail: string, isPage: boolean): Result<never, Problem> {
  const challenge = isPage
    ? 'Basic realm="nodewise: any user name, a token as the password"'
    : 'Bearer realm="nodewise"';
  return problem("unauthorized", detail, { headers: { "www-authenticate": challenge } });
}

const wrongHost = (host: string): Result<never, Problem> =>
  problem("forbidden_host", `an API without tokens answers to its own address only, not to \`${host.slice(0, 253)}\``);
