import { and, asc, count, eq, isNull, sql } from "drizzle-orm";
import { ok } from "../api/model/result.ts";
import { type Driver, insertInto, once } from "./driver.ts";
import { attempt } from "./failure.ts";
import { tokens } from "./schema.ts";
import type { Store } from "./store.ts";

const insert = insertInto(tokens);
const REVOKE = "UPDATE tokens SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL";

type Tokens = Pick<Store, "createToken" | "listTokens" | "revokeToken" | "findTokenByHash" | "countActiveTokens">;

export function tokensOf({ db, atomic }: Driver): Tokens {
  const byHash = once(() =>
    db
      .select()
      .from(tokens)
      .where(and(eq(tokens.hash, sql.placeholder("hash")), isNull(tokens.revokedAtMs)))
      .prepare(),
  );
  const active = once(() => db.select({ count: count() }).from(tokens).where(isNull(tokens.revokedAtMs)).prepare());
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
    countActiveTokens: () => attempt(async () => ok((await active().all())[0]?.count ?? 0)),
  };
}
