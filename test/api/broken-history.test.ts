import { expect, test } from "vitest";
import { problemOf } from "../contract/api-subject.ts";
import { decisionRow, resultRow, snapshotRow, value } from "../contract/store-rows.ts";
import { snapshotOf } from "../ui/served.ts";
import { appOver } from "./serving.ts";

const SNAPSHOT = "5".repeat(32);
const json = { "content-type": "application/json" };
const post = (body: object): RequestInit => ({ method: "POST", headers: json, body: JSON.stringify(body) });

/** A history with one good decision of n1, and rows of n2 that somebody's disk has halved. */
async function halved() {
  const { app, store } = appOver();
  const answer = await app.request("/v1/decisions/allocatable", post({ snapshot: snapshotOf("n1") }));
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

test("what cannot be read is named where it is asked for, as the history's fault", async () => {
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

test("pages that show more than it show the rest", async () => {
  const { app, good } = await halved();
  for (const path of ["/", "/nodes/n2", "/nodes/n2/decisions", `/decisions/${good.id}`, "/lint?node=n2"]) {
    const page = await app.request(path, { headers: { accept: "text/html" } });
    expect(page.status, path).toBe(200);
  }
  const decision = await (await app.request(`/decisions/${good.id}`)).text();
  expect(decision).toMatch(/report <code>result-[^<]*<\/code>: what is stored of it is not JSON/);
});

test("a finding is counted over what can be read", async () => {
  const { app } = await halved();
  const answer = await app.request("/v1/lint", post({ kubeletConfiguration: { maxPods: -1 } }));
  expect(answer.status).toBe(200);
  const { findings } = (await answer.json()) as { findings: { touched: { of: number } | null }[] };
  expect(findings.filter(({ touched }) => touched !== null).map(({ touched }) => touched?.of)).toContain(1);
});
