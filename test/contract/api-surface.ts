import { expect, test } from "vitest";
import { ASSET_TYPES } from "../../api/dependencies.ts";
import { health, ready } from "../../api/http/openapi/answers.ts";
import { PROBLEMS } from "../../api/http/problem.ts";
import { admin, answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send } from "./api-subject.ts";
import { snapshotRow, value } from "./store-rows.ts";

const gzip = async (text: string): Promise<Uint8Array> =>
  new Uint8Array(await new Response(new Response(text).body?.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());

export function surface(of: Of): void {
  test("/healthz and /readyz answer in their documented forms", async () => {
    await answer(await of().fetch("/healthz"), health);
    expect((await answer(await of().fetch("/readyz"), ready)).migration).toMatch(/^\d{4}_.*\.sql$/);
  });

  test("/metrics counts requests, decisions, refusals and rows", async () => {
    const node = fresh("node");
    await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    await post(of(), "/v1/decisions/cgroups", { snapshot: {} });
    const response = await get(of(), "/metrics");
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    expect(text).toMatch(
      /^nodewise_http_requests_total\{route="\/v1\/decisions\/:decision",method="POST",status="422"\} [1-9]/m,
    );
    expect(text).toMatch(/^nodewise_decision_duration_seconds_count\{kind="cgroups"\} [1-9]/m);
    expect(text).toMatch(/^nodewise_refusals_total\{kind="cgroups",code="needs_input"\} [1-9]/m);
    expect(text).toMatch(/^nodewise_history_rows_total\{table="decisions"\} [1-9]/m);
    // a counter is exported before its first event, so that Prometheus sees the first one as an increase
    expect(text).toMatch(/^nodewise_history_sweeps_total\{outcome="held"\} 0$/m);
    expect(text).toMatch(/^nodewise_agreement_total\{kind="resize",verdict="differs"\} \d/m);
    // metrics of the process contain no node name; the gauges about nodes follow, and their number is limited
    expect(text.split("# HELP nodewise_nodes ")[0]).not.toContain(node);
    expect(text).toMatch(/^nodewise_nodes\{severity="ok"\} [1-9]/m);
  });

  test("every answer has a request id, the caller's own if it is well formed", async () => {
    const own = await of().fetch("/healthz", { headers: { "x-request-id": "my-request.1" } });
    expect(own.headers.get("x-request-id")).toBe("my-request.1");
    const given = await of().fetch("/healthz", { headers: { "x-request-id": "<script>" } });
    expect(given.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("every answer has headers against sniffing, framing and cross-origin reading", async () => {
    for (const path of ["/healthz", "/docs", "/v1/nodes", "/nowhere"]) {
      const { headers } = await of().fetch(path, { headers: { origin: "https://elsewhere.example" } });
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
    const etag = (await of().fetch("/openapi.json")).headers.get("etag") ?? "";
    const same = await of().fetch("/openapi.json", { headers: { "if-none-match": etag } });
    expect(same.status).toBe(304);
    const answers = [same, await get(of(), "/"), await get(of(), "/v1/nodes"), await of().fetch("/assets/style.css")];
    for (const { url, headers } of [...answers, await of().fetch("/nowhere"), await of().fetch("/v1/nodes")]) {
      expect(headers.get("cross-origin-resource-policy"), url).toBe("same-origin");
      expect(headers.get("cross-origin-opener-policy"), url).toBe("same-origin");
      expect(headers.get("referrer-policy"), url).toBe("same-origin");
      expect(headers.get("x-request-id"), url).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test("a write that another site's page makes a browser send is refused, whatever the token", async () => {
    const headers = { origin: "https://elsewhere.example" };
    await problemOf(await post(of(), "/v1/lint", { kubeletConfiguration: {} }, headers), "forbidden_site");
    await problemOf(await post(of(), "/lint", "change=a", { origin: "null" }), "forbidden_site");
    expect((await post(of(), "/v1/lint", { kubeletConfiguration: {} })).status).toBe(200);
  });
}

export function pagesAndEncodings(of: Of): void {
  test("pages are complete, escaped and without inline script", async () => {
    const name = `<img src=x>${fresh("node")}`;
    // a snapshot with such a node name is refused, but an older history may contain one
    value(await of().store.putSnapshot(snapshotRow({ node: name, storedAtMs: Date.now() })));
    const home = await (await get(of(), "/")).text();
    expect(home).toContain("&lt;img src=x&gt;");
    expect(home).not.toContain("<img");
    const docs = await (await of().fetch("/docs")).text();
    for (const code of Object.keys(PROBLEMS)) expect(docs).toContain(`id="${code}"`);
    for (const page of [home, docs]) {
      expect(page.startsWith("<!doctype html>")).toBe(true);
      expect(page).not.toMatch(/<script>|\son\w+=|style="|<style/i);
      expect(
        [...page.matchAll(/(?:src|href)="([^"]+)"/g)].filter(([, url]) => /^(?:https?:)?\/\//.test(url ?? "")),
      ).toEqual([]);
    }
    for (const [name, type] of Object.entries(ASSET_TYPES)) {
      const asset = await of().fetch(`/assets/${name}`);
      expect(asset.headers.get("content-type")).toBe(type);
      expect((await asset.text()).length).toBeGreaterThan(20);
    }
    await problemOf(await of().fetch("/assets/..%2fserver.ts"), "not_found");
  });

  test("a problem is a page when HTML was requested", async () => {
    const browser = { accept: "text/html,application/xhtml+xml" };
    const nowhere = await of().fetch("/nowhere<b>", { headers: browser });
    expect(nowhere.status).toBe(404);
    expect(nowhere.headers.get("content-type")).toMatch(/^text\/html/);
    expect(nowhere.headers.get("content-security-policy")).toMatch(/script-src 'self'/);
    const text = await nowhere.text();
    expect(text).toContain('href="/docs#not_found"');
    expect(text).not.toContain("<b>");
    await problemOf(await of().fetch("/nowhere"), "not_found");
  });

  test("a HEAD is answered like a GET, without the body", async () => {
    const head = await of().fetch("/openapi.json", { method: "HEAD" });
    const whole = await of().fetch("/openapi.json");
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect(head.headers.get("etag")).toBe(whole.headers.get("etag"));
    await whole.body?.cancel();
  });

  test("a gzip body is accepted up to the limit when decompressed, and other encodings are refused", async () => {
    const text = JSON.stringify({ snapshot: exampleSnapshot(fresh("node")) });
    const headers = { "content-encoding": "gzip" };
    expect((await post(of(), "/v1/decisions/cgroups", await gzip(text), headers)).status).toBe(200);
    const bomb = await gzip(" ".repeat(64 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(128 * 1024);
    await problemOf(await post(of(), "/v1/decisions/cgroups", bomb, headers), "body_too_large");
    await problemOf(
      await post(of(), "/v1/decisions/cgroups", (await gzip(text)).slice(0, -12), headers),
      "malformed_body",
    );
    await problemOf(await post(of(), "/v1/decisions/cgroups", text, headers), "malformed_body");
    const response = await post(of(), "/v1/decisions/cgroups", text, { "content-encoding": "br" });
    expect(response.headers.get("accept-encoding")).toMatch(/^gzip, /);
    await problemOf(response, "unsupported_encoding");
  });

  test("the OpenAPI document describes existing routes", async () => {
    const document = (await (await of().fetch("/openapi.json")).json()) as {
      openapi: string;
      paths: Record<string, object>;
    };
    expect(document.openapi).toBe("3.1.0");
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        const url = path.replace(/\{\w+\}/g, "x");
        const response = await of().fetch(url, { method: method.toUpperCase(), headers: await admin(of()) });
        expect(response.status, `${method} ${path}`).not.toBe(405);
        if (response.status === 404) expect(await response.text()).toMatch(/"code":"unknown_/);
        else await response.body?.cancel();
      }
    }
  });
}

export function cutOffBodies(of: Of): void {
  test("a truncated gzip body is malformed_body wherever it is cut, in a batch too", async () => {
    const node = fresh("node");
    const request = JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot(node) });
    const whole = await gzip(request);
    const headers = { "content-encoding": "gzip" };
    for (const length of [0, 1, 2, 9, 10, 11, 40, whole.length - 9, whole.length - 8, whole.length - 1]) {
      const cut = whole.slice(0, length);
      await problemOf(await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, cut, headers), "malformed_body");
      await problemOf(await post(of(), "/v1/lint", cut, headers), "malformed_body");
      const ndjson = { ...headers, "content-type": "application/x-ndjson" };
      const lines = (await (await post(of(), "/v1/batch", cut, ndjson)).text()).trim().split("\n");
      expect(lines.at(-1), `${length} bytes`).toContain('"malformed_body"');
    }
  });
}
