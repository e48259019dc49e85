import { expect, test } from "vitest";
import { results } from "../../api/http/openapi/operation.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { appOver } from "../api/serving.ts";
import { decisionRow, resultRow, snapshotRow, value } from "../contract/store-rows.ts";
import { requesting } from "../kit/pods.ts";
import { captured } from "../kit/real-node.ts";
import { postForm } from "./replay-forms.ts";

type App = ReturnType<typeof appOver>["app"];

async function decided(app: App, kind: string, more: object = {}): Promise<string> {
  const response = await app.request(`/v1/decisions/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ snapshot: captured("snapshot.json"), ...more }),
  });
  expect(response.status, await response.clone().text()).toBe(200);
  return ((await response.json()) as { id: string }).id;
}
const textOf = async (app: App, path: string, status = 200): Promise<string> => {
  const response = await app.request(path, { headers: { accept: "text/html" } });
  const text = await response.text();
  expect(response.status, text).toBe(status);
  expect(text).not.toMatch(/<script>|\son\w+="|style="|<style/i);
  return text;
};

const POD = requesting("big", { cpu: "500" });

test("the page of a refusal has the kubelet's message, reasons, remedies, the ask and a link to it", async () => {
  const { app } = appOver({});
  const id = await decided(app, "admission", { ask: { pod: POD }, explain: "full" });
  const text = await textOf(app, `/decisions/${id}`);
  expect(text).toContain('<span class="tag bad">refused</span>');
  expect(text).toContain('<strong><a href="/nodes/n1/pods/default/big" title="default/big">default/big</a></strong>');
  expect(text).toContain("OutOfcpu");
  expect(text.indexOf("OutOfcpu")).toBeLessThan(text.indexOf('id="why"'));
  expect(text.indexOf('id="why"')).toBeLessThan(text.indexOf('id="answer"'));
  expect(text).toContain("requested"); // a word in the counterfactual
  expect(text).toContain("&quot;cpu&quot;: &quot;500&quot;");
  expect(text).toContain(`nodewise history show ${id} --api http://localhost`);
  expect(text).toMatch(/href="\/v1\/snapshots\/[0-9a-f]{32}"/);
});

test.each(["allocatable", "cgroups", "cpus", "memory", "topology", "devices", "eviction"])(
  "the page of a %s decision shows every reason that the API returns",
  async (kind) => {
    const { app } = appOver({});
    const id = await decided(app, kind);
    const text = await textOf(app, `/decisions/${id}`);
    const record = (await (await app.request(`/v1/decisions/${id}`)).json()) as {
      reasons: { at: string; because: { code: string }[] }[];
    };
    for (const { because } of record.reasons)
      for (const { code } of because) expect(text).toContain(`<code>${code}</code>`);
    expect(text.length).toBeLessThan(1_000_000);
  },
);

test("the page says when the nearest or newest kubelet version answered, and nothing otherwise", async () => {
  const { app } = appOver({});
  const of = async (kubeletVersion: string | undefined) => {
    const snapshot = captured("snapshot.json");
    snapshot.node.status.nodeInfo = kubeletVersion === undefined ? {} : { kubeletVersion };
    return textOf(app, `/decisions/${await decided(app, "allocatable", { snapshot })}`);
  };
  expect(await of("v1.33.13")).toContain(
    '<p class="note warn">Answered as kubelet 1.34: kubelet 1.33 is not known here: 1.34 is the nearest that is.</p>',
  );
  expect(await of(undefined)).toContain(
    `Answered as kubelet ${NEWEST.version}: no kubelet version was given: ${NEWEST.version}, the newest`,
  );
  expect(await of("v1.36.3")).not.toContain("Answered as");
});

test("an eviction shows the ranking of the short resource, and folds the others", async () => {
  const { app } = appOver({});
  const of = async (evictionHard: object): Promise<readonly [shown: string, folded: string]> => {
    const snapshot = captured("snapshot.json");
    snapshot.kubeletConfiguration.evictionHard = evictionHard;
    const whole = await textOf(app, `/decisions/${await decided(app, "eviction", { snapshot })}`);
    const text = whole.replaceAll(/<div class="text-narrow">.*?<\/div>/gs, "");
    const [shown = "", folded = ""] = text.split('<details id="idle-rankings">');
    return [shown, folded.split("</details>")[0] ?? ""];
  };
  const tables = (text: string) => text.match(/EVICTION ORDER FOR [A-Z-]+/g);
  const [disk, others] = await of({ "memory.available": "100Mi", "nodefs.available": "90%", "pid.available": "1%" });
  expect(tables(disk)).toEqual(["EVICTION ORDER FOR EPHEMERAL-STORAGE"]);
  expect(others).toContain("<summary>Eviction order for resources that are not short: memory, pids</summary>");
  expect(tables(others)).toEqual(["EVICTION ORDER FOR MEMORY", "EVICTION ORDER FOR PIDS"]);
  // without pressure, the page shows the ranking for memory first
  const [calm, rest] = await of({ "memory.available": "100Mi", "pid.available": "1%" });
  expect([tables(calm), tables(rest)]).toEqual([["EVICTION ORDER FOR MEMORY"], ["EVICTION ORDER FOR PIDS"]]);
  const [alone, none] = await of({ "memory.available": "100Mi" });
  expect([tables(alone), none]).toEqual([["EVICTION ORDER FOR MEMORY"], ""]);
  expect(alone).not.toContain("--explain");
});

test("the node's report is shown step by step, and a long one is cut", async () => {
  const { app, store } = appOver({});
  const id = await decided(app, "cgroups");
  const step = {
    op: "write",
    path: "/kubepods",
    file: "cpu.shares",
    value: "2048",
    before: "<b>9</b>",
    status: "planned",
  };
  const steps = Array.from({ length: 203 }, (_, i) => ({ ...step, path: `/kubepods/${i}` }));
  const body = JSON.stringify({ at: "2026-01-01T00:00:00Z", dryRun: true, complete: true, steps });
  value(await store.addResults(id, [resultRow({ okCount: 203, failedCount: 0, body })]));
  const text = await textOf(app, `/decisions/${id}`);
  expect(text).toContain("203 to be done (observe mode)");
  expect(text).toContain("&lt;b&gt;9&lt;/b&gt;");
  expect(text).toContain("3 more are in the JSON");
});

test("previous and wanted values of a report are shown, in the contract's form and the actuator's", async () => {
  const { app } = appOver({});
  const id = await decided(app, "cgroups");
  const report = results(id);
  // a write that was only planned: the file was not read again
  const planned = { id: 0, op: "write", path: "/kubepods", file: "cpu.shares", from: "11", to: "22", before: null };
  // another program wrote between the plan and the write
  const raced = { ...planned, from: "33", to: "44", before: "55", readBack: "44", status: "applied" };
  for (const [seq, body] of [
    report,
    { ...report, results: [{ ...planned, status: "planned" }] },
    { ...report, results: [raced] },
  ].entries()) {
    const response = await app.request("/v1/results", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...body, seq: seq + 1 }),
    });
    expect(response.status, await response.text()).toBe(201);
  }
  const text = await textOf(app, `/decisions/${id}`);
  for (const [was, wanted] of [
    ["100", "152"],
    ["11", "22"],
    ["55", "44"],
  ])
    expect(text).toContain(`<td><code>${was}</code></td><td><code>${wanted}</code></td>`);
});

test.each([
  ["cgroups", /28 cgroups for 11 pods: cgroup v1, cgroupfs driver\./],
  ["allocatable", /Allocatable: cpu \S+ of \d+, memory [\d.]+ GiB of [\d.]+ GiB, pods 20 of 20\./],
] as const)("the verdict of %s is a sentence before the reasons", async (kind, sentence) => {
  const { app } = appOver({});
  const text = await textOf(app, `/decisions/${await decided(app, kind)}`);
  expect(text.slice(0, text.indexOf('id="why"'))).toMatch(sentence);
});

test("a decision without a snapshot is shown, and a removed decision gives 404", async () => {
  const { app, store } = appOver({});
  const id = await decided(app, "cpus");
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("it was recorded");
  const orphan = { ...row, id: "orphan", explain: "full" as const, snapshotId: "0".repeat(32) };
  value(await store.record({ decision: orphan }));
  expect(await textOf(app, "/decisions/orphan")).toContain("no longer stored");
  const gone = await textOf(app, "/decisions/never", 404);
  expect(gone).toContain("old ones are removed");
});

test("a repeated decision shows how often, since when and on which snapshot", async () => {
  const { app, store } = appOver({});
  const id = await decided(app, "cpus");
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("it was recorded");
  const lastSnapshotId = "1".repeat(32);
  const again = {
    kind: row.kind,
    decisionId: id,
    times: 11,
    lastAtMs: row.decidedAtMs + 60_000,
    lastId: "again",
    lastSnapshotId,
  };
  const nothing = { node: row.node, atMs: row.decidedAtMs, snapshots: [], decisions: [] };
  value(await store.recordTurn({ ...nothing, again: [again] }));
  const text = await textOf(app, `/decisions/${id}`);
  expect(text).toMatch(/12 times the same since/);
  expect(text).toContain(`/v1/snapshots/${lastSnapshotId}`);
  expect(await textOf(app, "/decisions")).toMatch(/12 times since/);
});

test("decisions of older versions and names with markup are shown as text", async () => {
  const { app, store } = appOver({});
  const node = '<img src=x onerror="alert(1)">';
  const flat = [{ code: "of_old", at: "/kubepods", field: "cpuShares", numbers: { n: 1 } }];
  const decision = {
    capacity: {},
    allocatable: {},
    reserved: {},
    kubepods: { enforced: false, limits: {}, values: {} },
    enforcement: [],
    errors: [],
  };
  const body = JSON.stringify({ decision, reasons: flat, needs: ["<needs>"], next: null });
  const snapshot = snapshotRow({ node, body: '{"node":5}' });
  const row = decisionRow({ node, kind: "allocatable", body, snapshotId: snapshot.id });
  value(await store.record({ decision: row, snapshot }));
  const text = await textOf(app, `/decisions/${row.id}`);
  expect(text).not.toContain("<img");
  expect(text).toContain("<code>of_old</code>");
  expect(text).toContain("&lt;needs&gt;");
});

test("a node's token gives access to its own decisions only", async () => {
  const { app, store } = appOver({});
  const mine = decisionRow({ node: "mine", kind: "cpus" });
  value(await store.record({ decision: mine }));
  const { newToken, webSha256 } = await import("../../api/http/auth/tokens.ts");
  const token = newToken();
  value(
    await store.createToken({
      id: token.id,
      name: "n",
      hash: await webSha256(token.text),
      scopes: ["read"],
      node: "other",
      createdAtMs: 1,
      revokedAtMs: null,
    }),
  );
  const headers = { authorization: `Basic ${btoa(`x:${token.text}`)}` };
  expect((await app.request(`/decisions/${mine.id}`, { headers })).status).toBe(404);
});

test.each([
  ["eviction", '{"decision":{"conditions":[]},"reasons":[],"needs":[],"next":null}', "conditions"],
  ["admission", '{"decision":{"pod":null},"reasons":[],"needs":[],"next":null}', "pod"],
  ["probes", '{"decision":{"containers":[{}]},"reasons":[],"needs":[],"next":null}', "containers"],
] as const)(
  "a %s record with an invalid body is reported on the page with what is stored, and logged",
  async (kind, body, name) => {
    const { app, store, log } = appOver({});
    const row = decisionRow({ kind, node: "n1", body, policyVersion: NEWEST.policyVersion });
    value(await store.record({ decision: row }));
    const text = await textOf(app, `/decisions/${row.id}`);
    const answer = text.slice(text.indexOf('id="answer"'), text.indexOf('id="asked"'));
    expect(answer).toContain("This part of the record cannot be shown");
    expect(answer).toContain(`href="/v1/decisions/${row.id}"`);
    expect(answer).toContain(`&quot;${name}&quot;: `);
    expect(text.slice(text.indexOf('id="asked"'))).toContain(row.id);
    const faults = log.lines.filter(({ level }) => level === "error");
    expect(faults).toMatchObject([{ message: "a record cannot be drawn", fields: { decision: row.id } }]);
    expect(faults[0]?.fields["stack"]).toMatch(/\.ts:\d+/);
  },
);

test("invalid reasons and reports are reported in their place, and the rest is shown", async () => {
  const { app, store, log } = appOver({});
  const id = await decided(app, "allocatable");
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("not recorded");
  const body = JSON.stringify({ ...JSON.parse(row.body), reasons: [null, 7] });
  const broken = { ...row, id: "b".repeat(32), body };
  value(await store.record({ decision: broken }));
  value(await store.addResults(broken.id, [resultRow({ body: "{}" })]));
  const text = await textOf(app, `/decisions/${broken.id}`);
  const part = (from: string, to: string) => text.slice(text.indexOf(`id="${from}"`), text.indexOf(`id="${to}"`));
  expect(part("why", "answer")).toContain("This part of the record cannot be shown");
  expect(part("answer", "asked")).toContain("terminal");
  expect(part("answer", "asked")).not.toContain("cannot be shown");
  expect(part("done", "again")).toContain("This part of the record cannot be shown");
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(2);
});

test("an invalid record can be replayed, and its recorded side says that it cannot be shown", async () => {
  const { app, store } = appOver({});
  const id = await decided(app, "eviction");
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("not recorded");
  const broken = {
    ...row,
    id: "c".repeat(32),
    body: '{"decision":{"conditions":[]},"reasons":[],"needs":[],"next":null}',
  };
  value(await store.record({ decision: broken }));
  const page = await postForm(app, "/replay", { as: "patch", decision: broken.id, only: "yes" });
  expect(page.status).toBe(200);
  expect(page.words).toContain("It would have been different.");
  expect(page.words).toContain("Recorded This part of the record cannot be shown");
});
