import { expect, test } from "vitest";
import type { ApiDeps } from "../../api/dependencies.ts";
import { freshToken } from "../../api/http/auth/tokens.ts";
import { epochMs } from "../../api/model/units.ts";
import { value } from "../contract/store-rows.ts";
import { appOver } from "./serving.ts";

const START = Date.parse("2026-11-27T12:00:00Z");
const MINUTE = 60_000;
const HTML = { accept: "text/html" };

/** An app with a token and its own clock, and a browser that stores the last cookie. */
async function signedIn(ports: Partial<ApiDeps> = {}, scheme = "http", headers: Record<string, string> = {}) {
  let nowMs = START;
  const now = () => epochMs(nowMs);
  const made = await freshToken({ name: "browser", scopes: ["read"], node: null, now: START });
  const own = { now, ...ports };
  const { app, store } = appOver(own);
  value(await store.createToken(made.row));
  const body = new URLSearchParams({ token: made.token, to: "/" });
  const signed = await app.request(`${scheme}://localhost/sign-in`, { method: "POST", body, headers });
  const first = signed.headers.get("set-cookie") ?? "";
  let cookie = first.split(";")[0] ?? "";
  const look = async (path = "/", over = app): Promise<{ readonly status: number; readonly set: string | null }> => {
    const answer = await over.request(path, { headers: { ...HTML, cookie } });
    const set = answer.headers.get("set-cookie");
    cookie = set?.split(";")[0] ?? cookie;
    return { status: answer.status, set };
  };
  const after = (minutes: number): void => {
    nowMs += minutes * MINUTE;
  };
  return { ...made, app, store, own, first, look, after };
}

test("an unused session ends after an hour", async () => {
  const { look, after } = await signedIn();
  expect(await look()).toEqual({ status: 200, set: null });
  after(60);
  expect(await look()).toEqual({ status: 401, set: null });
});

test("a used session is renewed by pages, and ends twelve hours after it began", async () => {
  const { look, after } = await signedIn();
  after(4);
  expect((await look()).set).toBeNull();
  after(1);
  expect((await look("/v1/nodes")).set).toBeNull();
  expect((await look()).set).toMatch(/^nodewise=[0-9a-f.]+; Max-Age=3600; Path=\/; HttpOnly; SameSite=Strict$/);
  after(50);
  for (let minutes = 55; minutes < 12 * 60; minutes += 40) {
    expect((await look()).status, `${minutes} minutes`).toBe(200);
    after(40);
  }
  expect(await look()).toEqual({ status: 401, set: null });
});

test("a session is valid in another process over the same history, until its token is revoked", async () => {
  const { look, own, store, row } = await signedIn();
  const { app: other } = appOver({ ...own, store });
  expect((await look("/", other)).status).toBe(200);
  value(await store.revokeToken(row.id, START));
  for (const app of [undefined, other]) expect((await look("/", app)).status).toBe(401);
});

test("an administrator's token outside the history opens a session, which ends with that token", async () => {
  const admin = await freshToken({ name: "admin", scopes: ["admin"], node: null, now: START });
  const auth = { required: true, hosts: null, adminTokenHash: admin.row.hash };
  const now = () => epochMs(START);
  const { app, store } = appOver({ auth, now });
  const body = new URLSearchParams({ token: admin.token, to: "/" });
  const signed = await app.request("/sign-in", { method: "POST", body });
  const cookie = signed.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect((await app.request("/", { headers: { ...HTML, cookie } })).status).toBe(200);
  const { app: without } = appOver({ store, now, auth: { required: true, hosts: null } });
  expect((await without.request("/", { headers: { ...HTML, cookie } })).status).toBe(401);
});

test("a foreign cookie of the same name does not hide a session", async () => {
  const { app, first } = await signedIn();
  const own = first.split(";")[0] ?? "";
  const forged = own.replace(/[0-9a-f]{64}$/, "0".repeat(64));
  const statusOf = async (cookie: string) => (await app.request("/", { headers: { ...HTML, cookie } })).status;
  expect(await statusOf(`nodewise=junk; ${own}`)).toBe(200);
  expect(await statusOf(`${forged}; other=1; ${own}`)).toBe(200);
  expect(await statusOf(`nodewise=junk; ${forged}`)).toBe(401);
});

test("pages of a session have Cache-Control no-store, and public ones may be cached", async () => {
  const { app, first, token } = await signedIn();
  const cookie = first.split(";")[0] ?? "";
  for (const headers of [{ cookie }, { authorization: `Basic ${btoa(`me:${token}`)}` }])
    for (const path of ["/", "/decisions", "/docs"]) {
      const answer = await app.request(path, { headers: { ...HTML, ...headers } });
      expect([answer.status, answer.headers.get("cache-control"), answer.headers.get("etag")], path).toEqual([
        ...[200, "no-store", null],
      ]);
    }
  expect((await app.request("/docs", { headers: HTML })).headers.get("cache-control")).toBe("private, no-cache");
});

test("a session may only read, and an expired one is refused as such", async () => {
  const { app, first, after } = await signedIn();
  const headers = { cookie: first.split(";")[0] ?? "", "content-type": "application/json" };
  const post = async () => {
    const answer = await app.request("/v1/decisions/cgroups", { method: "POST", headers, body: "{}" });
    return { status: answer.status, ...((await answer.json()) as { detail: string; advice: string }) };
  };
  expect(await post()).toMatchObject({
    status: 403,
    detail: "this browser's session is read-only: it opens pages and GET requests",
    advice: "send the token itself, `Authorization: Bearer nw_...`",
  });
  after(60);
  const ended = "this browser's session has ended, or its token was revoked: sign in again";
  expect(await post()).toMatchObject({ status: 401, detail: ended });
  expect(await (await app.request("/", { headers: { ...HTML, ...headers } })).text()).toContain("session has ended");
});

test("signing in redirects to a page of this site only, and a wrong token gets a 401 with a challenge", async () => {
  const { app, token } = await signedIn();
  const signIn = (fields: Record<string, string>) =>
    app.request("/sign-in", { method: "POST", body: new URLSearchParams(fields) });
  for (const [to, location] of [
    ["/nodes/n?range=1h#eviction", "/nodes/n?range=1h#eviction"],
    ["/sign-out", "/"],
    ["/sign-in?to=%2F", "/"],
    ["//elsewhere", "/"],
  ] as const)
    expect((await signIn({ token, to })).headers.get("location"), to).toBe(location);
  const wrong = await signIn({ token: "nw_wrong", to: "/" });
  expect([wrong.status, wrong.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="nodewise"']);
});

test("the session cookie is Secure over HTTPS, and behind a trusted proxy that says https", async () => {
  const forwarded = { "x-forwarded-proto": "https" };
  const trusting = { auth: { required: true, hosts: null, trustForwardedHost: true } };
  expect((await signedIn({}, "https")).first).toContain("; Secure;");
  expect((await signedIn({}, "http", forwarded)).first).not.toContain("Secure");
  expect((await signedIn(trusting, "http", forwarded)).first).toContain("; Secure;");
});
