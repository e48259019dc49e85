import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { BEARER, callerWith, signedInBy } from "../http/auth/authorize.ts";
import { LASTS, LONGEST, sessionOf, setCookie } from "../http/auth/session.ts";
import { type Exchange, queryOf } from "../http/route.ts";
import type { Problem } from "../service/problem.ts";
import { formFields } from "./form-fields.ts";
import { html } from "./html.ts";
import { type Html, page, signInForm } from "./page.ts";

/** A path on this server that can be opened, or `/`; signing in and out are excluded. */
const ownPath = (to = ""): string => (/^\/(?![/\\]|sign-(?:in|out)\b)[\x21-\x7e]*$/.test(to) ? to : "/");

/** GET /sign-in */
export async function getSignIn(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, ["to"]);
  if (!query.ok) return query;
  const known = await signedInBy(exchange.deps, exchange.c.req.header("cookie"));
  if (!known.ok) return known;
  return signInPage(known.value === null ? signInForm(ownPath(query.value.to)) : signedIn(known.value.caller.id), 200);
}

/** POST /sign-in: a known token starts a session, which the browser stores instead of the token. */
export async function postSignIn(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const read = await formFields(exchange, ["token", "to"], WORDS);
  if (!read.ok) return read;
  const { deps, c } = exchange;
  const { to } = read.value.texts;
  const token = read.value.texts.token.trim();
  const caller = await callerWith(deps, token);
  if (!caller.ok) return caller;
  const path = ownPath(to);
  if (caller.value === null)
    return signInPage(
      html`<p role="alert"><strong>This token is not known here, or was revoked.</strong> It begins with <code>nw_</code>; <code>nodewise token list</code> lists the known ones.</p>${signInForm(path)}`,
      401,
    );
  const session = await sessionOf(caller.value.id, await deps.sha256(token), deps.now());
  return leadTo(path, setCookie(c, deps.auth, session));
}

/** POST /sign-out */
export const postSignOut = ({ c, deps }: Exchange): Result<Reply, Problem> =>
  leadTo("/sign-in", setCookie(c, deps.auth));

const signInPage = (content: Html | Promise<Html>, status: 200 | 401): Promise<Result<Reply, never>> =>
  page(
    "Sign in",
    html`${content}<p class="soft">A token is made by <code>nodewise token create</code>. This browser keeps a session in its place, which ends
after ${LASTS / 60} minutes without use, ${LONGEST / 3600} hours after it began, or with the token. Programs send the token as
<code>Authorization: Bearer nw_…</code>, or as the password of Basic authentication.</p>`,
    { status, headers: status === 401 ? { "www-authenticate": BEARER } : {} },
  );

const signedIn = (id: string): Html => html`<p>You are signed in with token <code>${id}</code>.</p>`;

const WORDS = {
  advice: "sign in on the page /sign-in",
  tooLarge: () => ({ detail: "the form is larger than any token", advice: "sign in on the page /sign-in" }),
};

const leadTo = (path: string, cookie: string): Result<Reply, never> =>
  ok({
    status: 303,
    type: "text/plain; charset=utf-8",
    body: "",
    headers: { location: path, "set-cookie": cookie, "cache-control": "no-store" },
  });
