import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ok } from "../../api/base/result.ts";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import type { ReplayAnswer } from "../../api/service/replay/replay-answer.ts";
import { NOTHING_COUNTED } from "../../api/ui/replay/counts.ts";
import { replayedPages } from "../../api/ui/replay/question.ts";
import { appOver } from "../api/serving.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { type App, goOnOf, openPage, postForm, type Shown, unescaped, writtenIn } from "./replay-forms.ts";

const PATCH = "kubeReserved:\n  cpu: 1500m\n";
const KINDS = ["allocatable", "cgroups", "memory"] as const;

async function decide(app: App, kind: string, snapshot: object): Promise<string> {
  const response = await app.request(`/v1/decisions/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ snapshot }),
  });
  expect(response.status, await response.clone().text()).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

/** Decisions of two nodes and three kinds. */
async function fleet(...args: Parameters<typeof appOver>) {
  const made = appOver(...args);
  const ids: string[] = [];
  for (const node of ["n1", "n2"]) for (const kind of KINDS) ids.push(await decide(made.app, kind, capturedNode(node)));
  return { ...made, ids };
}
interface Tally {
  readonly counts: Readonly<Record<string, number>>;
  readonly byVersion: readonly { recordedUnder: string; same: number; differs: number }[];
  readonly verdicts: readonly { kind: string; recorded: string; replayed: string | null; count: number }[];
  readonly changed: readonly { id: string; differences: readonly { path: string }[] }[];
}
async function asked(app: App, body: object): Promise<Tally> {
  const headers = { "content-type": "application/json" };
  const response = await app.request("/v1/replay", { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as Tally;
}
const replay = (app: App, fields: Readonly<Record<string, string>>, more = {}): Promise<Shown> =>
  postForm(app, "/replay", { as: "patch", ...fields }, more);

describe("replaying the history on the page", () => {
  test("counts by kind and verdict as POST /v1/replay does, and lists the changes with links", async () => {
    const { app } = await fleet();
    const page = await replay(app, { since: "24h", change: PATCH });
    const api = await asked(app, { kubeletConfigurationPatch: { kubeReserved: { cpu: "1500m" } } });
    expect(api.counts).toMatchObject({ replayed: 6, differs: 6 });
    expect(page.status).toBe(200);
    expect(page.words).toContain("6 of 6 decisions would have been different.");
    expect(page.words).toContain("6 decisions replayed 0 the same 6 differ 0 are refused now");
    expect(page.words).toContain("memory decided → kubelet-refuses 2");
    expect(page.words).toContain("all 6 0 6 0 0");
    for (const { id, differences } of api.changed) {
      expect(page.html).toContain(`href="/decisions/${id}"`);
      expect(page.words).toContain(differences[0]?.path);
    }
    expect(page.words).toContain('allocatable.cpu "1800m" → "400m"');
    expect(goOnOf(page)).toBeNull();
    expect(page.html).toContain('<progress max="100" value="100"');
  });

  test("with another kubelet version shows both versions for each decision and in total", async () => {
    const { app, ids } = await fleet();
    const patch = { kubeletConfigurationPatch: { kubeReserved: { cpu: "1500m" } } };
    const page = await replay(app, { since: "24h", change: PATCH, kubelet: "1.35" });
    const [own] = (await asked(app, { ...patch, kubeletVersion: "1.35" })).byVersion;
    const change = `${own?.recordedUnder} → 1.35`;
    expect(own?.recordedUnder).not.toBe("1.35");
    expect(page.words).toMatch(
      new RegExp(`By kubelet version Kubelet Replayed .* ${change} 6 ${own?.same} ${own?.differs} 0 0`),
    );
    expect(page.words).toMatch(new RegExp(`n1 \\w+ ${change} `));
    expect(page.words).toContain(" --kubelet 1.35 ");
    const one = await replay(app, { decision: ids[0] ?? "", only: "yes", kubelet: "1.35" });
    expect(one.words).toContain(`Kubelet ${change}.`);
  });

  test("replaces the recorded configuration with a whole one, and changes nothing without a change", async () => {
    const { app } = await fleet();
    const whole = await replay(app, { as: "whole", change: '{"kubeletconfig":{"cgroupDriver":"systemd"}}' });
    const api = await asked(app, { kubeletConfiguration: { cgroupDriver: "systemd" } });
    expect(api.counts["differs"]).toBeGreaterThan(0);
    expect(whole.words).toContain(`${api.counts["differs"]} of 6 decisions would have been different.`);
    expect((await replay(app, {})).words).toContain("Every decision would have been the same.");
  });

  test("can be limited to a node, a kind and a time", async () => {
    const { app } = await fleet();
    const one = await replay(app, { node: "n2", kind: "cgroups", since: "2026-01-01", change: PATCH });
    expect(one.words).toContain(
      "1 of 1 decisions would have been different. Decisions of node n2, of kind cgroups, from 2026",
    );
    const none = await replay(app, { until: "2020-01-01 12:00 UTC", since: "2019-01-01T00:00:00+01:00" });
    expect(none.words).toContain(
      "No such decisions: nothing is recorded of all nodes, from 2018-12-31 23:00:00 UTC, to 2020-01-01 12:00:00 UTC",
    );
  });

  test("links to the form with the same question, however it was sent", async () => {
    const { app } = await fleet();
    for (const since of ["", "2026-01-01"]) {
      const page = await replay(app, { change: PATCH, kind: "cgroups", since, long: "yes", decision: "" });
      const link = unescaped(/<a href="([^"]*)">A link to this question/.exec(page.html)?.[1] ?? "");
      expect(page.html).toContain(`data-link="${link.replaceAll("&", "&amp;")}"`);
      const opened = await openPage(app, link);
      expect(opened.status, link).toBe(200);
      expect(writtenIn(opened)).toBe(PATCH);
      expect(opened.html).toContain(`name="since" value="${since === "" ? "" : "2026-01-01T00:00:00.000Z"}"`);
      expect(opened.html).toContain("<option selected>cgroups</option>");
    }
  });

  test("reports a misspelt field with its place", async () => {
    const { app } = await fleet();
    const page = await replay(app, { change: "maxPods: 5\nkubeResreved:\n  cpu: 1\n" });
    expect(page.words).toMatch(
      /the configuration:\d:\d+: the kubelet knows no field kubeResreved; kubeReserved is near/,
    );
  });
});

describe("replaying a history of several pages", () => {
  const MANY = 2300;
  async function long() {
    const { app, store } = appOver();
    const id = await decide(app, "allocatable", capturedNode("n1"));
    const row = value(await store.getDecision(id));
    if (row === null) throw new Error("not recorded");
    for (let i = 1; i < MANY; i++)
      value(await store.record({ decision: { ...row, id: `copy-${i}`, decidedAtMs: T0 + i } }));
    return { app, store };
  }

  test("continues by a button page by page, counts everything once, and lists the first hundred", async () => {
    const { app } = await long();
    let page = await replay(app, { change: PATCH });
    let pages = 1;
    const sizes: number[] = [];
    for (let next = goOnOf(page); next !== null; next = goOnOf(page)) {
      expect(page.words).toContain("so far");
      expect(next).toMatchObject({ change: PATCH, as: "patch" });
      sizes.push(next["counted"]?.length ?? 0);
      page = await postForm(app, "/replay", next);
      pages++;
    }
    expect(pages).toBeGreaterThanOrEqual(3);
    expect(page.words).toContain("2,300 of 2,300 decisions would have been different.");
    expect(page.words).toContain("and 2,200 more");
    expect(page.html.match(/class="what"/g)).toHaveLength(100);
    // the length of the text that is passed from page to page does not depend on the count
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(64);
    expect(gzipSync(page.html).length).toBeLessThan(150_000);
  });

  test("without scripts replays in one request what fits into a few seconds", async () => {
    const { app } = await long();
    const page = await replay(app, { change: PATCH, long: "yes" });
    expect(goOnOf(page)).toBeNull();
    expect(page.words).toContain("2,300 of 2,300 decisions would have been different.");
    expect(page.html.match(/class="what"/g)).toHaveLength(100);
  });

  test("begins no further page when the time is over or the client is gone", async () => {
    const { app } = await long();
    const change = { kubeletConfigurationPatch: { kubeReserved: { cpu: "1500m" } } };
    const read = async (pageToken: string) => {
      const token = pageToken === "" ? {} : { pageToken };
      return ok((await asked(app, { ...change, limit: 1000, ...token })) as unknown as ReplayAnswer);
    };
    const begin = { counted: NOTHING_COUNTED, pageToken: "", signal: new AbortController().signal };
    const one = value(await replayedPages(read, { ...begin, budgetMs: 0 }));
    const { replayed } = one.counted.tally.counts;
    expect(replayed).toBeGreaterThan(0);
    expect(replayed).toBeLessThanOrEqual(1000);
    expect(one.last.nextPageToken).not.toBeNull();
    const left = value(await replayedPages(read, { ...begin, budgetMs: 60_000, signal: AbortSignal.abort() }));
    expect(left.last.nextPageToken).not.toBeNull();
    const rest = { counted: one.counted, pageToken: one.last.nextPageToken ?? "", budgetMs: 60_000 };
    const all = value(await replayedPages(read, { ...begin, ...rest }));
    expect(all.last.nextPageToken).toBeNull();
    expect(all.counted.tally.counts.replayed).toBe(MANY);
  });

  test("accepts neither forged counts nor a token of another question", async () => {
    const { app } = await long();
    const next = goOnOf(await replay(app, { change: PATCH })) ?? {};
    const made = await postForm(app, "/replay", { ...next, counted: '{"all":[1,2]}' });
    expect(made.status).toBe(400);
    expect(made.words).toContain("what was counted so far cannot be read: start again");
    expect(writtenIn(made)).toBe(PATCH);
    const other = await postForm(app, "/replay", { ...next, change: "maxPods: 1" });
    expect(other.status).toBe(400);
    expect(other.words).toContain("the page token belongs to another replay");
    const links = JSON.parse(next["counted"] ?? "") as { changed: { id: string }[] };
    const first = links.changed[0] as { id: string };
    first.id = "x/../../lint";
    expect((await postForm(app, "/replay", { ...next, counted: JSON.stringify(links) })).status).toBe(400);
  });
});

describe("replaying one decision", () => {
  test("is linked with node and kind filled in, and shows before and after with differences", async () => {
    const { app, ids } = await fleet();
    const linked = await openPage(app, `/replay?decision=${ids[0]}`);
    expect(linked.html).toContain(`<a href="/decisions/${ids[0]}">allocatable decision</a>`);
    expect(linked.html).toMatch(/name="node" value="n1"/);
    expect(linked.html).toContain("<option selected>allocatable</option>");
    const page = await replay(app, { decision: ids[0] ?? "", only: "yes", change: PATCH });
    expect(page.words).toContain("It would have been different.");
    expect(page.words).toContain('allocatable.cpu "1800m" "400m"');
    expect(page.html.match(/class="text-wide"><pre class="terminal"/g)).toHaveLength(2);
    const same = await replay(app, { decision: ids[0] ?? "", only: "yes" });
    expect(same.words).toContain("It would have been the same.");
    // on a busy machine a request may stop at its time limit
    const history = async () => (await replay(app, { decision: ids[0] ?? "", change: PATCH })).words;
    await expect.poll(history).toContain("6 of 6 decisions");
  });

  test("that cannot be replayed says why", async () => {
    const { app, store } = await fleet();
    const gone = decisionRow({ id: "0".repeat(32), node: "n1", snapshotId: null, decidedAtMs: Date.now() });
    value(await store.record({ decision: gone }));
    const page = await replay(app, { decision: gone.id, only: "yes" });
    expect(page.words).toContain("It cannot be decided again.");
    expect(page.words).toContain("snapshot_gone");
    expect((await openPage(app, `/replay?decision=${"f".repeat(32)}`)).status).toBe(404);
    const all = await replay(app, { since: "1h" });
    expect(all.words).toContain("1 have no snapshot any more");
  });
});

describe("invalid input on the replay page is reported at its place, and the input stays:", () => {
  const BROKEN: readonly (readonly [string, string, RegExp])[] = [
    ["broken YAML", "kubeReserved:\n  cpu: [1\nmaxPods: 3\n", /the configuration:3:1: .*is not YAML or JSON/],
    ["broken JSON", '{\n  "maxPods": 3\n  "x": 4\n}', /the configuration:3:3: .*is not JSON/],
    [
      "a value that is none",
      "maxPods: 3\nkubeReserved:\n  cpu: lots\n",
      /the configuration:3:8: kubeletConfiguration\.kubeReserved\.cpu/,
    ],
    [
      "a value of /configz",
      '{"kubeletconfig": {\n"maxPods": "x"}}',
      /the configuration:2:12: kubeletConfiguration\.maxPods/,
    ],
    [
      "something else",
      "kind: Pod\nmetadata: {}\n",
      /the configuration: is an object of kind Pod, and no KubeletConfiguration/,
    ],
    ["two documents", "maxPods: 3\n---\nmaxPods: 4\n", /the configuration: holds 2 documents/],
    ["far too much", `x: ${"y".repeat(140_000)}`, /has 140,003 characters/],
  ];
  test.each(BROKEN)("%s", async (_name, change, fault) => {
    const { app } = await fleet();
    const page = await replay(app, { change, since: "7d", kind: "cpus" });
    expect(page.status).toBe(400);
    expect(page.words).toMatch(fault);
    expect(page.html).toContain('aria-describedby="change-fault"');
    expect(writtenIn(page)).toBe(change);
    expect(page.html).toContain('value="7d"');
    expect(page.html).toContain("<option selected>cpus</option>");
  });

  test("invalid times, an unknown kind or node", async () => {
    const { app } = await fleet();
    const page = await replay(app, { since: "yesterday", kind: "cpu", change: PATCH });
    expect(page.status).toBe(400);
    expect(page.words).toContain("yesterday is neither a time (2026-01-31T12:00:00Z) nor a duration (90m, 24h, 7d)");
    expect(page.words).toContain("must be one of allocatable,");
    expect((await replay(app, { since: "1h", until: "2h" })).words).toContain("is later than until");
    const node = await replay(app, { node: "n3", change: PATCH });
    expect(node.status).toBe(404);
    expect(node.words).toMatch(/there is no node n3; there are n1, n2/);
    expect(writtenIn(node)).toBe(PATCH);
    expect((await openPage(app, "/replay?node=n3")).words).toContain("there is no node n3");
    expect((await openPage(app, "/replay?sinc=1h")).status).toBe(400);
  });

  test("a file replaces the text, and is refused when it is no text, too large or no form", async () => {
    const { app } = await fleet();
    const file = (content: string | Uint8Array<ArrayBuffer>): File => new File([content], "my kubelet.yaml");
    const page = await replay(app, { change: "maxPods: 3" }, { file: file(PATCH) });
    expect(page.words).toContain("6 of 6 decisions");
    expect(writtenIn(page)).toBe(PATCH);
    const broken = await replay(app, {}, { file: file("maxPods: [") });
    expect(broken.words).toMatch(/my kubelet\.yaml:1:\d+: /);
    const binary = await replay(app, { change: PATCH }, { file: file(new Uint8Array([0xff, 0xfe, 0x00])) });
    expect(binary.status).toBe(400);
    expect(binary.words).toContain("my kubelet.yaml: is not UTF-8 text");
    expect(writtenIn(binary)).toBe(PATCH);
    const large = await replay(app, {}, { file: file("x".repeat(9 * 1024 * 1024)) });
    expect(large.status).toBe(413);
    expect(large.words).toContain("the form has more than 8 MiB; nothing of it was read or stored");
    const headers = { accept: "text/html", "content-type": "application/json" };
    expect((await app.request("/replay", { method: "POST", body: "{}", headers })).status).toBe(415);
  });

  test("an empty history is reported", async () => {
    const { app } = appOver();
    expect((await openPage(app, "/replay")).words).toContain("No decision is recorded yet");
    expect((await replay(app, {})).words).toContain("No such decisions");
  });
});

test("names and messages with markup are shown as text, whether stored, typed or carried along", async () => {
  const { app, store } = appOver();
  const evil = `"><img src=x onerror=alert(1)></textarea><script>`;
  const snapshot = snapshotRow({ node: "n1", body: JSON.stringify(capturedNode("n1")) });
  const pod = { namespace: evil, name: evil, uid: evil };
  const body = JSON.stringify({ decision: { [evil]: evil }, reasons: [], needs: [], next: null });
  const row = decisionRow({ kind: "allocatable", node: "n1", snapshotId: snapshot.id, pod, verdict: evil, body });
  for (let i = 0; i < 1001; i++)
    value(
      await store.record({
        decision: { ...row, id: `d${i}`, decidedAtMs: T0 + i, explain: i % 2 === 0 ? "off" : "full" },
        snapshot,
      }),
    );
  const linked = await openPage(app, `/replay?${new URLSearchParams({ change: evil, until: evil, kind: evil })}`);
  expect(linked.html).not.toContain("<img");
  expect(writtenIn(linked)).toBe(evil);
  const first = await replay(app, { change: "maxPods: 5 # <img src=x>" });
  const next = goOnOf(first);
  expect(next).not.toBeNull();
  const second = await postForm(app, "/replay", next ?? {});
  for (const page of [first, second, await replay(app, { change: evil, since: evil, node: "n1" })]) {
    expect(page.html).not.toMatch(/<img|<script>/);
  }
  expect(second.words).toContain(evil);
});

test("a node's token can replay its own node only, with Basic authentication", async () => {
  const { app, store } = await fleet();
  const token = newToken();
  value(
    await store.createToken({
      id: token.id,
      name: "n1",
      hash: await webSha256(token.text),
      scopes: ["read"],
      node: "n1",
      createdAtMs: 1,
      revokedAtMs: null,
    }),
  );
  const headers = { authorization: `Basic ${btoa(`me:${token.text}`)}` };
  expect((await openPage(app, "/replay")).status).toBe(401);
  const own = await replay(app, { change: PATCH }, { headers });
  expect(own.words).toContain("3 of 3 decisions would have been different. Decisions of node n1");
  expect((await replay(app, { node: "n2" }, { headers })).status).toBe(403);
  expect((await openPage(app, "/replay", headers)).html).not.toContain("n2");
});
