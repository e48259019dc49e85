import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import type { ServeOptions } from "../../api/server.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { value } from "../contract/store-rows.ts";
import { type Event, receiver } from "./decision-log-receiver.ts";
import { dataDirectory, serving } from "./serving.ts";

type Log = NonNullable<ServeOptions["decisionLog"]>;
const logTo = (to: Log["to"], over: Partial<Log> = {}): Log => ({ to, labels: {}, version: "1", erase: [], ...over });
const HEADERS = { "content-type": "application/json" };
const post = async (
  url: string,
  kind: string,
  body: unknown,
): Promise<{ readonly id: string; readonly verdict: string }> => {
  const answer = await fetch(`${url}/v1/decisions/${kind}`, {
    method: "POST",
    headers: HEADERS,
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as { id: string; verdict: string };
};
/** A different decision for each `n`. */
const snapshotOf = (n: number, node = "n1") =>
  exampleSnapshot(node, { sequence: n, kubeletConfiguration: { podPidsLimit: 1000 + n } });
const metric = async (url: string, name: string): Promise<number | undefined> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
};
const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 15_000, interval: 50 });

test("a recorded decision is delivered in OPA's decision log form, and its input can be posted again", async () => {
  const { url, posts, taken } = await receiver();
  const { api } = await serving({
    decisionLog: logTo({ url, token: () => "s3cret" }, { labels: { cluster: "prod" }, version: "1.2.3" }),
  });
  const answer = await post(api.url, "allocatable", { snapshot: capturedSnapshot(), explain: "full" });
  // a repeated decision is not a new event
  await post(api.url, "allocatable", { snapshot: capturedSnapshot({ sequence: 2 }), explain: "full" });
  const eviction = await post(api.url, "eviction", { snapshot: capturedSnapshot() });
  await until(() => expect(taken).toHaveLength(2));
  expect(posts[0]?.headers).toMatchObject({
    "content-type": "application/json",
    "content-encoding": "gzip",
    authorization: "Bearer s3cret",
  });
  const [first, second] = taken as [Event, Event];
  expect(first).toMatchObject({
    labels: { id: expect.stringMatching(/^[\da-f-]{36}$/), version: "1.2.3", cluster: "prod" },
    decision_id: answer.id,
    bundles: { kubelet: { revision: "kubelet-1.36+11" } },
    path: "nodewise/allocatable",
    result: { verdict: answer.verdict, decision: expect.any(Object), reasons: expect.any(Array) },
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    custom: { kind: "allocatable", node: "n1", verdict: answer.verdict, snapshotId: expect.any(String) },
  });
  expect(first.erased).toBeUndefined();
  expect([second.decision_id, second.path]).toEqual([eviction.id, "nodewise/eviction"]);
  // an id is a hash of the request
  const again = await serving();
  expect((await post(again.api.url, "allocatable", first.input)).id).toBe(answer.id);
});

test("the decision log has no secrets of a snapshot, and erases what its pointers name", async () => {
  const { url, posts, taken } = await receiver();
  const { api } = await serving({
    decisionLog: logTo(
      { url, token: () => null },
      { erase: ["/input/snapshot/node/metadata", "/result/reasons", "/result/gone", "/input/snapshot/pods/0/spec"] },
    ),
  });
  const SECRET = "hunter2-is-not-to-be-seen";
  const probe = { httpGet: { path: `/${SECRET}`, port: 80, httpHeaders: [{ name: "authorization", value: SECRET }] } };
  const pod = {
    metadata: {
      name: "p",
      namespace: "d",
      uid: "u",
      annotations: { note: SECRET, "kubectl.kubernetes.io/last-applied-configuration": SECRET },
    },
    spec: {
      containers: [
        {
          name: "c",
          image: "i",
          env: [{ name: "PASSWORD", value: SECRET }],
          command: ["sh", "-c", SECRET],
          args: [SECRET],
          livenessProbe: probe,
          readinessProbe: { exec: { command: ["cat", SECRET] } },
          lifecycle: { preStop: { exec: { command: [SECRET] } } },
        },
      ],
      volumes: [{ name: "v", csi: { driver: "d", volumeAttributes: { password: SECRET } } }],
    },
    status: {
      phase: "Running",
      containerStatuses: [
        {
          name: "c",
          ready: true,
          restartCount: 1,
          lastState: { terminated: { exitCode: 1, reason: "Error", message: SECRET } },
        },
      ],
    },
  };
  const snapshot = exampleSnapshot("n1", {
    pods: [pod],
    kubeletConfiguration: { staticPodURLHeader: { authorization: [SECRET] } },
  });
  await post(api.url, "cgroups", { snapshot });
  await until(() => expect(taken).toHaveLength(1));
  const [event] = taken as [Event];
  expect(JSON.stringify(posts)).not.toContain(SECRET);
  expect(event.erased).toEqual(["/input/snapshot/node/metadata", "/result/reasons", "/input/snapshot/pods/0/spec"]);
  expect(event.result["reasons"]).toBeUndefined();
  expect(event.input).toMatchObject({ snapshot: { node: expect.any(Object), pods: [expect.any(Object)] } });
  expect(JSON.stringify(event.input)).not.toContain('"containers"');
});

test.each([
  ["/input/snapshot", { explain: "reasons" }],
  ["/input", undefined],
])("%s can be erased from the decision log as a whole", async (pointer, input) => {
  const { url, taken } = await receiver();
  const { api } = await serving({ decisionLog: logTo({ url, token: () => null }, { erase: [pointer] }) });
  await post(api.url, "cgroups", { snapshot: snapshotOf(1) });
  await until(() => expect(taken).toHaveLength(1));
  expect(taken[0]?.input).toEqual(input);
  expect(taken[0]?.erased).toEqual([pointer]);
});

test("a decision is delivered again until the receiver accepts it, and later ones wait", {
  timeout: 30_000,
}, async () => {
  const { url, posts, taken } = await receiver([[500], [429, { "retry-after": "1" }]]);
  const { api, log } = await serving({ decisionLog: logTo({ url, token: () => null }) });
  const ids: string[] = [];
  ids.push((await post(api.url, "cgroups", { snapshot: snapshotOf(1) })).id);
  await until(() => expect(posts).toHaveLength(1));
  await until(async () => expect(await metric(api.url, "nodewise_decision_log_waiting")).toBe(1));
  expect(await metric(api.url, "nodewise_decision_log_lag_seconds")).toBeGreaterThan(0);
  for (const n of [2, 3]) ids.push((await post(api.url, "cgroups", { snapshot: snapshotOf(n) })).id);
  await until(() => expect(taken.map((one) => one.decision_id)).toEqual(ids));
  expect(await metric(api.url, "nodewise_decision_log_delivered_total")).toBe(3);
  expect(await metric(api.url, 'nodewise_decision_log_attempts_total{outcome="failed"}')).toBe(2);
  await until(async () => expect(await metric(api.url, "nodewise_decision_log_waiting")).toBe(0));
  const lines = log.lines.filter(({ message }) => message.startsWith("decision log"));
  expect(lines.map(({ level, fields }) => [level, fields["reason"] ?? fields["attempts"]])).toEqual([
    ["warn", "it answered 500"],
    ["warn", "it answered 429"],
    ["info", 3],
  ]);
  // the URL's query may contain a secret
  expect(JSON.stringify(log.lines)).not.toContain("partition");
});

test("a slow or absent receiver of the decision log delays no answer", { timeout: 30_000 }, async () => {
  const { url, posts, taken } = await receiver([[200, {}, 10_000]]);
  const { api } = await serving({ decisionLog: logTo({ url, token: () => null }) });
  await post(api.url, "cgroups", { snapshot: snapshotOf(0) });
  await until(() => expect(posts).toHaveLength(1));
  for (let n = 1; n <= 20; n++) await post(api.url, "cgroups", { snapshot: snapshotOf(n) });
  // the first post is not answered yet; it times out later, and is sent again
  expect(posts).toHaveLength(1);
  await until(() => expect(new Set(taken.map((one) => one.decision_id)).size).toBe(21));
});

test("batches of the decision log are as large as allowed, and 413 halves them down to a reduced event", {
  timeout: 30_000,
}, async () => {
  const { url, posts, taken, limits } = await receiver([[500]]);
  const { api, log } = await serving({ decisionLog: logTo({ url, token: () => null }, { maxBytes: 20_000 }) });
  limits.bytes = 8_000;
  const ids: string[] = [];
  for (let n = 0; n < 24; n++) ids.push((await post(api.url, "cgroups", { snapshot: snapshotOf(n) })).id);
  await until(() => expect(taken).toHaveLength(24));
  expect(taken.map((one) => one.decision_id)).toEqual(ids);
  expect(taken.filter(({ erased }) => erased !== undefined)).toEqual([]);
  const sizes = posts.filter(({ events }) => events.length > 1).map(({ bytes }) => bytes);
  expect(Math.max(...sizes)).toBeGreaterThan(12_000);
  expect(Math.max(...sizes)).toBeLessThan(20_100);
  expect(await metric(api.url, 'nodewise_decision_log_lost_total{cause="too-large"}')).toBe(0);

  const labels = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`label-${i}`, `value-${i}`]));
  const node = { ...(snapshotOf(50)["node"] as object), metadata: { name: "n1", labels } };
  const large = await post(api.url, "cgroups", { snapshot: { ...snapshotOf(50), node } });
  await until(() => expect(taken.at(-1)).toMatchObject({ decision_id: large.id, erased: ["/input/snapshot"] }));
  // an event that is too large even in its reduced form is dropped, logged and counted
  limits.bytes = 100;
  const lost = await post(api.url, "cgroups", { snapshot: snapshotOf(100) });
  await until(async () => expect(await metric(api.url, 'nodewise_decision_log_lost_total{cause="too-large"}')).toBe(1));
  expect(log.lines.some(({ fields }) => fields["decisionId"] === lost.id)).toBe(true);
  limits.bytes = 8_000;
  const next = await post(api.url, "cgroups", { snapshot: snapshotOf(101) });
  await until(() => expect(taken.at(-1)?.decision_id).toBe(next.id));
});

test("decisions not delivered before a stop are delivered by the next API, and lost ones are counted", {
  timeout: 60_000,
}, async () => {
  const dataDir = dataDirectory();
  const away = logTo({ url: new URL("http://127.0.0.1:1/logs"), token: () => null });
  const first = await serving({ dataDir, decisionLog: away });
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.push((await post(first.api.url, "cgroups", { snapshot: snapshotOf(n) })).id);
  await first.api.close();
  // without the decision log, whose events wait meanwhile
  const second = await serving({ dataDir });
  ids.push((await post(second.api.url, "cgroups", { snapshot: snapshotOf(5) })).id);
  expect(await metric(second.api.url, "nodewise_decision_log_waiting")).toBeUndefined();
  await second.api.close();
  value(await second.store.prune({ nowMs: Date.now(), maxRowsPerNode: 4 }));
  const { url, taken } = await receiver();
  const third = await serving({ dataDir, decisionLog: logTo({ url, token: () => null }) });
  await until(() => expect(taken.map((one) => one.decision_id)).toEqual(ids.slice(2)));
  expect(await metric(third.api.url, 'nodewise_decision_log_lost_total{cause="removed"}')).toBe(2);
  expect(third.log.lines.find(({ level }) => level === "error")?.fields).toMatchObject({ lost: 2 });
});

test("an unreadable row does not hold up the decision log", async () => {
  const dataDir = dataDirectory();
  const first = await serving({
    dataDir,
    decisionLog: logTo({ url: new URL("http://127.0.0.1:1/"), token: () => null }),
  });
  const ids: string[] = [];
  for (let n = 0; n < 3; n++) ids.push((await post(first.api.url, "cgroups", { snapshot: snapshotOf(n) })).id);
  await first.api.close();
  const { default: Sqlite } = await import("better-sqlite3");
  const file = new Sqlite(join(dataDir, "history.db"));
  file.prepare("UPDATE decisions SET body = x'1f8b0800deadbeef', encoding = 'gzip' WHERE id = ?").run(ids[1]);
  file.close();
  const { url, taken } = await receiver();
  const { api } = await serving({ dataDir, decisionLog: logTo({ url, token: () => null }) });
  await until(() => expect(taken.map((one) => one.decision_id)).toEqual([ids[0], ids[2]]));
  expect(await metric(api.url, 'nodewise_decision_log_lost_total{cause="damaged"}')).toBe(1);
});

test("a decision log file has one event a line and mode 0600, and is recreated when it was moved", {
  timeout: 30_000,
}, async () => {
  const dir = dataDirectory();
  const file = join(dir, "decisions.ndjson");
  writeFileSync(file, '{"cut of');
  const { api } = await serving({ decisionLog: logTo({ file }) });
  const linesOf = (path: string) => readFileSync(path, "utf8").split("\n").slice(0, -1);
  const idsIn = (path: string) =>
    linesOf(path)
      .filter((line) => line.startsWith('{"labels"'))
      .map((line) => (JSON.parse(line) as Event).decision_id);
  const one = await post(api.url, "cgroups", { snapshot: snapshotOf(1) });
  await until(() => expect(idsIn(file)).toEqual([one.id]));
  // a line that a crash truncated remains a separate line
  expect(linesOf(file)[0]).toBe('{"cut of');
  renameSync(file, `${file}.1`);
  const two = await post(api.url, "cgroups", { snapshot: snapshotOf(2) });
  await until(() => expect(existsSync(file) && idsIn(file)).toEqual([two.id]));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(idsIn(`${file}.1`)).toEqual([one.id]);
  rmSync(file);
  const three = await post(api.url, "cgroups", { snapshot: snapshotOf(3) });
  await until(() => expect(existsSync(file) && idsIn(file)).toEqual([three.id]));
});

test("a decision log file in a missing folder is an error at the start", async () => {
  const file = join(dataDirectory(), "gone", "decisions.ndjson");
  await expect(serving({ decisionLog: logTo({ file }) })).rejects.toThrow(/there is no folder .*gone: create it first/);
});
