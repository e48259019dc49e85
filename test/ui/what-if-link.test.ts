import { expect, test } from "vitest";
import { createToken } from "../../api/http/auth/tokens.ts";
import { MAX_LINKED, whatIfLink } from "../../api/ui/what-if/change.ts";
import { decisionRow, value } from "../contract/store-rows.ts";
import { renamed } from "../kit/real-node.ts";
import { capturedSnapshot, readable, subject } from "./node-subject.ts";

const resultIn = (html: string): string => readable(html.slice(html.indexOf('<section id="result"')));
const query = (texts: Readonly<Record<string, string>>): string => `/what-if?${new URLSearchParams(texts)}`;
const PATCH = '{"maxPods":9}';

test("a link with a node and a change opens the filled form with the answer, and stores nothing", async () => {
  const { decide, show, store } = subject();
  const { id } = await decide("cgroups", { snapshot: capturedSnapshot() });
  const snapshot = value(await store.latestSnapshot("n1"))?.id ?? "";
  for (const base of [{ node: "n1" }, { snapshot }, { decision: id }]) {
    const { html, status } = await show(query({ ...base, as: "patch", change: PATCH }));
    expect(status).toBe(200);
    expect(html).toContain(">\n{&quot;maxPods&quot;:9}</textarea>");
    expect(html).toContain('value="patch" checked');
    expect(resultIn(html)).toContain("maxPods 20 9");
  }
  expect(value(await store.listDecisions({ limit: 9 })).items).toHaveLength(1);
});

test("a link may also contain single fields, a pod and removed pods", async () => {
  const { decide, show } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const { html } = await show(
    query({ node: "n1", kubeReserved: "cpu=300m", remove: "default/burst-lim", as: "patch" }),
  );
  expect(resultIn(html)).toContain("kubeReserved.cpu 100m 300m");
  expect(resultIn(html)).toContain("pod default/burst-lim goes");
  const whole = await show(query({ node: "n1", as: "whole", change: "maxPods: 5" }));
  expect(resultIn(whole.html)).toContain("maxPods 20 5");
  expect(whole.html).toContain('value="whole" checked');
});

test("the answer has a link to itself, which gives the same answer for the same snapshot", async () => {
  const { decide, show } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const first = await show(query({ node: "n1", maxPods: "9" }));
  const link =
    /<a href="(\/what-if\?[^"]*)">Link to this question/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect(link).toMatch(/^\/what-if\?snapshot=[0-9a-f]{32}&maxPods=9#result$/);
  const newer = capturedSnapshot();
  newer.kubeletConfiguration = { ...newer.kubeletConfiguration, maxPods: 33 };
  await decide("cgroups", { snapshot: { ...newer, observedAt: "2027-01-01T00:00:00Z" } });
  const again = await show(link.replace("#result", ""));
  expect(resultIn(again.html)).toBe(resultIn(first.html));
});

test("an incomplete question is only filled in", async () => {
  const { decide, show } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  for (const [texts, filled] of [
    [{ node: "n1" }, 'value="n1"'],
    [{ maxPods: "9" }, 'name="maxPods" value="9"'],
    [{ node: "n1", machine: "xeon-2s" }, '<option value="xeon-2s" selected>'],
  ] as const) {
    const { html, status } = await show(query(texts));
    expect(status).toBe(200);
    expect(resultIn(html)).toBe("");
    expect(html).toContain(filled);
  }
});

test.each([
  [{ node: "n1", as: "neither" }, "as: must be one of patch, whole"],
  [{ node: "n1", cgroup: "3" }, "cgroup: must be one of 1, 2"],
  [{ node: "n1", changes: "x" }, "changes: there is no such parameter; there are node, snapshot,"],
  [{ node: "n1", kept: "{}" }, "kept: there is no such parameter"],
  [
    { node: "n1", change: "x".repeat(MAX_LINKED + 1) },
    `change: has ${MAX_LINKED + 1} of the ${MAX_LINKED + 3} characters`,
  ],
  [{ decision: "0".repeat(32), node: "n1" }, "node: is not allowed with decision"],
  [{ node: "n1", maxPods: "many" }, "maxPods: expected a whole number, found many"],
  [{ node: "n1", change: "maxPods: [" }, "the change:1:11: is not YAML or JSON"],
  [{ node: "n1", change: "maxPods: x" }, "the change:1:10: kubeletConfiguration.maxPods"],
  [{ node: "n1", pod: "kind: Deployment" }, "the pod: expected a v1.Pod"],
])("the link %o gives status 400 with the place, and stores nothing", async (texts, words) => {
  const { decide, show, store } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const { html, status } = await show(query(texts as unknown as Record<string, string>));
  expect(status).toBe(400);
  expect(readable(html)).toContain(words);
  expect(value(await store.listDecisions({ limit: 9 })).items).toHaveLength(1);
});

test("an unknown node, snapshot or decision, or a decision without a snapshot, gives 404", async () => {
  const { decide, show, store } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const bare = decisionRow({ id: "b".repeat(32), node: "n1", snapshotId: null });
  value(await store.record({ decision: bare }));
  const cases = [
    [{ node: "n2" }, "there is no node n2"],
    [{ snapshot: "f".repeat(32) }, "there is no snapshot"],
    [{ decision: "f".repeat(32) }, "there is no decision"],
    [{ decision: "<script>" }, "there is no decision <script>"],
    [{ decision: bare.id }, "no snapshot was stored"],
  ] as const;
  for (const [base, words] of cases) {
    const { html, status } = await show(query({ ...base, change: PATCH }));
    expect(status, words).toBe(404);
    expect(readable(html)).toContain(words);
  }
});

test("markup in a link is shown as text in form and answer", async () => {
  const { decide, show } = subject();
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const evil = `"><img src=x onerror=alert(1)>`;
  for (const texts of [
    { change: `"${evil}": 1` },
    { remove: evil },
    { kubeReserved: evil },
    { machine: evil, maxPods: "9" },
  ]) {
    const { html } = await show(query({ node: "n1", ...texts } as Record<string, string>));
    expect(html).not.toContain("<img");
    expect(html).toContain("&lt;img src=x onerror=alert(1)&gt;");
  }
});

test("a node's token can open links about its own node only", async () => {
  const { app, decide, store } = subject();
  const theirs = renamed(capturedSnapshot(), "n2");
  const { id } = await decide("cgroups", { snapshot: theirs });
  await decide("cgroups", { snapshot: capturedSnapshot() });
  const { token } = value(await createToken(store, { name: "own", scopes: ["read"], node: "n1", now: Date.now() }));
  const headers = { accept: "text/html", authorization: `Bearer ${token}` };
  const statusOf = async (texts: Record<string, string>) =>
    (await app.request(`http://localhost${query({ change: PATCH, ...texts })}`, { headers })).status;
  expect(await statusOf({ node: "n1" })).toBe(200);
  expect(await statusOf({ node: "n2" })).toBe(403);
  expect(await statusOf({ decision: id })).toBe(404);
});

test("whatIfLink contains what is given in the form's terms, and is null when too long", () => {
  expect(whatIfLink({})).toBe("/what-if");
  expect(whatIfLink({ node: "a&b", change: "", maxPods: "9" })).toBe("/what-if?node=a%26b&maxPods=9#result");
  expect(whatIfLink({ change: "x".repeat(3000) })).toBeNull();
});
