import { describe, expect, test } from "vitest";
import type { Explain } from "../../api/model/decision.ts";
import { appOver } from "../api/serving.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { goOnOf, openPage, postForm } from "./replay-forms.ts";

const ID = "d".repeat(32);

/**
 * A history with decisions that cannot be replayed and, if `isKept`, a decision that can be replayed with the same
 * result.
 */
async function historyOf(lost: { readonly gone?: number; readonly bodies?: readonly string[] }, isKept = true) {
  const { app, store } = appOver();
  const posted = await app.request("/v1/decisions/allocatable", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ snapshot: capturedNode("n1") }),
  });
  const { id } = (await posted.json()) as { id: string };
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("not recorded");
  const late = isKept ? row.decidedAtMs + 1 : T0;
  for (let i = 0; i < (lost.gone ?? 0); i++) {
    const decision = { ...row, id: `gone-${i}`, snapshotId: null, decidedAtMs: late + i, explain: explainOf(i) };
    value(await store.record({ decision }));
  }
  for (const [i, body] of (lost.bodies ?? []).entries()) {
    const decision = { ...row, id: `broken-${i}`, body, decidedAtMs: late + i, explain: explainOf(i) };
    value(await store.record({ decision }));
  }
  const until = isKept ? "2999-01-01" : new Date(row.decidedAtMs - 1).toISOString();
  /** Continues the replay until it is complete; each request stops at a time limit. */
  const replay = async (change = "") => {
    let page = await postForm(app, "/replay", { as: "patch", until, change });
    for (let next = goOnOf(page); next !== null; next = goOnOf(page)) page = await postForm(app, "/replay", next);
    return page;
  };
  return { app, store, replay };
}

/** Consecutive decisions differ, because equal ones would be counted in one record. */
const explainOf = (i: number): Explain => (i % 2 === 0 ? "off" : "full");

describe("the replay page claims nothing about decisions that could not be replayed", () => {
  test("when none could be", async () => {
    const page = await (await historyOf({ gone: 33 }, false)).replay();
    expect(page.words).toContain("None of 33 decisions could be decided again.");
    expect(page.words).toContain("0 decisions replayed 0 the same");
    expect(page.words).toContain("33 have no snapshot any more");
    expect(page.words).not.toContain("would have been the same");
  });

  test("when some could be, whatever the result", async () => {
    const { replay } = await historyOf({ gone: 3 });
    expect((await replay()).words).toContain(
      "All 1 that could be decided again would have been the same. 3 could not be decided again.",
    );
    expect((await replay("kubeReserved: {cpu: 1500m}")).words).toContain(
      "1 of 1 decisions would have been different. 3 could not be decided again.",
    );
  });

  test("when records are unreadable: they are counted, named with a link and skipped", async () => {
    const { replay } = await historyOf({ bodies: ['{"broken', "[]"] });
    const page = await replay();
    expect(page.status).toBe(200);
    expect(page.words).toContain("2 cannot be read");
    expect(page.words).toContain("allocatable 1 1 0 0 0 2");
    for (const id of ["broken-0", "broken-1"]) {
      expect(page.html).toContain(`href="/decisions/${id}"`);
      expect(page.words).toContain(`decision ${id}: what is stored of it is no`);
    }
  });

  test("on later pages: the first names are carried along", async () => {
    const { store, replay } = await historyOf({ bodies: Array.from({ length: 25 }, () => "null") });
    for (let i = 0; i < 1000; i++) {
      value(await store.record({ decision: decisionRow({ node: "n1", decidedAtMs: Date.now() + 60_000 + i }) }));
    }
    const page = await replay();
    expect(page.words).toContain("25 cannot be read");
    expect(page.html.match(/href="\/decisions\/broken-/g)).toHaveLength(20);
    expect(page.words).toContain("and 5 more");
    expect(page.words).toContain("1,000 have no snapshot any more");
  });
});

test.each(['{"broken', "[]", "null", "7", "{}"])(
  "a record whose body is %s gives 503 with its id on every page",
  async (body) => {
    const { app, store } = appOver();
    const snapshot = snapshotRow({ node: "n1", body: JSON.stringify(capturedNode("n1")) });
    value(
      await store.record({ decision: decisionRow({ id: ID, node: "n1", snapshotId: snapshot.id, body }), snapshot }),
    );
    for (const page of [
      await openPage(app, `/decisions/${ID}`),
      await postForm(app, "/replay", { as: "patch", decision: ID, only: "yes" }),
    ]) {
      expect(page.status).toBe(503);
      expect(page.words).toContain(`decision ${ID}: what is stored of it is`);
    }
  },
);

test("a record with a damaged ask or snapshot gives 503", async () => {
  const { app, store } = appOver();
  const snapshot = snapshotRow({ node: "n1", body: '{"node":' });
  value(await store.record({ decision: decisionRow({ id: ID, node: "n1", snapshotId: snapshot.id }), snapshot }));
  value(await store.record({ decision: decisionRow({ id: "e".repeat(32), node: "n1", ask: "{" }) }));
  const damaged = await openPage(app, `/decisions/${ID}`);
  expect([damaged.status, damaged.words.includes(`snapshot ${snapshot.id}`)]).toEqual([503, true]);
  const asked = await openPage(app, `/decisions/${"e".repeat(32)}`);
  expect([asked.status, asked.words.includes(`ask of decision ${"e".repeat(32)}`)]).toEqual([503, true]);
});
