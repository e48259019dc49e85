import type { StoreFailure } from "../../../db/failure.ts";
import type { TokenRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Scope } from "../../ports.ts";
import { newToken, webSha256 } from "./token.ts";

interface TokenRequest {
  /** For people: whose it is, or what for. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The only node that the token may speak for; null: any. */
  readonly node: string | null;
  /** Milliseconds since the epoch. */
  readonly now: number;
}
export interface CreatedToken {
  /** The only time that the secret is to be seen; the history keeps its hash. */
  readonly token: string;
  readonly row: TokenRow;
}

/** A new token that is not stored. */
export async function freshToken({ name, scopes, node, now }: TokenRequest): Promise<CreatedToken> {
  const { id, text } = newToken();
  const row = { id, name, hash: await webSha256(text), scopes, node, createdAtMs: now, revokedAtMs: null };
  return { token: text, row };
}

export async function createToken(store: Store, request: TokenRequest): Promise<Result<CreatedToken, StoreFailure>> {
  while (true) {
    const created = await freshToken(request);
    const stored = await store.createToken(created.row);
    if (!stored.ok) return stored;
    if (stored.value.fresh) return ok(created);
  }
}

/** All tokens, the revoked ones too, oldest first. */
export const listTokens = (store: Store): Promise<Result<readonly TokenRow[], StoreFailure>> => store.listTokens();

/** `revoked` is false when no active token has the id. */
export const revokeToken = (
  store: Store,
  id: string,
  now: number,
): Promise<Result<{ readonly revoked: boolean }, StoreFailure>> => store.revokeToken(id, now);

/** Opens an API on loopback to everybody again: forgets the revoked tokens. `active`: so many are not revoked, and nothing was done. */
export async function openToEveryone(
  store: Store,
): Promise<Result<{ readonly active: number; readonly forgotten: number }, StoreFailure>> {
  const forgotten = await store.forgetRevokedTokens();
  if (!forgotten.ok) return forgotten;
  const counted = await store.countTokens();
  return counted.ok ? ok({ ...forgotten.value, active: counted.value.active }) : counted;
}
