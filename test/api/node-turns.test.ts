import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { epochMs } from "../../api/model/units.ts";
import type { Store } from "../../db/store.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { emptyHistory } from "../kit/empty-history.ts";
import { appOver, dataDirectory, serving } from "./serving.ts";

interface Answer {
  readonly snapshotId: string;
  readonly decisions: readonly { readonly id: string; readonly again?: { readonly times: number } }[];
}
const turn = async (url: string, body: object): Promise<Answer> => {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${url}/v1/nodes/n1/turns`, init);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as Answer;
};
/** A first turn, and two more in which only the sequence number changes. */
async function threeTurns(url: string): Promise<Answer> {
  const snapshot = exampleSnapshot("n1");
  let answer = await turn(url, { snapshot, decisions: [{ kind: "cgroups" }] });
  for (const sequence of [2, 3]) {
    const decisions = [{ kind: "cgroups", holds: answer.decisions[0]?.id }];
    answer = await turn(url, { base: answer.snapshotId, changes: { set: { sequence } }, decisions });
  }
  expect(answer.decisions[0]?.again?.times).toBe(3);
  return answer;
}

test("a turn that changes nothing is not written until the node is read", async () => {
  const { api, store } = await serving();
  const { snapshotId, decisions } = await threeTurns(api.url);
  const id = decisions[0]?.id ?? "";
  expect(value(await store.getDecision(id))?.series).toBeUndefined();
  expect(value(await store.getSnapshot(snapshotId))).toBeNull();
  const seen = (await (await fetch(`${api.url}/v1/nodes/n1/decisions`)).json()) as { decisions: object[] };
  expect(seen.decisions).toMatchObject([{ id, times: 3, lastSnapshotId: snapshotId }]);
  expect(value(await store.getSnapshot(snapshotId))?.id).toBe(snapshotId);
});

test("an unwritten snapshot is found by its id, and a deleted node is back with its next turn", async () => {
  const { api, store } = await serving();
  const { snapshotId } = await threeTurns(api.url);
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ snapshotId }),
  };
  expect((await fetch(`${api.url}/v1/decisions/allocatable`, init)).status).toBe(200);
  expect((await fetch(`${api.url}/v1/nodes/n1/deletion`, { method: "POST" })).status).toBe(200);
  expect(value(await store.getNode("n1"))?.deletedMs).not.toBeNull();
  await turn(api.url, { base: snapshotId, changes: { set: { sequence: 4 } }, decisions: [{ kind: "cgroups" }] });
  const { deletedMs, lastSeenMs } = value(await store.getNode("n1")) ?? {};
  expect(lastSeenMs).toBeGreaterThanOrEqual(deletedMs ?? Number.NaN);
});

test("a server that ends writes unwritten turns, and the next one continues from them", async () => {
  const dataDir = dataDirectory();
  const first = await serving({ dataDir });
  const { snapshotId, decisions } = await threeTurns(first.api.url);
  await first.api.close();
  const { api, store } = await serving({ dataDir });
  expect(value(await store.getDecision(decisions[0]?.id ?? ""))?.series).toMatchObject({ times: 3 });
  const next = await turn(api.url, {
    base: snapshotId,
    changes: { set: { sequence: 4 } },
    decisions: [{ kind: "cgroups" }],
  });
  expect(next.decisions[0]).toMatchObject({ id: decisions[0]?.id, again: { times: 4 } });
});

test("a snapshot that only an unrecorded decision was about is stored with the next decision about it", async () => {
  const { api, store } = await serving();
  const first = await turn(api.url, { snapshot: exampleSnapshot("n1"), decisions: [{ kind: "cgroups" }] });
  const asked = { changes: { set: { sequence: 2 } }, decisions: [{ kind: "cgroups", record: false }] };
  const { snapshotId } = await turn(api.url, { base: first.snapshotId, ...asked });
  expect(value(await store.getSnapshot(snapshotId))).toBeNull();
  const { decisions } = await turn(api.url, { base: snapshotId, changes: {}, decisions: [{ kind: "allocatable" }] });
  expect(value(await store.getDecision(decisions[0]?.id ?? ""))?.snapshotId).toBe(snapshotId);
  expect(value(await store.getSnapshot(snapshotId))?.id).toBe(snapshotId);
});

/** The turns of a node with many pods, one of which has another memory limit each time. */
async function limitChanges(
  url: string,
  limits: readonly number[],
  from?: string,
  first = 1,
): Promise<readonly Answer[]> {
  const pod = (i: number, limit: number) => {
    const resources = { limits: { cpu: "1", memory: `${limit}Mi` } };
    return { metadata: { name: `p${i}`, uid: `u${i}` }, spec: { containers: [{ name: "c", resources }] } };
  };
  const decisions = [{ kind: "cgroups", explain: "off" }];
  const snapshot = { ...exampleSnapshot("n1"), pods: Array.from({ length: 20 }, (_, i) => pod(i, 8)) };
  const answers = from === undefined ? [await turn(url, { snapshot, decisions })] : [];
  for (const [i, limit] of limits.entries()) {
    const base = answers.at(-1)?.snapshotId ?? from;
    const changes = { set: { sequence: first + i }, pods: { upsert: [pod(3, limit)] } };
    answers.push(await turn(url, { base, changes, decisions }));
  }
  return answers;
}
const idsIn = (answers: readonly Answer[]) => answers.map(({ decisions }) => decisions[0]?.id ?? "");
/** The bytes that a decision takes in its own row; the whole text is stored elsewhere. */
const rowBytes = (dataDir: string): readonly number[] => {
  const database = new Sqlite(join(dataDir, "history.db"), { readonly: true });
  const rows = database.prepare("SELECT length(body) FROM decisions ORDER BY seq").pluck().all();
  database.close();
  return rows as number[];
};

test("a decision of which one pod's part changed is stored without the rest, also after a restart", async () => {
  const dataDir = dataDirectory();
  const first = await serving({ dataDir });
  const answers = await limitChanges(first.api.url, [9, 10, 11]);
  const ids = idsIn(answers);
  const bodies = async (store: Store) =>
    Promise.all(ids.map(async (id) => value(await store.getDecision(id))?.body ?? ""));
  const read = await bodies(first.store);
  for (const [i, body] of read.entries()) {
    const posted = { snapshotId: answers[i]?.snapshotId, explain: "off" };
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(posted) };
    const whole = (await (await fetch(`${first.api.url}/v1/decisions/cgroups`, init)).json()) as object;
    expect(whole).toMatchObject(JSON.parse(body));
  }
  await first.api.close();
  expect(rowBytes(dataDir).map((bytes) => bytes > 0 && bytes < 2000)).toEqual([false, true, true, true]);

  const { api, store } = await serving({ dataDir });
  const again = await limitChanges(api.url, [11, 12], answers.at(-1)?.snapshotId, 9);
  // the newest row has ranges of another's text, and this one would have a text of its own
  expect(again[0]?.decisions[0]).toMatchObject({ id: ids.at(-1), again: { times: 2 } });
  expect(await bodies(store)).toEqual(read);
  await api.close();
});

test("a decision is stored as a whole if the text that it would refer to is no longer stored", async () => {
  const dataDir = dataDirectory();
  const { api, store } = await serving({ dataDir });
  const answers = await limitChanges(api.url, [9]);
  const database = new Sqlite(join(dataDir, "history.db"));
  database.exec("DELETE FROM texts");
  database.close();
  const [id = ""] = idsIn(await limitChanges(api.url, [10], answers.at(-1)?.snapshotId));
  expect(value(await store.getDecision(id))?.body).toContain('"memory":10485760');
  await api.close();
});

test("an unwritten snapshot keeps its stats while later turns and what-if questions have other ones", async () => {
  const { api, store } = await serving();
  const statsOf = (pods: number) => ({
    node: { memory: { availableBytes: 1_000_000 + pods } },
    pods: Array.from({ length: pods }, (_, i) => ({ podRef: { name: `ü${i}`, namespace: "default", uid: `u${i}` } })),
  });
  const first = await turn(api.url, { snapshot: exampleSnapshot("n1"), decisions: [{ kind: "cgroups" }] });
  const ids = [first.snapshotId];
  const then = async (pods: number, record: boolean, extra = {}) => {
    const changes = { set: { stats: statsOf(pods), ...extra } };
    const { snapshotId } = await turn(api.url, { base: ids.at(-1), changes, decisions: [{ kind: "cgroups", record }] });
    ids.push(snapshotId);
  };
  for (const [pods, record] of [
    [5, true],
    [2, true],
    [7, false],
    [90, false],
    [1, false],
  ] as const)
    await then(pods, record);
  // a changed configuration is written immediately, with the snapshots that waited before it
  await then(30, true, { kubeletConfiguration: { podPidsLimit: 99 } });
  for (const pods of [31, 3]) await then(pods, true);
  await fetch(`${api.url}/v1/nodes/n1/decisions`);
  const stored = await Promise.all(ids.map(async (id) => value(await store.getSnapshot(id))?.body));
  const stats = stored.map((body) => (body ? (JSON.parse(body) as { stats?: unknown }).stats : null));
  expect(stats).toEqual([undefined, null, statsOf(2), null, null, null, statsOf(30), null, statsOf(3)]);
});

/**
 * A fleet on an API that remembers only two of its nodes; `take` posts the next turn of one, and returns whether the
 * history was read for it.
 */
function fleetOf(names: readonly string[], clock: { ms: number }) {
  const history = emptyHistory();
  const read: string[] = [];
  const store: typeof history = {
    ...history,
    getSnapshot: (id) => {
      read.push(id);
      return history.getSnapshot(id);
    },
  };
  const ofOne = 3 * JSON.stringify(exampleSnapshot("n1")).length;
  const nodeStates = { maxBytes: 2.5 * ofOne, holdMs: 600_000, atEnd: () => {} };
  const { app } = appOver({ now: () => epochMs(clock.ms), nodeStates, store });
  const bases = new Map<string, string>();
  let sequence = 1;
  const take = async (node: string): Promise<boolean> => {
    read.length = 0;
    const base = bases.get(node);
    const from =
      base === undefined ? { snapshot: exampleSnapshot(node) } : { base, changes: { set: { sequence: ++sequence } } };
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(from) };
    const response = await app.fetch(new Request(`http://localhost/v1/nodes/${node}/turns`, init));
    const answer = (await response.json()) as Answer;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    bases.set(node, answer.snapshotId);
    return read.length > 0;
  };
  const round = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const name of names) if (await take(name)) found.push(name);
    return found;
  };
  return { take, round };
}

test("nodes beyond the memory limit for turns get in only when another node falls silent", async () => {
  const clock = { ms: Date.parse("2026-11-21T07:00:00Z") };
  const { take, round } = fleetOf(["n1", "n2", "n3", "n4"], clock);
  await round();
  for (let n = 0; n < 3; n++) {
    clock.ms += 10_000;
    expect(await round()).toEqual(["n3", "n4"]);
  }
  clock.ms += 400_000;
  expect([await take("n2"), await take("n3"), await take("n4")]).toEqual([false, true, true]);
  clock.ms += 10_000;
  expect([await take("n3"), await take("n2"), await take("n4")]).toEqual([false, false, true]);
});
