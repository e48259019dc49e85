import { applyD1Migrations, env, SELF } from "cloudflare:test";
import type { D1PreparedStatement } from "@cloudflare/workers-types";
import { beforeAll, expect, test, vi } from "vitest";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { DEFAULT_RETENTION } from "../../api/retention.ts";
import worker from "../../api/worker.ts";
import { openD1 } from "../../db/sqlite/d1/open.ts";
import { SNAPSHOT_GRACE_MS } from "../../db/store.ts";
import { apiContract } from "../contract/api.ts";
import { exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";

beforeAll(() => applyD1Migrations(env.DB, env.MIGRATIONS));

apiContract("the API inside workerd, over D1", async () => ({
  fetch: (path, init) => SELF.fetch(`https://nodewise.test${path}`, init),
  store: openD1(env.DB),
  dispose: async () => {},
}));

test("a token whose hash is bound as a secret is an administrator's, before the history has tokens", async () => {
  const { text } = newToken();
  const bound = { DB: env.DB, NODEWISE_TOKEN_SHA256: (await webSha256(text)).toUpperCase() };
  const ask = (token: string) =>
    worker.fetch(
      new Request("https://nodewise.test/metrics", { headers: { authorization: `Bearer ${token}` } }),
      bound,
    );
  expect((await ask(text)).status).toBe(200);
  await problemOf(await ask(newToken().text), "unauthorized");
});

/**
 * A database that works as the real one does until `fails` returns true for the SQL of a statement or batch; then it
 * throws an error with these words.
 */
function failing(words: string, fails: (sql: string) => boolean): typeof env.DB {
  const refuse = () => Promise.reject(new Error(words));
  const broken = new WeakSet<object>();
  const statement = (real: D1PreparedStatement, isBroken: boolean): D1PreparedStatement => {
    if (isBroken) broken.add(real);
    return new Proxy(real, {
      get: (target, name) => {
        if (name === "bind") return (...values: unknown[]) => statement(target.bind(...values), isBroken);
        if (name === "target") return target;
        if (isBroken && ["all", "raw", "run", "first"].includes(String(name))) return refuse;
        const found = Reflect.get(target, name);
        return typeof found === "function" ? found.bind(target) : found;
      },
    });
  };
  return new Proxy(env.DB, {
    get: (target, name) => {
      if (name === "prepare") return (sql: string) => statement(target.prepare(sql), fails(sql));
      if (name === "batch")
        return (list: (D1PreparedStatement & { target: D1PreparedStatement })[]) =>
          list.some((one) => broken.has(one.target)) ? refuse() : target.batch(list.map((one) => one.target));
      const found = Reflect.get(target, name);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

test.each([
  "Network connection lost.",
  "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
  "D1_ERROR: Internal error in D1 DB storage caused object to be reset.",
  "Cannot resolve D1 DB due to transient issue on remote node.",
  "Too many API requests by single worker invocation.",
])("a D1 error gives 503 with Retry-After, or an unrecorded decision: %s", async (words) => {
  const { text } = newToken();
  const bound = (fails: (sql: string) => boolean) => ({
    DB: failing(words, fails),
    NODEWISE_TOKEN_SHA256: hash,
  });
  const hash = await webSha256(text);
  const headers = { authorization: `Bearer ${text}`, "content-type": "application/json" };
  const read = await worker.fetch(
    new Request("https://nodewise.test/v1/nodes", { headers }),
    bound(() => true),
  );
  expect(read.headers.get("retry-after")).toBe("5");
  expect((await problemOf(read, "history_unavailable")).detail).toContain(words.replace(/\.$/, ""));
  const body = JSON.stringify({ snapshot: exampleSnapshot("overloaded") });
  const post = new Request("https://nodewise.test/v1/decisions/allocatable", { method: "POST", headers, body });
  const decided = await worker.fetch(
    post,
    bound((sql) => /^\s*INSERT/i.test(sql)),
  );
  expect(decided.status).toBe(200);
  expect(await decided.json()).toMatchObject({ recorded: false, notRecorded: "history-failed", kind: "allocatable" });
});

test("zstd bodies, which workerd cannot decode, are refused with the accepted encodings", async () => {
  const { text } = newToken();
  const headers = { authorization: `Bearer ${text}`, "content-type": "application/json", "content-encoding": "zstd" };
  const request = new Request("https://nodewise.test/v1/decisions/cgroups", { method: "POST", headers, body: "{}" });
  const response = await worker.fetch(request, { DB: env.DB, NODEWISE_TOKEN_SHA256: await webSha256(text) });
  expect(response.headers.get("accept-encoding")).toBe("gzip, identity");
  await problemOf(response, "unsupported_encoding");
});

test("the cron trigger removes outdated rows", async () => {
  const store = openD1(env.DB);
  const old = Date.now() - DEFAULT_RETENTION.maxAgeMs - SNAPSHOT_GRACE_MS;
  const kept = decisionRow({ id: "kept", node: "pruned", decidedAtMs: Date.now() });
  const gone = decisionRow({ id: "gone", node: "pruned", decidedAtMs: old, snapshotId: "gone-snapshot" });
  value(
    await store.record({
      decision: gone,
      snapshot: snapshotRow({ id: "gone-snapshot", node: "other", storedAtMs: old }),
    }),
  );
  value(await store.record({ decision: kept }));
  await worker.scheduled(null, { DB: env.DB });
  expect(value(await store.getDecision("gone"))).toBeNull();
  expect(value(await store.getDecision("kept"))).not.toBeNull();
});

test("the sweep follows the retention variables, and removes nothing when one is invalid", async () => {
  const store = openD1(env.DB);
  const old = decisionRow({ id: "two-days", node: "kept-days", decidedAtMs: Date.now() - 2 * 86_400_000 });
  value(await store.record({ decision: old }));
  const logged: string[] = [];
  const listening = vi.spyOn(console, "log").mockImplementation((line) => void logged.push(String(line)));
  const failed = vi.spyOn(console, "error").mockImplementation((line) => void logged.push(String(line)));
  await worker.scheduled(null, { DB: env.DB, NODEWISE_KEEP_DAYS: "one" });
  expect(logged.join("\n")).toMatch(/NODEWISE_KEEP_DAYS: `one` is not a whole number/);
  expect(value(await store.getDecision("two-days"))).toEqual(old);
  await worker.scheduled(null, { DB: env.DB, NODEWISE_KEEP_DAYS: 1, NODEWISE_SWEEP_STATEMENTS: "45" });
  expect(value(await store.getDecision("two-days"))).toBeNull();
  listening.mockRestore();
  failed.mockRestore();
});
