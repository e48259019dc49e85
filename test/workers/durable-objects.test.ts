import { applyD1Migrations, env, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import type { D1PreparedStatement } from "@cloudflare/workers-types";
import { beforeAll, expect, test } from "vitest";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { placeOf } from "../../api/service/canonical.ts";
import { NodeObject } from "../../api/worker/node-object.ts";
import worker from "../../api/worker.ts";
import { openStore, rollUp } from "../../db/open/worker.ts";
import { openD1 } from "../../db/sqlite/d1/open.ts";
import { MIGRATIONS } from "../../db/sqlite/durable/open.ts";
import type { ExportedRows } from "../../db/store.ts";
import { type ApiSubject, exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";

let token: string;
beforeAll(async () => {
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  token = newToken().text;
});

const bound = { DB: env.DB, NODES: env.OBJECTS };
const store = openStore(bound);
const fleet = openD1(env.DB);
const DAY_MS = 86_400_000;

const ask: ApiSubject["fetch"] = async (path, init) =>
  worker.fetch(
    new Request(`https://nodewise.test${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    }),
    { ...bound, NODEWISE_TOKEN_SHA256: await webSha256(token) },
  );
const objectOf = async (node: string) => env.OBJECTS.get(env.OBJECTS.idFromName(await placeOf(webSha256, node)));

interface Turned {
  readonly snapshotId: string;
  readonly decisions: readonly { readonly id: string; readonly again?: { readonly times: number } }[];
}
async function turn(node: string, body: object): Promise<Turned> {
  const answered = await ask(`/v1/nodes/${node}/turns`, {
    method: "POST",
    body: JSON.stringify({ decisions: [{ kind: "allocatable" }], ...body }),
  });
  expect(answered.status).toBe(200);
  return (await answered.json()) as Turned;
}
const alarmOf = async (node: string) =>
  runInDurableObject(await objectOf(node), (_object, { storage }) => storage.getAlarm());

test("every id, of a turn or a whole post, begins with its node's place, and a lookup needs only the id", async () => {
  const place = await placeOf(webSha256, "placed");
  const { snapshotId, decisions } = await turn("placed", { snapshot: exampleSnapshot("placed") });
  const body = JSON.stringify({ snapshot: exampleSnapshot("placed") });
  const posted = await ask("/v1/decisions/allocatable", { method: "POST", body });
  const again = (await posted.json()) as { readonly id: string; readonly snapshotId: string };
  expect([again.id, again.snapshotId]).toEqual([decisions[0]?.id, snapshotId]);
  for (const id of [again.id, snapshotId]) expect(id).toMatch(new RegExp(`^${place}[0-9a-f]{24}$`));
  expect((await ask(`/v1/decisions/${again.id}`)).status).toBe(200);
  expect((await ask(`/v1/snapshots/${snapshotId}`)).status).toBe(200);
});

test("a turn continues from the last one after the object was moved, with its counts", async () => {
  const node = "moved";
  const first = await turn(node, { snapshot: exampleSnapshot(node) });
  let last = first;
  for (let sequence = 101; sequence <= 105; sequence++) {
    last = await turn(node, { base: last.snapshotId, changes: { set: { sequence } } });
    await evictDurableObject(await objectOf(node));
  }
  expect(last.decisions[0]).toMatchObject({ id: first.decisions[0]?.id, again: { times: 6 } });
  const [row] = value(await store.listDecisions({ node, limit: 9 })).items;
  expect(row).toMatchObject({ id: first.decisions[0]?.id, series: { times: 6, lastSnapshotId: last.snapshotId } });
});

test("the fleet gets a new decision at once, the next within a minute, and repeats within ten", async () => {
  const node = "heard";
  const first = await turn(node, { snapshot: exampleSnapshot(node) });
  expect(await alarmOf(node)).toBeLessThanOrEqual(Date.now());
  await runDurableObjectAlarm(await objectOf(node));
  const count = Date.now();
  const counted = async () =>
    value(await fleet.listDecisions({ node, limit: 9 })).items.map((one) => one.series?.times);
  expect(await counted()).toEqual([undefined]);
  expect(value(await fleet.listFleet(count - DAY_MS, node))[0]).toMatchObject({ name: node, decisions: 1 });

  await turn(node, { base: first.snapshotId, changes: { set: { sequence: 7 } } });
  const minutes = async () => Math.round((((await alarmOf(node)) ?? 0) - count) / 60_000);
  expect(await minutes()).toBe(10);
  expect(await counted()).toEqual([undefined]);
  await turn(node, { snapshot: exampleSnapshot(node, { kubeletConfiguration: { kubeReserved: { cpu: "900m" } } }) });
  expect(await minutes()).toBe(1);

  await runDurableObjectAlarm(await objectOf(node));
  expect(await counted()).toEqual([undefined, 2]);
  const [own] = value(await store.listFleet(count - DAY_MS, node));
  expect(value(await fleet.listFleet(count - DAY_MS, node))[0]).toEqual(own);
  expect(own).toMatchObject({ decisions: 3 });
});

test("what cannot be sent to the fleet is sent later, and decisions for the node continue meanwhile", async () => {
  const node = "later";
  await turn(node, { snapshot: exampleSnapshot(node) });
  const object = await objectOf(node);
  await env.DB.prepare("ALTER TABLE nodes RENAME TO away").run();
  await runDurableObjectAlarm(object);
  expect(await alarmOf(node)).toBeGreaterThan(Date.now() + 50_000);
  await turn(node, { snapshot: exampleSnapshot(node, { kubeletConfiguration: { kubeReserved: { cpu: "901m" } } }) });
  expect(await alarmOf(node)).toBeGreaterThan(Date.now() + 50_000);
  await env.DB.prepare("ALTER TABLE away RENAME TO nodes").run();
  expect(value(await fleet.getNode(node))).toBeNull();
  await runDurableObjectAlarm(object);
  expect(value(await fleet.getNode(node))).toMatchObject({ name: node });
});

test("ids of an imported history are found once the fleet knows them", async () => {
  const old = decisionRow({ id: "0123456789abcdef0123456789abcdef", node: "imported" });
  value(await store.record({ decision: old }));
  await runDurableObjectAlarm(await objectOf("imported"));
  expect(value(await store.getDecision(old.id))).toEqual(old);
});

test("requests for unknown ids leave nothing behind", async () => {
  await problemOf(await ask("/v1/decisions/ffffffffffffffffffffffffffffffff"), "unknown_decision");
  await problemOf(await ask("/v1/nodes/nobody"), "unknown_node");
  for (const place of ["ffffffff", await placeOf(webSha256, "nobody")]) {
    const stub = env.OBJECTS.get(env.OBJECTS.idFromName(place));
    expect(await runInDurableObject(stub, (_object, { storage }) => storage.sql.databaseSize)).toBeLessThan(10_000);
  }
});

test("an alarm removes outdated rows, and finally the object itself", async () => {
  const node = "old";
  value(await store.record({ decision: decisionRow({ node, decidedAtMs: Date.now() - 90 * DAY_MS }) }));
  const object = await objectOf(node);
  await runDurableObjectAlarm(object);
  expect(value(await store.getNode(node))).toMatchObject({ name: node });
  await runInDurableObject(object, (_object, { storage }) => storage.kv.put("swept", 1));
  await runDurableObjectAlarm(object);
  expect(value(await store.getNode(node))).toBeNull();
  expect(await alarmOf(node)).toBeNull();
});

test("repeated decisions may be held in the object until it is read or an alarm fires", async () => {
  const node = "holding";
  const object = await objectOf(node);
  const post = (body: object) =>
    new TextEncoder().encode(JSON.stringify({ decisions: [{ kind: "allocatable" }], ...body }));
  await runInDurableObject(object, async (_object, state) => {
    const holding = new NodeObject(state, { ...bound, NODEWISE_HOLD_SECONDS: "300" });
    const turned = async (body: object): Promise<Turned> => {
      const answer = await holding.turn(node, post(body));
      if (!answer.ok) throw new Error(answer.error.detail);
      return JSON.parse(answer.value);
    };
    const times = () =>
      state.storage.sql
        .exec("SELECT count FROM series")
        .toArray()
        .map((row) => row["count"]);
    let { snapshotId } = await turned({ snapshot: exampleSnapshot(node) });
    for (const sequence of [201, 202])
      ({ snapshotId } = await turned({ base: snapshotId, changes: { set: { sequence } } }));
    expect(times()).toEqual([]);
    await holding.call("getNode", [node]);
    expect(times()).toEqual([3]);
    await turned({ base: snapshotId, changes: { set: { sequence: 203 } } });
    expect(times()).toEqual([3]);
    await holding.alarm();
    expect(times()).toEqual([4]);
  });
});

test("a request needs few D1 statements, each with few parameters", async () => {
  const statements: string[] = [];
  const bindings: number[] = [];
  const counted = (real: D1PreparedStatement): D1PreparedStatement =>
    new Proxy(real, {
      get: (target, name) => {
        if (name === "bind")
          return (...values: unknown[]) => {
            bindings.push(values.length);
            return target.bind(...values);
          };
        const found = Reflect.get(target, name);
        return typeof found === "function" ? found.bind(target) : found;
      },
    });
  const DB = new Proxy(env.DB, {
    get: (target, name) => {
      if (name !== "prepare") return Reflect.get(target, name).bind(target);
      return (sql: string) => {
        statements.push(sql);
        return counted(target.prepare(sql));
      };
    },
  });
  const own = await openStore(bound).createToken({
    id: "0123456789ab",
    name: "counted",
    hash: await webSha256(`nw_0123456789ab_${"0".repeat(48)}`),
    scopes: ["decide", "read"],
    node: "counted",
    createdAtMs: 1,
    revokedAtMs: null,
  });
  expect(own.ok).toBe(true);
  const headers = { authorization: `Bearer nw_0123456789ab_${"0".repeat(48)}`, "content-type": "application/json" };
  const body = JSON.stringify({ snapshot: exampleSnapshot("counted"), decisions: [{ kind: "allocatable" }] });
  const turned = await worker.fetch(
    new Request("https://nodewise.test/v1/nodes/counted/turns", { method: "POST", headers, body }),
    { DB, NODES: env.OBJECTS },
  );
  expect(turned.status).toBe(200);
  // the only statement reads the caller's token
  expect(statements).toHaveLength(1);
  const object = await objectOf("counted");
  await runInDurableObject(object, (_object, { storage }) => rollUp(storage, DB, Date.now()));
  expect(statements.length).toBeLessThanOrEqual(1 + 5);
  expect(Math.max(...bindings)).toBe(1);
});

test("an object has the same migrations as D1", () => {
  expect(Object.keys(MIGRATIONS)).toEqual(env.MIGRATIONS.map((one) => (one as { readonly name: string }).name));
});

test("a decision made after all earlier rows were removed is passed on, although its row number repeats", async () => {
  const node = "renewed";
  const object = await objectOf(node);
  const atMs = Date.now();
  value(await store.record({ decision: decisionRow({ id: "1".repeat(32), node, decidedAtMs: atMs - 90 * DAY_MS }) }));
  value(await store.putSnapshot(snapshotRow({ node, storedAtMs: atMs })));
  await runDurableObjectAlarm(object);
  await runInDurableObject(object, (_object, { storage }) => storage.kv.put("swept", 1));
  await store.putSnapshot(snapshotRow({ id: "2".repeat(32), node, storedAtMs: atMs }));
  await runDurableObjectAlarm(object);
  expect(value(await store.listDecisions({ node, limit: 9 })).items).toEqual([]);
  const renewed = decisionRow({ id: "3".repeat(32), node, decidedAtMs: atMs });
  value(await store.record({ decision: renewed }));
  await runDurableObjectAlarm(object);
  expect(value(await fleet.listDecisions({ node, limit: 9 })).items.map(({ id }) => id)).toContain(renewed.id);
});

test("an unreachable object gives 503 with Retry-After", async () => {
  const lost = Object.assign(new Error("Durable Object reset because its code was updated."), { retryable: true });
  const refuse = () => Promise.reject(lost);
  const NODES = new Proxy(env.OBJECTS, {
    get: (target, name) =>
      name === "get" ? () => ({ turn: refuse, call: refuse }) : Reflect.get(target, name).bind(target),
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  for (const [path, method, body] of [
    ["/v1/nodes/away/turns", "POST", JSON.stringify({ snapshot: exampleSnapshot("away") })],
    ["/v1/nodes/away", "GET", null],
  ] as const) {
    const answered = await worker.fetch(new Request(`https://nodewise.test${path}`, { method, headers, body }), {
      DB: env.DB,
      NODES,
      NODEWISE_TOKEN_SHA256: await webSha256(token),
    });
    expect(answered.headers.get("retry-after")).toBe("5");
    await problemOf(answered, "history_unavailable");
  }
});

test("imported rows go to their nodes' objects, with texts shared over calls and nodes", async () => {
  await applyD1Migrations(env.MOVED, env.MIGRATIONS);
  const source = openD1(env.MOVED);
  const shared = JSON.stringify("shared".repeat(1000));
  const nodes = ["imported-a", "imported-b"];
  const rows = nodes.map((node) => {
    const body = `{"own":"${node}","shared":${shared}}`;
    const at = body.indexOf(shared);
    return decisionRow({
      node,
      body,
      repeats: [[at, at + shared.length]],
      id: crypto.randomUUID().replaceAll("-", ""),
    });
  });
  for (const decision of rows) value(await source.record({ decision }));
  const added: Record<string, number> = {};
  for (const node of nodes)
    for await (const step of source.exportRows({ node })) {
      const imported = value(await store.importRows(value(step).rows, Date.now()));
      for (const [type, count] of Object.entries(imported.added)) added[type] = (added[type] ?? 0) + count;
      // the alarm checks whether the object contains anything
      for (const one of nodes) await runDurableObjectAlarm(await objectOf(one));
    }
  expect(added).toMatchObject({ decision: 2, text: 1 });
  for (const { id, node, body } of rows) {
    expect(value(await store.getDecision(id))).toMatchObject({ node, body });
    expect(value(await store.listDecisions({ node, limit: 9 })).items).toMatchObject([{ id }]);
    expect(value(await fleet.listFleet(0, node))[0]).toMatchObject({ name: node });
  }
  const steps: ExportedRows[] = [];
  for await (const step of store.exportRows({})) steps.push(value(step));
  const decided = (of: readonly ExportedRows[]) =>
    of.flatMap((step) => step.rows.flatMap((row) => (row.type === "decision" ? [row.id] : [])));
  expect(decided(steps)).toEqual(expect.arrayContaining(rows.map(({ id }) => id)));
  const progress = steps.map((step) => step.progress ?? -1);
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  // an export that continues at any place returns the remaining rows
  for (const [i, { place }] of steps.entries()) {
    const rest: ExportedRows[] = [];
    for await (const step of store.exportRows({}, place)) rest.push(value(step));
    expect(decided(rest)).toEqual(decided(steps.slice(i + 1)));
  }
  for await (const step of store.exportRows({}, "node/2/x")) expect(step).toMatchObject({ ok: false });
});
