import { applyD1Migrations, env, SELF } from "cloudflare:test";
import { beforeAll, expect, test } from "vitest";
import { newToken, webSha256 } from "../../api/auth/token.ts";
import { DEFAULT_RETENTION } from "../../api/retention.ts";
import worker from "../../api/worker.ts";
import { openD1 } from "../../db/open-d1.ts";
import { SNAPSHOT_GRACE_MS } from "../../db/prune.ts";
import { apiContract } from "../contract/api.ts";
import { problemOf } from "../contract/api-subject.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";

beforeAll(() => applyD1Migrations(env.DB, env.MIGRATIONS));

apiContract("the API inside workerd, over D1", async () => ({
  fetch: (path, init) => SELF.fetch(`https://nodewise.test${path}`, init),
  store: openD1(env.DB),
  dispose: async () => {},
}));

test("the token whose hash is bound as a secret is an administrator's, before the history holds any", async () => {
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

test("zstd bodies, which workerd cannot undo, are refused with what it can", async () => {
  const { text } = newToken();
  const headers = { authorization: `Bearer ${text}`, "content-type": "application/json", "content-encoding": "zstd" };
  const request = new Request("https://nodewise.test/v1/decisions/cgroups", { method: "POST", headers, body: "{}" });
  const response = await worker.fetch(request, { DB: env.DB, NODEWISE_TOKEN_SHA256: await webSha256(text) });
  expect(response.headers.get("accept-encoding")).toBe("gzip, identity");
  await problemOf(response, "unsupported_encoding");
});

test("the cron trigger removes what is too old", async () => {
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
