import { and, asc, count, eq, isNull, sql } from "drizzle-orm";
import { ok, type Result } from "../api/model/result.ts";
import { type Driver, insertInto, once } from "./driver.ts";
import { attempt, type StoreFailure } from "./failure.ts";
import { tokens } from "./schema.ts";

const insert = insertInto(tokens);
const REVOKE = "UPDATE tokens SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL";
/** In one statement, so that no token which is made meanwhile is passed over. */
const FORGET = "DELETE FROM tokens WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE revoked_at_ms IS NULL)";

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  /** sha256 of the secret, in hex. The secret itself is never stored. */
  readonly hash: string;
  readonly scopes: readonly string[];
  /** The only node that the token may speak for; null: any. */
  readonly node: string | null;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

type Answer<T> = Promise<Result<T, StoreFailure>>;

/** The part of the store that holds tokens. */
export interface TokenStore {
  /** `fresh` is false when the id or the hash is already taken. */
  createToken(token: TokenRow): Answer<{ readonly fresh: boolean }>;
  listTokens(): Answer<readonly TokenRow[]>;
  /** `revoked` is false when there is no such active token. */
  revokeToken(id: string, nowMs: number): Answer<{ readonly revoked: boolean }>;
  /** Active tokens only. */
  findTokenByHash(hash: string): Answer<TokenRow | null>;
  countTokens(): Answer<{ readonly active: number; readonly revoked: number }>;
  /** Removes the revoked tokens, if no other is active; `forgotten`: how many. After that it is as if there had never been one. */
  forgetRevokedTokens(): Answer<{ readonly forgotten: number }>;
}

export function tokensOf({ db, atomic }: Driver): TokenStore {
  const byHash = once(() =>
    db
      .select()
      .from(tokens)
      .where(and(eq(tokens.hash, sql.placeholder("hash")), isNull(tokens.revokedAtMs)))
      .prepare(),
  );
  const counted = once(() =>
    db
      .select({ all: count(), revoked: count(tokens.revokedAtMs) })
      .from(tokens)
      .prepare(),
  );
  return {
    createToken: (token) =>
      attempt(async () => {
        const [stored] = await atomic([insert(token)]);
        return ok({ fresh: stored?.changes === 1 });
      }),
    listTokens: () =>
      attempt(async () => ok(await db.select().from(tokens).orderBy(asc(tokens.createdAtMs), asc(tokens.id)))),
    revokeToken: (id, nowMs) =>
      attempt(async () => {
        const [revoked] = await atomic([{ sql: REVOKE, params: [nowMs, id] }]);
        return ok({ revoked: revoked?.changes === 1 });
      }),
    findTokenByHash: (hash) => attempt(async () => ok((await byHash().all({ hash }))[0] ?? null)),
    countTokens: () =>
      attempt(async () => {
        const { all = 0, revoked = 0 } = (await counted().all())[0] ?? {};
        return ok({ active: all - revoked, revoked });
      }),
    forgetRevokedTokens: () =>
      attempt(async () => {
        const [forgotten] = await atomic([{ sql: FORGET, params: [] }]);
        return ok({ forgotten: forgotten?.changes ?? 0 });
      }),
  };
}
