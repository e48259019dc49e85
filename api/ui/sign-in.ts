import { serialize } from "hono/utils/cookie";
import { callerWith, TOKEN_COOKIE, tokenOfCookie } from "../http/auth/authorize.ts";
import { type Exchange, queryOf } from "../http/route.ts";
import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import type { Problem } from "../service/problem.ts";
import { formFields } from "./form-fields.ts";
import { html } from "./html.ts";
import { type Html, page, signInForm } from "./page.ts";

/** A working day: who stays longer signs in again. */
const SECONDS = 12 * 3600;

/** A path of this server, whatever was given. */
const ownPath = (to = ""): string => (/^\/(?![/\\])[\x21-\x7e]*$/.test(to) ? to : "/");

/** GET /sign-in */
export async function getSignIn(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, ["to"]);
  if (!query.ok) return query;
  const cookie = tokenOfCookie(exchange.c.req.header("cookie"));
  const caller = cookie === undefined ? ok(null) : await callerWith(exchange.ports, cookie);
  if (!caller.ok) return caller;
  return signInPage(caller.value === null ? signInForm(ownPath(query.value.to)) : signedIn(caller.value.id), 200);
}

/** POST /sign-in: a token that is known becomes a cookie, which no script can read and no other site sends. */
export async function postSignIn(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const read = await formFields(exchange, ["token", "to"], WORDS);
  if (!read.ok) return read;
  const { token, to } = read.value.texts;
  const caller = await callerWith(exchange.ports, token.trim());
  if (!caller.ok) return caller;
  const path = ownPath(to);
  if (caller.value === null)
    return signInPage(
      html`<p role="alert"><strong>This token is not known here, or was revoked.</strong> It begins with <code>nw_</code>; <code>nodewise token list</code> lists what there is.</p>${signInForm(path)}`,
      401,
    );
  return leadTo(path, cookieOf(exchange, token.trim(), SECONDS));
}

/** POST /sign-out */
export const postSignOut = (exchange: Exchange): Result<Reply, Problem> =>
  leadTo("/sign-in", cookieOf(exchange, "", 0));

const signInPage = (content: Html | Promise<Html>, status: number): Promise<Result<Reply, never>> =>
  page(
    "Sign in",
    html`${content}<p class="soft">A token is made by <code>nodewise token create</code>. Here it is kept in a cookie for ${SECONDS / 3600} hours. Programs send it as
<code>Authorization: Bearer nw_…</code>, or as the password of Basic authentication.</p>`,
    { status },
  );

const signedIn = (id: string): Html => html`<p>You are signed in with token <code>${id}</code>.</p>`;

const WORDS = {
  advice: "sign in on the page /sign-in",
  tooLarge: () => ({ detail: "the form is larger than any token", advice: "sign in on the page /sign-in" }),
};

function cookieOf({ c, ports }: Exchange, value: string, maxAge: number): string {
  const forwarded = ports.auth.trustForwardedHost === true ? c.req.header("x-forwarded-proto") : undefined;
  const protocol = forwarded ?? new URL(c.req.url).protocol.slice(0, -1);
  // over plain HTTP a browser would not keep a secure one
  const secure = protocol === "https";
  return serialize(TOKEN_COOKIE, value, { path: "/", httpOnly: true, sameSite: "Strict", secure, maxAge });
}

const leadTo = (path: string, cookie: string): Result<Reply, never> =>
  ok({
    status: 303,
    type: "text/plain; charset=utf-8",
    body: "",
    headers: { location: path, "set-cookie": cookie, "cache-control": "no-store" },
  });
