import type { Context } from "hono";
import { serialize } from "hono/utils/cookie";
import { hex } from "../../base/hex.ts";
import type { AuthSettings } from "../../dependencies.ts";
import type { EpochMs } from "../../model/units.ts";

/**
 * The session of a signed-in browser, as its cookie holds it: `ID.SINCE.UNTIL.MAC` with the token's id, two times in
 * seconds since the epoch, and an HMAC-SHA-256 of these, in hex. The key is derived from the token's hash, so every
 * process with the history can check it, nothing is stored, and the session ends with its token.
 */
export interface Session {
  readonly id: string;
  readonly sinceS: number;
  readonly untilS: number;
  readonly mac: string;
}

/** Seconds that a session lasts; while it is used it is renewed, until `LONGEST` after it began. */
export const LASTS = 3600;
export const LONGEST = 12 * 3600;
/** The age in seconds after which a session is renewed, so that not every page renews it. */
const RENEWED_AFTER = 300;
const LABEL = "nodewise session 1\n";
const COOKIE = "nodewise";
const FORM = /^([0-9a-f]{12})\.(\d{1,12})\.(\d{1,12})\.([0-9a-f]{64})$/;

/** Another path or a server on another port of the host may have set cookies of this name: so many of them are tried. */
const MAX_TRIED = 8;

/** The sessions in a Cookie header, not checked yet; empty: there is none, or nothing of their form. */
export const sessionsIn = (header: string | undefined): readonly Session[] =>
  (header ?? "")
    .split(";")
    .flatMap((cookie): Session[] => {
      const [name, value] = cookie.trim().split("=", 2);
      const [, id, since, until, mac] = (name === COOKIE && FORM.exec(value ?? "")) || [];
      if (id === undefined || mac === undefined) return [];
      return [{ id, sinceS: Number(since), untilS: Number(until), mac }];
    })
    .slice(0, MAX_TRIED);

const secondsOf = (now: EpochMs): number => Math.floor(now / 1000);
const signed = ({ id, sinceS, untilS }: Omit<Session, "mac">): string => `${id}.${sinceS}.${untilS}`;
const utf8 = (text: string) => new TextEncoder().encode(text);
/** `hash`: sha256 of the token, in hex. */
const keyOf = (hash: string): ReturnType<typeof crypto.subtle.importKey> =>
  crypto.subtle.importKey("raw", utf8(LABEL + hash), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);

/** Whether a session was signed with the token of this hash and has not expired. The comparison takes constant time. */
export async function isOpen(session: Session, hash: string, now: EpochMs): Promise<boolean> {
  const mac = Uint8Array.from(session.mac.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  const isSigned = await crypto.subtle.verify("HMAC", await keyOf(hash), mac, utf8(signed(session)));
  return isSigned && secondsOf(now) < session.untilS;
}

/** A session's value from now on, and how long it lasts. */
export interface SessionCookie {
  readonly value: string;
  readonly seconds: number;
}
const NONE: SessionCookie = { value: "", seconds: 0 };

/** A session for the token with this id and hash; an earlier start time is kept. */
export async function sessionOf(
  id: string,
  hash: string,
  now: EpochMs,
  sinceS = secondsOf(now),
): Promise<SessionCookie> {
  const untilS = Math.min(secondsOf(now) + LASTS, sinceS + LONGEST);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", await keyOf(hash), utf8(signed({ id, sinceS, untilS }))));
  return { value: `${signed({ id, sinceS, untilS })}.${hex(mac)}`, seconds: untilS - secondsOf(now) };
}
/** The renewed session; null: it lasts long enough, or has reached its maximum age. */
export async function renewed(
  { id, sinceS, untilS }: Session,
  hash: string,
  now: EpochMs,
): Promise<SessionCookie | null> {
  const isDue = untilS - secondsOf(now) <= LASTS - RENEWED_AFTER && untilS < sinceS + LONGEST;
  return isDue ? sessionOf(id, hash, now, sinceS) : null;
}

/** The Set-Cookie that keeps a session in a browser: no script reads it, no other site's page sends it. Without one: it is forgotten. */
export function setCookie(c: Context, auth: AuthSettings, { value, seconds }: SessionCookie = NONE): string {
  const forwarded = auth.trustForwardedHost === true ? c.req.header("x-forwarded-proto") : undefined;
  // over plain HTTP a browser would not keep a secure one
  const secure = (forwarded ?? new URL(c.req.url).protocol.slice(0, -1)) === "https";
  return serialize(COOKIE, value, { path: "/", httpOnly: true, sameSite: "Strict", secure, maxAge: seconds });
}
