import { SCOPES, type Scope } from "../../ports.ts";

export const isScope = (s: string): s is Scope => (SCOPES as readonly string[]).includes(s);

/** `nw_<id>_<secret>`: the id names the row and may be shown, the secret may not. */
export interface TokenText {
  readonly id: string;
  readonly text: string;
}
const TOKEN = /^nw_([0-9a-f]{12})_[0-9a-f]{48}$/;

/** A fresh token: 48 bits of id, 192 of secret. */
export function newToken(): TokenText {
  const id = randomHex(6);
  return { id, text: `nw_${id}_${randomHex(24)}` };
}

/** Null for what cannot be a token. */
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
const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** sha256 of the UTF-8 of a text, lower case hex; on every platform. */
export async function webSha256(text: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}
