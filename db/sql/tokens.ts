import { and, asc, count, eq, isNull, sql } from "drizzle-orm";
import { ok } from "../../api/base/result.ts";
import type { TokenRow } from "../rows.ts";
import type { TokenStore } from "../store.ts";
import { type Driver, insertInto, prepared } from "./driver.ts";
import { tokens } from "./schema.ts";

const insert = insertInto(tokens);
/** The statement that stores a token, with its values inlined, for operators without a program at the database. */
export function tokenSql(token: TokenRow): string {
  const { sql: text, params } = insert(token);
  const values = params.map((value) =>
    typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value),
  );
  return text.replace(/\?/g, () => values.shift() ?? "NULL");
}
export const REVOKE = "UPDATE tokens SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL";
/** One statement, so that a token created meanwhile is not missed. */
const FORGET = "DELETE FROM tokens WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE revoked_at_ms IS NULL)";

/** The lock name: one change of tokens at a time. */
const TOKENS = ["tokens"];

export function tokensOf(driver: Driver): TokenStore {
  const { db, atomic, attempt } = driver;
  const byId = prepared(driver, () =>
    db
      .select()
      .from(tokens)
      .where(and(eq(tokens.id, sql.placeholder("id")), isNull(tokens.revokedAtMs))),
  );
  const counted = prepared(driver, () => db.select({ all: count(), revoked: count(tokens.revokedAtMs) }).from(tokens));
  return {
    createToken: (token) =>
      attempt(async () => {
        const [stored] = await atomic([insert(token)], TOKENS);
        return ok({ fresh: stored?.changes === 1 });
      }),
    listTokens: () =>
      attempt(async () => ok(await db.select().from(tokens).orderBy(asc(tokens.createdAtMs), asc(tokens.id)))),
    revokeToken: (id, nowMs) =>
      attempt(async () => {
        const [revoked] = await atomic([{ sql: REVOKE, params: [nowMs, id] }], TOKENS);
        return ok({ revoked: revoked?.changes === 1 });
      }),
    findToken: (id) => attempt(async () => ok((await byId({ id }))[0] ?? null)),
    countTokens: () =>
      attempt(async () => {
        const { all = 0, revoked = 0 } = (await counted({}))[0] ?? {};
        return ok({ active: all - revoked, revoked });
      }),
    forgetRevokedTokens: () =>
      attempt(async () => {
        const [forgotten] = await atomic([{ sql: FORGET, params: [] }], TOKENS);
        return ok({ forgotten: forgotten?.changes ?? 0 });
      }),
  };
}
