import { expect, test } from "vitest";
import { createToken, listTokens, revokeToken } from "../../api/http/auth/tokens.ts";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { nodeList } from "../../api/http/openapi/list-answers.ts";
import { results } from "../../api/http/openapi/operation.ts";
import { admin, answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send, tokenFor } from "./api-subject.ts";
import { value } from "./store-rows.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export function tokens(of: Of): void {
  test("a request without a token is a 401, except for health, docs and the OpenAPI document", async () => {
    await admin(of());
    for (const path of ["/v1/nodes", "/v1/nodes/n1", "/v1/decisions/x", "/v1/snapshots/x", "/metrics"]) {
      const response = await of().fetch(path);
      expect(response.headers.get("www-authenticate")).toMatch(/^Basic realm="[^"]+", Bearer realm="nodewise"$/);
      const { advice } = await problemOf(response, "unauthorized");
      for (const way of ["Authorization: Bearer nw_", "Basic", "/sign-in"]) expect(advice).toContain(way);
    }
    const headers = { "content-type": "application/json" };
    await problemOf(await of().fetch("/v1/decisions/cgroups", { method: "POST", headers, body: "{}" }), "unauthorized");
    for (const path of ["/healthz", "/readyz", "/docs", "/openapi.json"])
      expect((await of().fetch(path)).status, path).toBe(200);
  });

  test("a wrong, malformed or revoked token is refused", async () => {
    const { token, row } = value(
      await createToken(of().store, { name: "gone", scopes: ["read"], node: null, now: Date.now() }),
    );
    expect((await get(of(), "/v1/nodes", bearer(token))).status).toBe(200);
    const wrong = token.slice(0, -1) + (token.endsWith("0") ? "1" : "0");
    for (const authorization of [
      `Bearer ${wrong}`,
      "Bearer nonsense",
      "Bearer ",
      `Basic ${btoa(`x:${wrong}`)}`,
      token,
    ]) {
      await problemOf(await get(of(), "/v1/nodes", { authorization }), "unauthorized");
    }
    // a page's JSON can be read with the credentials with which the page was opened; requests that a browser does not
    // send by itself need a bearer token
    const basic = { authorization: `Basic ${btoa(`x:${token}`)}` };
    expect((await get(of(), "/v1/nodes", basic)).status).toBe(200);
    const asked = await send(of(), "POST", "/v1/lint", { kubeletConfiguration: {} }, basic);
    await problemOf(asked, "unauthorized");
    expect(asked.headers.get("www-authenticate")).toMatch(/^Bearer /);
    expect(value(await revokeToken(of().store, row.id, Date.now()))).toEqual({ revoked: true });
    await problemOf(await get(of(), "/v1/nodes", bearer(token)), "unauthorized");
  });

  test("the history holds only the hash of a token", async () => {
    const { token } = value(
      await createToken(of().store, { name: "kept", scopes: ["read"], node: null, now: Date.now() }),
    );
    const kept = JSON.stringify(value(await listTokens(of().store)));
    expect(kept).toContain('"kept"');
    expect(kept).not.toContain(token.slice(-20));
  });

  test("a token's scopes allow the named actions, and admin allows everything", async () => {
    const read = bearer(await tokenFor(of().store, ["read"]));
    const decide = bearer(await tokenFor(of().store, ["decide"]));
    const both = bearer(await tokenFor(of().store, ["decide", "read"]));
    const body = { snapshot: exampleSnapshot(fresh("node")) };
    expect((await problemOf(await post(of(), "/v1/decisions/cgroups", body, read), "forbidden")).detail).toContain(
      "`decide`",
    );
    await problemOf(await get(of(), "/v1/nodes", decide), "forbidden");
    expect((await post(of(), "/v1/decisions/cgroups", body, decide)).status).toBe(200);
    expect((await get(of(), "/v1/nodes", read)).status).toBe(200);
    expect((await post(of(), "/v1/decisions/cgroups", body, both)).status).toBe(200);
    expect((await get(of(), "/metrics", both)).status).toBe(200);
  });
}

export function nodeTokens(of: Of): void {
  signIn(of);
  test("a node's token is valid for its own node only, wherever a request names a node", async () => {
    const [mine, theirs] = [fresh("node"), fresh("node")];
    const own = bearer(await tokenFor(of().store, ["decide", "read"], mine));
    const decided = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(mine) }, own),
      decisionAnswer,
    );
    await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(theirs) });
    const attempts = [
      post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(theirs) }, own),
      send(of(), "PUT", `/v1/nodes/${theirs}/snapshot`, exampleSnapshot(theirs), own),
      get(of(), `/v1/nodes/${theirs}`, own),
      get(of(), `/v1/nodes/${theirs}/decisions`, own),
    ];
    for (const response of await Promise.all(attempts))
      expect((await problemOf(response, "forbidden_node")).detail).toContain(mine);
    expect(value(await of().store.listDecisions({ node: theirs, kind: "allocatable", limit: 1 })).items).toEqual([]);
    for (const path of [
      `/v1/decisions/${decided.id}`,
      `/v1/snapshots/${decided.snapshotId}`,
      `/v1/nodes/${mine}`,
      `/v1/nodes/${mine}/decisions`,
    ]) {
      expect((await get(of(), path, own)).status, path).toBe(200);
    }
    expect((await answer(await get(of(), "/v1/nodes", own), nodeList)).nodes.map((row) => row.name)).toEqual([mine]);
    const batch = await post(
      of(),
      "/v1/batch",
      [mine, theirs].map((node) => JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot(node) })).join("\n"),
      { ...own, "content-type": "application/x-ndjson" },
    );
    const lines = (await batch.text())
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text) as { id?: string; problem?: { code: string } });
    expect(lines.map((l) => l.problem?.code ?? l.id)).toEqual([decided.id, "forbidden_node"]);
  });

  test("a page asks browsers for the token, and shows only its own node for a node's token", async () => {
    const response = await of().fetch("/");
    expect(response.headers.get("www-authenticate")).toMatch(/^Basic /);
    await problemOf(response, "unauthorized");
    const [mine, theirs] = [fresh("node"), fresh("node")];
    for (const node of [mine, theirs]) await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const token = await tokenFor(of().store, ["read"], mine);
    const page = await of().fetch("/", { headers: { authorization: `Basic ${btoa(`anyone:${token}`)}` } });
    const text = await page.text();
    expect(page.status).toBe(200);
    expect(text).toContain(mine);
    expect(text).not.toContain(theirs);
  });
}

function signIn(of: Of): void {
  test("a browser signs in through a form, without the browser's password dialog", async () => {
    const token = await tokenFor(of().store, ["read"]);
    const browser = { accept: "text/html", "sec-fetch-site": "same-origin" };
    const asked = await of().fetch("/decisions?node=a&kind=cgroups", { headers: browser });
    expect(asked.status).toBe(401);
    expect(asked.headers.get("www-authenticate")).toBe('Bearer realm="nodewise"');
    const shown = await asked.text();
    expect(shown).toContain('action="/sign-in"');
    expect(shown).toContain('name="to" value="/decisions?node=a&amp;kind=cgroups"');
    for (const way of ["Bearer nw_", "Basic", "/sign-in"]) expect(shown).toContain(way);
    // requests by a page's scripts get the same challenge
    for (const name of ["sec-fetch-site", "referer"]) {
      const json = await of().fetch("/v1/nodes", { headers: { accept: "application/json", [name]: "same-origin" } });
      expect(json.headers.get("www-authenticate"), name).toBe('Bearer realm="nodewise"');
    }
    const streamed = await of().fetch("/live", { headers: { accept: "text/event-stream" } });
    expect(streamed.headers.get("www-authenticate")).toBe('Bearer realm="nodewise"');

    const sign = (fields: Record<string, string>, headers: Record<string, string> = browser) =>
      of().fetch("/sign-in", {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(fields).toString(),
        redirect: "manual",
      });
    const wrong = await sign({ token: `nw_${"0".repeat(12)}_${"0".repeat(48)}`, to: "/" });
    expect([wrong.status, wrong.headers.get("set-cookie")]).toEqual([401, null]);
    expect(await wrong.text()).toContain("This token is not known here");
    await problemOf(
      await sign({ token }, { ...browser, accept: "*/*", "sec-fetch-site": "cross-site" }),
      "forbidden_site",
    );

    const signed = await sign({ token: ` ${token}\r\n`, to: "/decisions?node=a" });
    expect([signed.status, signed.headers.get("location")]).toEqual([303, "/decisions?node=a"]);
    const cookie = signed.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(
      /^nodewise=[0-9a-f]{12}\.\d+\.\d+\.[0-9a-f]{64}; Max-Age=3600; Path=\/; HttpOnly; (?:Secure; )?SameSite=Strict$/,
    );
    expect(cookie).not.toContain(token.slice(-48));
    for (const to of ["https://elsewhere", "//elsewhere", "/\\elsewhere", "", "/a b"])
      expect((await sign({ token, to })).headers.get("location"), to).toBe("/");

    const own = { ...browser, cookie: `other=1; ${cookie.split(";")[0]}` };
    expect((await of().fetch("/v1/nodes", { headers: own })).status).toBe(200);
    for (const path of ["/", "/lint", "/docs", "/decisions", "/sign-in", "/no-such-page"]) {
      const shown = await of().fetch(path, { headers: own });
      expect(shown.status, path).toBe(path === "/no-such-page" ? 404 : 200);
      expect(await shown.text(), path).toMatch(/<header>.*<button>Sign out<.*<\/header>/s);
    }
    for (const path of ["/docs", "/sign-in"])
      expect(await (await of().fetch(path, { headers: browser })).text(), path).not.toContain("Sign out");
    // a request that changes something, other than a page's form, needs an Authorization header
    const post = { method: "POST", headers: { ...own, "content-type": "application/json" }, body: "{}" };
    expect((await of().fetch("/v1/lint", post)).status).toBe(403);
    const out = await of().fetch("/sign-out", { method: "POST", headers: own, redirect: "manual" });
    expect(out.headers.get("set-cookie")).toMatch(/^nodewise=; Max-Age=0; /);
    // the token itself is no session, nor is a changed session or one with another token's id
    const [id = "", since = "", until = "", mac = ""] = (cookie.split(/[=;]/)[1] ?? "").split(".");
    const other = (await tokenFor(of().store, ["admin"])).slice(3, 15);
    for (const forged of [
      token,
      [other, since, until, mac].join("."),
      [id, since, Number(until) + 1, mac].join("."),
      [id, Number(since) + 1, until, mac].join("."),
      [id, since, until, mac.replace(/^./, (digit) => (digit === "0" ? "1" : "0"))].join("."),
      [id, since, until].join("."),
    ]) {
      const headers = { ...browser, cookie: `nodewise=${forged}` };
      expect((await of().fetch("/", { headers })).status, forged).toBe(401);
      expect(await (await of().fetch("/sign-in", { headers })).text()).toContain('name="token"');
    }
    value(await revokeToken(of().store, id, Date.now()));
    expect((await of().fetch("/", { headers: own })).status).toBe(401);
  });
}

export function otherNodesIds(of: Of): void {
  test("with a node's token, ids of other nodes get the same answer as unknown ids", async () => {
    const [mine, theirs] = [fresh("node"), fresh("node")];
    const own = bearer(await tokenFor(of().store, ["decide", "read"], mine));
    const other = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(theirs) }),
      decisionAnswer,
    );
    const nothing = "0123456789abcdef0123456789abcdef";
    const page = { ...own, authorization: `Basic ${btoa(`x:${own.authorization.slice(7)}`)}` };
    const asked = {
      decision: [
        (id: string) => post(of(), "/v1/results", results(id), own),
        (id: string) => post(of(), `/v1/decisions/${id}/replay`, {}, own),
        (id: string) => get(of(), `/v1/decisions/${id}`, own),
        (id: string) => get(of(), `/decisions/${id}`, page),
        (id: string) => get(of(), `/what-if?decision=${id}`, page),
        (id: string) => get(of(), `/replay?decision=${id}`, page),
      ],
      snapshot: [
        (id: string) => post(of(), "/v1/decisions/cgroups", { snapshotId: id }, own),
        (id: string) => post(of(), "/v1/lint", { snapshotId: id }, own),
        (id: string) => get(of(), `/v1/snapshots/${id}`, own),
        (id: string) => get(of(), `/what-if?snapshot=${id}`, page),
      ],
    };
    for (const [what, asks] of Object.entries(asked)) {
      const theirId = what === "decision" ? other.id : (other.snapshotId as string);
      for (const ask of asks) {
        const [there, absent] = [await ask(theirId), await ask(nothing)];
        expect([there.status, absent.status], ask.toString()).toEqual([404, 404]);
        const message = (await there.text()).replaceAll(theirId, nothing);
        const { requestId: _, ...problem } = JSON.parse(message) as Record<string, unknown>;
        const { requestId: __, ...same } = JSON.parse(await absent.text()) as Record<string, unknown>;
        expect(problem).toEqual(same);
        expect(message).not.toContain(theirs);
      }
    }
  });
}
