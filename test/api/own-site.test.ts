import { expect, test } from "vitest";
import { isForeign } from "../../api/http/auth/authorize.ts";
import { createToken } from "../../api/http/auth/tokens.ts";
import { ROUTES } from "../../api/http/index.ts";
import { PAGES } from "../../api/ui/index.ts";
import { value } from "../contract/store-rows.ts";
import { raw, serving } from "./serving.ts";

const WRITING = [...ROUTES, ...PAGES]
  .filter(({ method }) => method !== "GET")
  .map(({ method, path }) => [method, path.replace(/:\w+/g, "x")] as const);
const FORM = "maxPods=5";

const ask = (port: number, method: string, path: string, headers: readonly string[], type = "text/plain") =>
  raw(
    port,
    `${[`${method} ${path} HTTP/1.1`, ...headers, `Content-Type: ${type}`, `Content-Length: ${FORM.length}`, "Connection: close"].join("\r\n")}\r\n\r\n${FORM}`,
  );
const isRefused = (answer: string): boolean =>
  answer.startsWith("HTTP/1.1 403") && answer.includes('"code":"forbidden_site"');

test("a writing route refuses requests that a page of another site makes a browser send", async () => {
  expect(WRITING.length).toBeGreaterThan(8);
  const { api, store } = await serving();
  const host = `Host: 127.0.0.1:${api.port}`;
  const foreign = [
    ["Origin: http://evil.example"],
    ["Origin: null"],
    ["Origin: "],
    [`Origin: http://127.0.0.1:${api.port + 1}`],
    ["Origin: http://127.0.0.1"],
    [`Origin: http://localhost:${api.port}`],
    [`Origin: http://127.0.0.1:${api.port}@evil.example`],
    [`Origin: http://evil.example/127.0.0.1:${api.port}`],
    [`Origin: file://127.0.0.1:${api.port}`],
    ["Origin: http://evil.example", `X-Forwarded-Host: evil.example`],
    ["Origin: http://evil.example", "Sec-Fetch-Site: none"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: same-site"],
  ];
  const own = [[], [`Origin: http://127.0.0.1:${api.port}`], ["Sec-Fetch-Site: same-origin"], ["Sec-Fetch-Site: none"]];
  const all = async (): Promise<void> => {
    for (const [method, path] of WRITING) {
      for (const headers of foreign)
        expect(isRefused(await ask(api.port, method, path, [host, ...headers])), `${path} ${headers}`).toBe(true);
      for (const headers of own)
        expect(isRefused(await ask(api.port, method, path, [host, ...headers])), `${path} ${headers}`).toBe(false);
    }
  };
  await all();
  const form = "application/x-www-form-urlencoded";
  expect(isRefused(await ask(api.port, "POST", "/lint", [host, "Origin: http://evil.example"], form))).toBe(true);
  value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  await all();
});

test("links from other sites and requests of programs are accepted", async () => {
  const { api } = await serving();
  for (const headers of ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site"])
    expect(await ask(api.port, "GET", "/what-if", [`Host: 127.0.0.1:${api.port}`, headers])).toMatch(/^HTTP\/1.1 200/);
});

test("X-Forwarded-Host counts only with trustForwardedHost, and must then be an allowed host", async () => {
  const proxied = (port: number, ...headers: string[]) =>
    ask(port, "POST", "/lint", [`Host: 127.0.0.1:${port}`, ...headers], "application/x-www-form-urlencoded");
  const origin = "Origin: https://nodes.example";
  const reported = await serving({ trustForwardedHost: true, allowedHosts: ["nodes.example"] });
  expect(isRefused(await proxied(reported.api.port, origin, "X-Forwarded-Host: nodes.example"))).toBe(false);
  expect(isRefused(await proxied(reported.api.port, origin, "X-Forwarded-Host: nodes.example:443, 10.0.0.7"))).toBe(
    false,
  );
  expect(isRefused(await proxied(reported.api.port, origin, "X-Forwarded-Host: evil.example"))).toBe(true);
  expect(isRefused(await proxied(reported.api.port, origin))).toBe(true);
  expect(isRefused(await proxied(reported.api.port, `Origin: http://127.0.0.1:${reported.api.port}`))).toBe(false);
  const rebound = ["Origin: http://evil.example", "X-Forwarded-Host: evil.example"];
  expect(await proxied(reported.api.port, ...rebound)).toContain('"code":"forbidden_host"');
  const pretended = await ask(reported.api.port, "GET", "/", ["Host: evil.example", "X-Forwarded-Host: nodes.example"]);
  expect(pretended).toContain('"code":"forbidden_host"');
  const untold = await serving({ allowedHosts: ["nodes.example"] });
  expect(isRefused(await proxied(untold.api.port, origin, "X-Forwarded-Host: nodes.example"))).toBe(true);
});

test.each([
  ["https://a.example", "a.example", false],
  ["https://a.example", "a.example:443", false],
  ["https://a.example:443", "A.example", false],
  ["http://a.example", "a.example:80", false],
  ["http://a.example", "a.example:443", true],
  ["https://a.example", "a.example:80", true],
  ["http://[::1]:8787", "[::1]:8787", false],
  ["http://a.example.evil", "a.example", true],
  ["http://b.a.example", "a.example", true],
])("Origin %s with Host %s is foreign: %s", (origin, host, expected) => {
  expect(isForeign({ method: "POST", host, origin, site: undefined })).toBe(expected);
});
