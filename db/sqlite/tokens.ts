import { and, asc, count, eq, isNull, sql } from "drizzle-orm";
import { ok } from "../../api/model/result.ts";
import type { TokenStore } from "../store.ts";
import { type Driver, insertInto, once } from "./driver.ts";
import { attempt } from "./failure.ts";
import { tokens } from "./schema.ts";

const insert = insertInto(tokens);
const REVOKE = "UPDATE tokens SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL";
/** In one statement, so that no token which is made meanwhile is passed over. */
const FORGET = "DELETE FROM tokens WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE revoked_at_ms IS NULL)";

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
