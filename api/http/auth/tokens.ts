import type { StoreFailure } from "../../../db/failure.ts";
import type { TokenRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { hex } from "../../base/hex.ts";
import { ok, type Result } from "../../base/result.ts";
import { SCOPES, type Scope } from "../../dependencies.ts";

export const isScope = (s: string): s is Scope => (SCOPES as readonly string[]).includes(s);

/** `nw_<id>_<secret>`: the id names the row and may be shown, the secret may not. */
interface TokenText {
  readonly id: string;
  readonly text: string;
}
const TOKEN = /^nw_([0-9a-f]{12})_[0-9a-f]{48}$/;

/** A fresh token: 48 bits of id, 192 of secret. */
export function newToken(): TokenText {
  const id = randomHex(6);
  return { id, text: `nw_${id}_${randomHex(24)}` };
}

/** Parses a token; null: the text cannot be one. */
export function parseToken(text: string): TokenText | null {
  const id = TOKEN.exec(text)?.[1];
  return id === undefined ? null : { id, text };
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i % Math.max(1, b.length));
  return difference === 0;
}

const randomHex = (bytes: number): string => hex(crypto.getRandomValues(new Uint8Array(bytes)));

/** sha256 of the UTF-8 of a text, lower case hex; on every platform. */
export async function webSha256(text: string | readonly string[]): Promise<string> {
  const bytes = new TextEncoder().encode(typeof text === "string" ? text : text.join(""));
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

interface TokenRequest {
  /** A name for people: the token's owner or purpose. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The only node that the token may act for; null: any. */
  readonly node: string | null;
  /** Milliseconds since the epoch. */
  readonly now: number;
}
export interface CreatedToken {
  /** The token with its secret, which is shown only once; the history stores its hash. */
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
