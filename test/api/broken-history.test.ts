import { closeSync, openSync, statSync, writeSync } from "node:fs";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import * as z from "zod";
import { fullDecision } from "../../api/http/openapi/decision-answers.ts";
import { decisionList, nodeList } from "../../api/http/openapi/list-answers.ts";
import { historyReplay } from "../../api/service/replay/replay-answer.ts";
import { failure } from "../../db/failure.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { problemOf } from "../contract/api-subject.ts";
import { decisionRow, noise, resultRow, snapshotRow, value } from "../contract/store-rows.ts";
import { captured, capturedNode } from "../kit/real-node.ts";
import { appOver, dataDirectory, type Serving, serving } from "./serving.ts";

const SNAPSHOT = "5".repeat(32);
const json = { "content-type": "application/json" };
const post = (body: object): RequestInit => ({ method: "POST", headers: json, body: JSON.stringify(body) });

/** A history with one intact decision of n1, and truncated rows of n2, as after a disk fault. */
async function halved() {
  const { app, store } = appOver();
  const answer = await app.request("/v1/decisions/allocatable", post({ snapshot: capturedNode("n1") }));
  const { id } = (await answer.json()) as { id: string };
  const good = value(await store.getDecision(id));
  if (good === null) throw new Error("not recorded");
  const snapshot = snapshotRow({ id: SNAPSHOT, node: "n2", body: '{"node":{"meta' });
  const late = { node: "n2", snapshotId: SNAPSHOT, decidedAtMs: good.decidedAtMs + 1 };
  const evicts = decisionRow({ ...late, kind: "eviction", verdict: "evicts", body: '{"decision":{"cond' });
  value(await store.record({ decision: evicts, snapshot }));
  const half = decisionRow({ ...late, kind: "cgroups", ask: '{"explain"', body: good.body });
  value(await store.record({ decision: half }));
  value(await store.addResults(good.id, [resultRow({ body: '{"steps":[' })]));
  return { app, store, good, evicts, half };
}

test("an unreadable row asked for by id is a history_unavailable problem that names it", async () => {
  const { app, good, evicts, half } = await halved();
  const named: readonly (readonly [string, RequestInit, RegExp])[] = [
    [`/v1/decisions/${evicts.id}`, {}, new RegExp(`decision \`${evicts.id}\`: what is stored of it is not JSON`)],
    [`/v1/decisions/${half.id}`, {}, new RegExp(`the ask of decision \`${half.id}\``)],
    [`/v1/decisions/${good.id}`, {}, new RegExp(`report \`result-[^\`]*\` of decision \`${good.id}\``)],
    ["/v1/decisions/memory", post({ snapshotId: SNAPSHOT }), new RegExp(`snapshot \`${SNAPSHOT}\``)],
    ["/v1/lint", post({ kubeletConfiguration: {}, snapshotId: SNAPSHOT }), new RegExp(`snapshot \`${SNAPSHOT}\``)],
    ["/v1/lint", post({ kubeletConfiguration: {}, node: "n2" }), new RegExp(`snapshot \`${SNAPSHOT}\``)],
    ["/what-if?node=n2", {}, new RegExp(`snapshot \`${SNAPSHOT}\``)],
  ];
  for (const [path, request, words] of named) {
    const { detail } = await problemOf(await app.request(path, request), "history_unavailable");
    expect(detail, path).toMatch(words);
    expect(detail, path).toMatch(/restore the database from a backup$/);
  }
});

test("pages that list unreadable rows show the other rows", async () => {
  const { app, good } = await halved();
  for (const path of ["/", "/nodes/n2", "/nodes/n2/decisions", `/decisions/${good.id}`, "/lint?node=n2"]) {
    const page = await app.request(path, { headers: { accept: "text/html" } });
    expect(page.status, path).toBe(200);
  }
  const decision = await (await app.request(`/decisions/${good.id}`)).text();
  expect(decision).toMatch(/report <code>result-[^<]*<\/code>: what is stored of it is not JSON/);
});

test("lint counts touched decisions over the readable rows", async () => {
  const { app } = await halved();
  const answer = await app.request("/v1/lint", post({ kubeletConfiguration: { maxPods: -1 } }));
  expect(answer.status).toBe(200);
  const { findings } = (await answer.json()) as { findings: { touched: { of: number } | null }[] };
  expect(findings.filter(({ touched }) => touched !== null).map(({ touched }) => touched?.of)).toContain(1);
});

const CAPTURED = captured("snapshot.json");
const KINDS_DECIDED = ["allocatable", "cgroups", "eviction"] as const;

/** A server whose history file is changed while it runs, and the ids of its three decisions about node n1. */
async function changedBeneath(...statements: readonly ((ids: readonly string[]) => readonly [string, ...string[]])[]) {
  const server = await serving();
  const ids: string[] = [];
  for (const kind of KINDS_DECIDED) {
    const answer = await fetch(`${server.api.url}/v1/decisions/${kind}`, post({ snapshot: CAPTURED }));
    expect(answer.status, await answer.clone().text()).toBe(200);
    ids.push(((await answer.json()) as { id: string }).id);
  }
  const file = new Database(historyFile(server.dataDir));
  for (const of of statements) {
    const [sql, ...params] = of(ids);
    expect(file.prepare(sql).run(...params).changes).toBeGreaterThan(0);
  }
  file.close();
  return { ...server, ids };
}
const read = async <S extends z.ZodType>({ api }: Serving, path: string, shape: S, request: RequestInit = {}) => {
  const answer = await fetch(api.url + path, request);
  const body = await answer.text();
  expect(answer.status, `${path}: ${body}`).toBe(200);
  return shape.parse(JSON.parse(body)) as z.output<S>;
};
/** All pages of a replay: a slow machine needs more than one. */
async function replayedBy(server: Serving) {
  const pages: z.output<typeof historyReplay>[] = [];
  for (let pageToken: string | null | undefined; pageToken !== null; pageToken = pages.at(-1)?.nextPageToken)
    pages.push(await read(server, "/v1/replay", historyReplay, post(pageToken === undefined ? {} : { pageToken })));
  const sum = (counts: readonly (Readonly<Record<string, number>> | undefined)[]) => {
    const sums: Record<string, number> = {};
    for (const all of counts)
      for (const [name, count] of Object.entries(all ?? {})) sums[name] = (sums[name] ?? 0) + count;
    return sums;
  };
  return {
    counts: sum(pages.map(({ counts }) => counts)),
    ofKind: (kind: string) => sum(pages.map(({ byKind }) => byKind[kind])),
    unreadable: pages.flatMap(({ unreadable }) => unreadable),
  };
}
const pageOf = async ({ api }: Serving, path: string, request: RequestInit = {}): Promise<string> => {
  const page = await fetch(api.url + path, { ...request, headers: { accept: "text/html" } });
  const text = await page.text();
  expect(page.status, `${path}: ${text.slice(-600)}`).toBe(200);
  return text;
};

test("a decision of an unknown kind is named as such, counted as unreadable, and shown as stored", async () => {
  const server = await changedBeneath(
    ([id = ""]) => ["UPDATE decisions SET kind = 'foo' WHERE id = ?", id],
    ([id = ""]) => ["UPDATE latest SET kind = 'foo' WHERE decision_id = ?", id],
  );
  const id = server.ids[0] ?? "";
  const why = new RegExp(`decision \`${id}\` is of a kind that this version does not know: \`foo\`; .*backup$`);
  const replayed = await replayedBy(server);
  expect(replayed.counts).toMatchObject({ replayed: 2, same: 2, unreadable: 1 });
  expect(replayed.ofKind("foo")).toMatchObject({ replayed: 0, unreadable: 1 });
  expect(replayed.unreadable).toMatchObject([{ id, kind: "foo", unreadable: expect.stringMatching(why) }]);
  const again = await fetch(`${server.api.url}/v1/decisions/${id}/replay`, post({}));
  expect((await problemOf(again, "history_unavailable")).detail).toMatch(why);

  const listed = await read(server, "/v1/nodes/n1/decisions", decisionList);
  expect(listed.decisions.map(({ kind }) => kind).sort()).toEqual(["cgroups", "eviction", "foo"]);
  const [known] = fullDecision.options;
  const full = await read(server, `/v1/decisions/${id}`, known.extend({ kind: z.string() }));
  expect([full.kind, full.decision]).toMatchObject(["foo", { allocatable: expect.anything() }]);
  for (const path of ["/", "/nodes/n1", "/nodes/n1/decisions"])
    expect(await pageOf(server, path)).toContain("<td>foo</td>");
  for (const path of ["/lint?node=n1", `/replay?decision=${id}`, "/what-if?node=n1"]) await pageOf(server, path);
  const page = await pageOf(server, `/decisions/${id}`);
  expect(page).toContain("is of a kind that this version does not know: <code>foo</code>");
  expect(page).toContain("As it is stored");
  expect(page).not.toContain("/replay?decision=");
  const linted = await fetch(`${server.api.url}/v1/lint`, post({ kubeletConfiguration: { maxPods: -1 }, node: "n1" }));
  const { findings } = (await linted.json()) as { findings: { touched: { of: number } | null }[] };
  expect(findings.flatMap(({ touched }) => touched?.of ?? [])).toContain(2);

  const form = new FormData();
  form.append("as", "patch");
  const answer = await pageOf(server, "/replay", { method: "POST", body: form });
  expect(answer).toContain('1</span><span class="soft">cannot be read');
  expect(answer).toContain("<td>foo</td>");
});

test("pages show all but the decision and snapshot whose compressed bodies are damaged", async () => {
  const broken = "SET encoding = 'gzip', body = x'1f8b0800deadbeef'";
  const server = await changedBeneath(
    ([, , id = ""]) => [`UPDATE decisions ${broken} WHERE id = ?`, id],
    ([, , id = ""]) => ["UPDATE latest SET verdict = 'evicts' WHERE decision_id = ?", id],
  );
  expect(await pageOf(server, "/")).toContain(
    `<a href="/decisions/${server.ids[2]}"><span class="tag bad">evicts</span>`,
  );
  expect(await pageOf(server, "/nodes/n1")).toContain("what is recorded cannot be read by this version");
  const file = new Database(historyFile(server.dataDir));
  file.prepare(`UPDATE snapshots ${broken}`).run();
  file.close();
  expect(await pageOf(server, "/lint?node=n1")).toContain("the newest snapshot of node <code>n1</code> is damaged");
  expect(await pageOf(server, "/nodes/n1")).toMatch(
    /The newest snapshot of this node cannot be read: snapshot <code>[0-9a-f]{32}<\/code>: its compressed body/,
  );
});

test.each(["[[0,", '{"a":1}', '["x"]', "7"])(
  "shared text references that are %s make only their own decision unreadable",
  async (parts) => {
    const server = await changedBeneath(([id = ""]) => ["UPDATE decisions SET parts = ? WHERE id = ?", parts, id]);
    const id = server.ids[0] ?? "";
    const named = await fetch(`${server.api.url}/v1/decisions/${id}`);
    expect((await problemOf(named, "history_unavailable")).detail).toContain(`decision \`${id}\``);
    const replayed = await replayedBy(server);
    expect(replayed.counts).toMatchObject({ replayed: 2, unreadable: 1 });
    expect(replayed.unreadable).toMatchObject([{ id }]);
    const file = new Database(historyFile(server.dataDir));
    file.prepare("UPDATE snapshots SET parts = ?").run(parts);
    file.close();
    expect((await replayedBy(server)).counts).toMatchObject({ replayed: 0, unreadable: 3 });
    for (const path of ["/", "/nodes/n1", "/lint?node=n1"]) await pageOf(server, path);
    expect(value(await server.store.prune({ nowMs: Date.now() + 1e9, maxAgeMs: 1 })).decisions).toBe(3);
  },
);

test("pages show rows whose time is out of range", async () => {
  const far = "9000000000000000";
  const server = await changedBeneath(
    ([id = ""]) => [`UPDATE decisions SET decided_at_ms = ${far} WHERE id = ?`, id],
    ([id = ""]) => [`UPDATE latest SET decided_at_ms = ${far} WHERE decision_id = ?`, id],
    () => [`UPDATE nodes SET last_seen_ms = ${far}`],
  );
  for (const path of ["/", "/nodes/n1", "/nodes/n1/decisions", `/decisions/${server.ids[0]}`])
    await pageOf(server, path);
  await read(server, "/v1/nodes/n1/decisions", decisionList);
  await read(server, "/v1/nodes?sort=lastDecision", nodeList);
  expect(await (await fetch(`${server.api.url}/metrics`)).text()).toContain('nodewise_node_pressure{node="n1"');
});

test("damaged labels and summaries leave the rest of their node in lists", async () => {
  const server = await changedBeneath(
    () => [`UPDATE nodes SET labels = '{'`],
    () => [`UPDATE latest SET summary = '{"conditions": [1]}'`],
  );
  await pageOf(server, "/");
  expect((await read(server, "/v1/nodes", nodeList)).nodes).toMatchObject([{ name: "n1", zone: null, headroom: null }]);
  expect((await read(server, "/v1/nodes?labelSelector=a!=b", nodeList)).nodes).toEqual([]);
});

test("a half-written newest snapshot leaves the rest of its node's page", async () => {
  const server = await changedBeneath(() => ["UPDATE snapshots SET parts = NULL, body = x'7b22', encoding = 'json'"]);
  expect(await pageOf(server, "/nodes/n1")).toContain(`/decisions/${server.ids[0]}`);
});

test("an API over a damaged database file is not ready once it met the damage, without Retry-After", async () => {
  const dataDir = dataDirectory();
  const file = historyFile(dataDir);
  const whole = value(openNode({ file }));
  const rows = Array.from({ length: 400 }, () => decisionRow({ decidedAtMs: Date.now(), body: noise(2000) }));
  await Promise.all(rows.map((decision) => whole.record({ decision })));
  await whole.close();
  const fd = openSync(file, "r+");
  for (let at = 4096 * 80; at < statSync(file).size; at += 4096) writeSync(fd, Buffer.alloc(4096, 0xa5), 0, 4096, at);
  closeSync(fd);
  const { api } = await serving({ dataDir });
  const ready = () => fetch(`${api.url}/readyz`);
  expect((await ready()).status).toBe(200);
  const met = await fetch(`${api.url}/v1/decisions/${rows[200]?.id}`);
  expect(met.headers.get("retry-after")).toBeNull();
  const { detail, advice } = await problemOf(met, "history_unavailable");
  expect(detail).toMatch(/SQLITE_CORRUPT.*restore the database from a backup/);
  expect(advice).toMatch(/^(?!.*try again).*restore the history from a backup/);
  for (let i = 0; i < 2; i++)
    expect((await problemOf(await ready(), "history_unavailable")).detail).toContain("SQLITE_CORRUPT");
});

test("the API is ready again when reads succeed again, and one damaged row does not make it unready", async () => {
  const { app: one, evicts } = await halved();
  expect((await one.request(`/v1/decisions/${evicts.id}`)).status).toBe(503);
  expect((await one.request("/readyz")).status).toBe(200);
  const store = value(openNode({ file: ":memory:" }));
  let isDamaged = true;
  const listFleet: Store["listFleet"] = (sinceMs) =>
    isDamaged ? Promise.resolve(failure("corrupt", "the file is damaged; restore it")) : store.listFleet(sinceMs);
  const { app } = appOver({ store: { ...store, listFleet } });
  const status = async (path: string): Promise<number> => (await app.request(path)).status;
  expect([await status("/readyz"), await status("/v1/nodes"), await status("/readyz")]).toEqual([200, 503, 503]);
  isDamaged = false;
  expect([await status("/v1/removals"), await status("/readyz")]).toContain(503);
  expect([await status("/v1/nodes"), await status("/readyz")]).toEqual([200, 200]);
});
