import { expect, test } from "vitest";
import { decisionRow, T0, value } from "../contract/store-rows.ts";
import { subject } from "./node-subject.ts";

const HOUR = 3_600_000;
async function history() {
  const { store, show } = subject();
  const pod = { namespace: "shop", name: "web", uid: "u" };
  for (let i = 0; i < 130; i++) {
    const own =
      i % 2 === 0
        ? ({ kind: "eviction", verdict: "calm" } as const)
        : ({ kind: "admission", verdict: "refused", pod } as const);
    const decision = decisionRow({ ...own, id: `d${i}`, node: "n1", decidedAtMs: T0 + i * HOUR });
    value(await store.record({ decision }));
  }
  return show;
}
const idsIn = (html: string): readonly string[] =>
  [...html.matchAll(/href="\/decisions\/(\w+)"/g)].map((m) => m[1] ?? "");

test("all decisions of a node are reached through links to older ones, with the filters kept", async () => {
  const show = await history();
  const seen: string[] = [];
  let path: string | undefined = "/nodes/n1/decisions?kind=eviction&limit=20";
  while (path !== undefined) {
    const { html, status } = await show(path);
    expect(status).toBe(200);
    expect(html).toContain("<option selected>eviction</option>");
    seen.push(...idsIn(html));
    expect(html).toMatch(/<th>As kubelet<\/th>[\s\S]*<td>1\.36<\/td>/);
    path = /rel="next" href="([^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&");
    if (path !== undefined) expect(path).toContain("kind=eviction&limit=20&pageToken=");
  }
  expect(seen).toEqual(Array.from({ length: 65 }, (_, i) => `d${128 - 2 * i}`));
});

test("decisions are filtered by pod, verdict and times; empty fields are ignored and times are UTC", async () => {
  const show = await history();
  const since = new Date(T0 + 100 * HOUR).toISOString().slice(0, 16);
  const path = `/nodes/n1/decisions?kind=&verdict=refused&pod=shop%2Fweb&since=${since}&until=`;
  const { html, text } = await show(path);
  expect(text("count")).toBe("15 decisions.");
  expect(idsIn(html).at(-1)).toBe("d101");
  expect(html).toContain(`value="${since}:00Z"`);
  expect(html).toMatch(/href="\/v1\/nodes\/n1\/decisions\?verdict=refused&amp;pod=shop%2Fweb&amp;since=/);
  expect(html).toContain("<option selected>refused</option>");
  expect((await show("/nodes/n1/decisions?pod=nobody")).text("list")).toContain("No decision of this node is so.");
});

test("the first page of decisions is live, older pages are not", async () => {
  const show = await history();
  const first = await show("/nodes/n1/decisions");
  expect(first.html).toContain('data-live-node="n1"');
  expect(first.html).toContain('<div id="list" data-live>');
  const next = /rel="next" href="([^"]*)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&");
  const second = await show(next ?? "");
  expect(second.html).not.toContain("data-live-node");
  expect(second.html).toContain('<a href="/nodes/n1/decisions">Newest</a>');
});

test("an invalid query of decisions gives an error page", async () => {
  const show = await history();
  for (const query of ["kind=nothing", "verdict=odd", "since=yesterday", "limit=0", "pageToken=x", "color=red"]) {
    const { status, html } = await show(`/nodes/n1/decisions?${query}`);
    expect([query, status]).toEqual([query, 400]);
    expect(html).toContain("<h1>");
  }
  expect((await show("/nodes/nn1/decisions")).status).toBe(404);
});
