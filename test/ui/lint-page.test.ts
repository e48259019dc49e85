import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { TouchedFinding } from "../../api/service/lint-touched.ts";
import { appOver } from "../api/serving.ts";
import { snapshotRow, value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { type App, openPage, postForm, unescaped, writtenIn } from "./replay-forms.ts";

const BAD = `maxPods: 110
evictionHard:
  memory.available: 100Mi
  nodefs.available: 110%
imageGCHighThresholdPercent: 70
imageGCLowThresholdPercent: 80
kubeResreved:
  cpu: 500m
`;
const BAD_VALUE = {
  maxPods: 110,
  evictionHard: { "memory.available": "100Mi", "nodefs.available": "110%" },
  imageGCHighThresholdPercent: 70,
  imageGCLowThresholdPercent: 80,
  kubeResreved: { cpu: "500m" },
};
const JSON_HEADERS = { "content-type": "application/json" };

async function withNode() {
  const made = appOver();
  for (const [kind, node] of [
    ["allocatable", "n1"],
    ["cgroups", "n1"],
    ["eviction", "n1"],
    ["allocatable", "elsewhere"],
  ] as const) {
    const body = JSON.stringify({ snapshot: capturedNode(node) });
    const response = await made.app.request(`/v1/decisions/${kind}`, { method: "POST", headers: JSON_HEADERS, body });
    expect(response.status, await response.clone().text()).toBe(200);
  }
  return made;
}
async function asked(app: App, body: object): Promise<readonly TouchedFinding[]> {
  const response = await app.request("/v1/lint", { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(body) });
  return ((await response.json()) as { findings: readonly TouchedFinding[] }).findings;
}
/** The page's articles in their order, one per finding. */
const cardsOf = (html: string): readonly string[] => html.match(/<article [\s\S]*?<\/article>/g) ?? [];

describe("the kubelet's command line on the lint page", () => {
  test("overrides the configuration, and may be given alone", async () => {
    const { app } = await withNode();
    const page = await postForm(app, "/lint", {
      change: "maxPods: -1\n",
      args: "kubelet --max-pods=-5 --containerd=/x",
    });
    expect(page.words).toContain("kubelet’s message failed to parse kubelet flag: unknown flag: --containerd");
    expect(page.words).toContain("kubelet’s message invalid configuration: maxPods (--max-pods) -5 must not be");
    expect(page.words).toContain("--max-pods sets maxPods: -5, and maxPods: -1 of the file does not count");
    const alone = await postForm(app, "/lint", { args: "ExecStart=/usr/bin/kubelet --containerd=/x", kubelet: "1.36" });
    expect(alone.words).toContain("kubelet 1.37 no longer starts with it");
    expect(alone.html).toContain("--containerd=/x</textarea>");
    const none = await postForm(app, "/lint", { change: "maxPods: 5", args: "kubelet" });
    expect([none.status, none.words]).toEqual([400, expect.stringContaining("there is no flag in it")]);
  });
});

describe("findings on the lint page", () => {
  test("are those of POST /v1/lint, the worst first, with advice, patch and counts", async () => {
    const { app } = await withNode();
    const page = await postForm(app, "/lint", { change: BAD, node: "n1" });
    const findings = await asked(app, { kubeletConfiguration: BAD_VALUE, node: "n1" });
    const cards = cardsOf(page.html).map(unescaped);
    expect(page.status).toBe(200);
    expect(findings.length).toBeGreaterThan(3);
    expect(cards).toHaveLength(findings.length);
    for (const [i, { field, code, message, kubelet, fix, touched }] of findings.entries()) {
      expect(cards[i]).toContain(`<code>${field}</code>`);
      expect(cards[i]).toContain(code);
      expect(cards[i]?.includes(`<q class="kubelet">${message}</q>`)).toBe(kubelet);
      expect(cards[i]).toContain(message);
      expect(cards[i]?.includes("data-copy")).toBe(fix !== null);
      if (fix !== null) expect(cards[i]).toContain(JSON.stringify(fix, null, 2));
      if (touched !== null) expect(cards[i]).toContain(`touched ${touched.decisions} of ${touched.of}`);
    }
    expect(page.words).toContain("1 error, 1 warning");
    // the node's configuration has lost its defaults as well
    expect(findings.find(({ code }) => code === "eviction-defaults-dropped")?.touched).toEqual({ decisions: 1, of: 3 });
  });

  test("are marked at their line, and a map's at the line of its name", async () => {
    const { app } = appOver();
    const { html } = await postForm(app, "/lint", { change: BAD });
    const row = (line: number): string => new RegExp(`<tr id="line-${line}"[\\s\\S]*?</tr>`).exec(html)?.[0] ?? "";
    expect(row(1)).not.toContain("href");
    expect(row(2)).toContain("warning: eviction-defaults-dropped");
    expect(row(4)).toContain("refuses-start: out-of-range");
    expect(row(6)).toContain("image-gc-low-not-below-high");
    expect(row(7)).toContain("error: unknown-field");
    for (const [, target] of html.matchAll(/href="#([\w-]+)"/g)) expect(html).toContain(`id="${target}"`);
  });

  test("have patches that can be tried, and one patch for all", async () => {
    const { app } = await withNode();
    const { html } = await postForm(app, "/lint", { change: BAD, node: "n1" });
    const links = [...html.matchAll(/href="(\/replay\?[^"]*)"/g)].map(([, link = ""]) => unescaped(link));
    expect(links.length).toBeGreaterThan(2);
    const patches = links
      .filter((link) => link.startsWith("/replay"))
      .map((link) => new URLSearchParams(link.slice(8)));
    expect(patches.map((patch) => patch.get("change"))).toContain('{"mergeDefaultEvictionSettings":true}');
    const whole = JSON.parse(patches.at(-1)?.get("change") ?? "{}");
    expect(whole).toMatchObject({
      mergeDefaultEvictionSettings: true,
      kubeResreved: null,
      kubeReserved: { cpu: "500m" },
    });
    const replay = await openPage(app, `/replay?${patches[0]}`);
    expect(writtenIn(replay)).toBe(patches[0]?.get("change"));
    expect(replay.html).toContain('name="node" value="n1"');
    const [link = ""] = [...html.matchAll(/href="(\/what-if\?[^"#]*)#result"/g)].map(([, one = ""]) => unescaped(one));
    const fields = new URLSearchParams(link.slice("/what-if?".length));
    expect(Object.fromEntries(fields)).toMatchObject({ node: "n1", as: "patch" });
    const whatIf = await openPage(app, link);
    expect(whatIf.status, whatIf.words).toBe(200);
    expect(unescaped(whatIf.html)).toContain(fields.get("change"));
    expect(whatIf.words).toContain("What would change");
  });

  test("leave an unknown signal unchanged in the patch for all", async () => {
    const { app } = appOver();
    const change = "evictionHard:\n  disk.available: 10%\n  foo.available: 1Gi\nnope: 1\n";
    const { html } = await postForm(app, "/lint", { change });
    const [, all = ""] = /id="all"[\s\S]*?<pre[^>]*>([\s\S]*?)<\/pre>/.exec(html) ?? [];
    expect(JSON.parse(unescaped(all))).toEqual({
      evictionHard: { "disk.available": null, "nodefs.available": "10%" },
      mergeDefaultEvictionSettings: true,
      nope: null,
    });
  });

  test("are none for a good configuration, also from /configz", async () => {
    const { app } = appOver();
    const page = await postForm(app, "/lint", { change: '{"kubeletconfig": {"failCgroupV1": true}}' });
    expect(page.status).toBe(200);
    const findings = await asked(app, { kubeletConfiguration: { kubeletconfig: { failCgroupV1: true } } });
    expect(cardsOf(page.html)).toHaveLength(findings.length);
    expect((await postForm(app, "/lint", { change: "maxPods: 50" })).words).toContain("Nothing found.");
  });
});

describe("a node of the history on the lint page", () => {
  test("is checked with its recorded configuration, which can be edited", async () => {
    const { app } = await withNode();
    const page = await openPage(app, "/lint?node=n1");
    expect(page.status).toBe(200);
    const written = JSON.parse(writtenIn(page)) as object;
    expect(Object.keys(written).length).toBeGreaterThan(3);
    expect(cardsOf(page.html)).toHaveLength((await asked(app, { node: "n1" })).length);
    expect(page.words).toContain("As recorded by node n1");
    expect((await openPage(app, "/lint")).html).toContain('href="/lint?node=n1"');
  });

  test("that is unknown is reported at its field with similar names, and the text stays", async () => {
    const { app } = await withNode();
    for (const page of [
      await openPage(app, "/lint?node=n2"),
      await postForm(app, "/lint", { change: BAD, node: "n2" }),
    ]) {
      expect(page.status).toBe(404);
      expect(page.words).toContain("there is no node n2; there is n1");
      expect(page.html).toContain('href="/lint?node=n1"');
      expect(page.html).toContain('aria-describedby="node-fault"');
      expect(page.html).toContain('value="n2"');
    }
    expect(writtenIn(await postForm(app, "/lint", { change: BAD, node: "n2" }))).toBe(BAD);
  });

  test("without a configuration, without a snapshot or of another version is reported", async () => {
    const { app, store } = appOver();
    const put = (name: string, body: object) =>
      app.request(`/v1/nodes/${name}/snapshot`, { method: "PUT", headers: JSON_HEADERS, body: JSON.stringify(body) });
    expect((await put("bare", { node: { metadata: { name: "bare" } } })).status).toBeLessThan(300);
    expect((await openPage(app, "/lint?node=bare")).words).toContain("node bare holds no configuration: paste it");
    expect((await postForm(app, "/lint", { change: BAD, node: "bare" })).words).toContain("refuses-start");
    value(await store.putSnapshot(snapshotRow({ node: "old", body: '{"pods":[{"metadata":{}}]}' })));
    expect((await openPage(app, "/lint?node=old")).words).toContain(
      "node old cannot be read by this version: paste it",
    );
    const pruned = appOver({ store: { ...store, latestSnapshot: async () => ({ ok: true, value: null }) } });
    const page = await openPage(pruned.app, "/lint?node=bare");
    expect(page.words).toContain("of node bare the newest snapshot is no longer stored: paste it");
    const posted = await postForm(pruned.app, "/lint", { change: BAD, node: "bare" });
    expect(posted.words).toContain("no longer stored: only the configuration is checked");
  });
});

describe("invalid input on the lint page", () => {
  test.each([
    ["broken YAML", "maxPods: [3\nx: 1\n", /the configuration:2:1: .*is not YAML or JSON/],
    ["a list", "[1, 2]", /the configuration: is a list, and no KubeletConfiguration/],
    ["another object", "kind: Node\n", /is an object of kind Node, and no KubeletConfiguration/],
    ["nothing", "\n", /there is nothing to check/],
  ])("%s is reported at the text, which stays", async (_name, change, fault) => {
    const { app } = appOver();
    const page = await postForm(app, "/lint", { change });
    expect(page.status).toBe(400);
    expect(page.words).toMatch(fault);
    expect(writtenIn(page)).toBe(change);
  });

  test("an uploaded file is refused when too large or no text, and checked otherwise", async () => {
    const { app } = appOver();
    const file = (content: string | Uint8Array<ArrayBuffer>): File => new File([content], "kubelet.yaml");
    expect((await postForm(app, "/lint", {}, { file: file("x".repeat(9 * 1024 * 1024)) })).status).toBe(413);
    const binary = await postForm(app, "/lint", { change: BAD }, { file: file(new Uint8Array([0xff, 0xfe])) });
    expect(binary.words).toContain("kubelet.yaml: is not UTF-8 text");
    expect(writtenIn(binary)).toBe(BAD);
    const good = await postForm(app, "/lint", {}, { file: file(BAD) });
    expect(writtenIn(good)).toBe(BAD);
    expect(good.words).toContain("unknown-field");
  });
});

test("markup is shown as text, and a page with thousands of findings stays small", async () => {
  const { app } = appOver();
  const evil = `</textarea><script>alert(1)</script><img src=x>`;
  const page = await postForm(app, "/lint", {
    change: `${JSON.stringify(evil)}: ${JSON.stringify(evil)}\nevictionHard:\n  ? ${JSON.stringify(evil)}\n  : 1%\n`,
  });
  expect(page.html).not.toMatch(/<script>|<img/);
  expect(page.words).toContain(evil);
  const many = Array.from({ length: 1900 }, (_, i) => `field${i}: ${i}`).join("\n");
  const large = await postForm(app, "/lint", { change: many });
  expect(large.status).toBe(200);
  expect(gzipSync(large.html).length).toBeLessThan(150_000);
});
