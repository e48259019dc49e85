import { expect, test } from "vitest";
import { freshToken } from "../../api/http/auth/tokens.ts";
import { epochMs } from "../../api/model/units.ts";
import type { Ports } from "../../api/ports.ts";
import { value } from "../contract/store-rows.ts";
import { appOver } from "./serving.ts";

const START = Date.parse("2026-11-27T12:00:00Z");
const MINUTE = 60_000;
const HTML = { accept: "text/html" };

/** An app with a token and a clock of its own, and a browser that keeps the cookie which it was given last. */
async function signedIn(ports: Partial<Ports> = {}, scheme = "http", headers: Record<string, string> = {}) {
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

test("a session that is not used ends after an hour", async () => {
  const { look, after } = await signedIn();
  expect(await look()).toEqual({ status: 200, set: null });
  after(60);
  expect(await look()).toEqual({ status: 401, set: null });
});

test("one that is used is renewed by pages, and ends twelve hours after it began", async () => {
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

test("another process over the same history takes it, and no longer once the token is revoked", async () => {
  const { look, own, store, row } = await signedIn();
  const { app: other } = appOver({ ...own, store });
  expect((await look("/", other)).status).toBe(200);
  value(await store.revokeToken(row.id, START));
  for (const app of [undefined, other]) expect((await look("/", app)).status).toBe(401);
});

test("an administrator's token that is kept outside the history opens a session, which ends with it", async () => {
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

test("over HTTPS the cookie is secure, also behind a proxy that is trusted to say so", async () => {
  const forwarded = { "x-forwarded-proto": "https" };
  const trusting = { auth: { required: true, hosts: null, trustForwardedHost: true } };
  expect((await signedIn({}, "https")).first).toContain("; Secure;");
  expect((await signedIn({}, "http", forwarded)).first).not.toContain("Secure");
  expect((await signedIn(trusting, "http", forwarded)).first).toContain("; Secure;");
});
