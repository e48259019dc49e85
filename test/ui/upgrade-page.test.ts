import { describe, expect, test } from "vitest";
import { MAX_REPLAYED } from "../../api/service/replay/replay-page.ts";
import { appOver } from "../api/serving.ts";
import { decisionRow, value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { openPage, postForm, unescaped, writtenIn } from "./replay-forms.ts";

async function withNode(kubeletVersion?: string) {
  const made = appOver();
  for (const kind of ["allocatable", "cgroups"]) {
    const body = JSON.stringify({ snapshot: capturedNode("n1", kubeletVersion) });
    const headers = { "content-type": "application/json" };
    const response = await made.app.request(`/v1/decisions/${kind}`, { method: "POST", headers, body });
    expect(response.status, await response.clone().text()).toBe(200);
  }
  return made;
}
/** More than two replay pages of decisions. */
const LONGER = 2 * MAX_REPLAYED + 1;
/**
 * The number of recorded decisions on the page: those that were compared, and those that were recorded without a
 * snapshot and cannot be decided again.
 */
function decisionsIn(words: string): number {
  const found = /of ([\d,]+) recorded decisions would change.*?; ([\d,]+) more could not be decided again/.exec(words);
  return (found ?? []).slice(1).reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0);
}
const GONE = "featureGates:\n  SidecarContainers: true\n";

describe("the upgrade page", () => {
  test("is a form at first, and a link with a node and a version shows the answer", async () => {
    const { app } = await withNode();
    const form = await openPage(app, "/upgrade");
    expect(form.html).toContain('<form id="upgrade"');
    expect(form.html).toContain('href="/upgrade" aria-current="page"');
    expect(form.html).not.toContain('id="outcome"');
    const { status, words, html } = await openPage(app, "/upgrade?node=n1&to=1.37");
    expect(status).toBe(200);
    expect(words).toContain("n1: kubelet 1.36 -> 1.37: it would start; some things change.");
    expect(words).toContain("MemoryQoS off on");
    expect(words).toContain("0 of 2 recorded decisions would change");
    for (const id of ["gates", "decisions", "notes", "steps", "history-title"]) expect(html).toContain(`id="${id}"`);
  });

  test("shows why the other kubelet would not start in its words, with a patch, and the static pods", async () => {
    const { app } = await withNode("v1.34.4");
    const page = await postForm(app, "/upgrade", { to: "1.35", from: "1.33", node: "n1" });
    expect(page.words).toContain("n1: kubelet 1.34 -> 1.35: it would not start with this configuration.");
    expect(page.words).toContain("the node reports kubelet v1.34.4, which takes precedence over 1.33");
    expect(page.html).toMatch(/<q class="kubelet">kubelet is configured to not run on a host using cgroup v1\. /);
    expect(unescaped(page.html)).toContain('data-copy="the patch of failCgroupV1">{\n  "failCgroupV1": false\n}</pre>');
    expect(page.words).toContain("kube-system/static1-n1");
    const given = await postForm(app, "/upgrade", { to: "1.37", from: "1.36", change: GONE });
    expect(given.words).toContain("kubelet 1.36 -> 1.37: it would not start");
    expect(writtenIn(given)).toBe(GONE);
    const same = await postForm(app, "/upgrade", { to: "1.34", node: "n1" });
    expect(same.words).toContain("nothing changes");
  });

  test("shows findings with their lines, and checks flags", async () => {
    const { app } = await withNode();
    const change = `maxPods: 100\n${GONE}`;
    const args = "kubelet --containerd=/x";
    const page = await postForm(app, "/upgrade", { to: "1.37", from: "1.36", change, args });
    expect(page.words).toContain('featureGates["SidecarContainers"] line 3, new');
    expect(page.words).toContain("--containerd new removed-flag");
    expect(page.words).toContain("kubelet’s message failed to parse kubelet flag: unknown flag: --containerd");
    expect(page.words).toContain("true (line 3) removed no patch is needed to keep it");
    expect(page.html).toContain(`${args}</textarea>`);
    const alone = await postForm(app, "/upgrade", { to: "1.37", from: "1.36", args });
    expect(alone.words).toContain("it would not start with this configuration");
    const none = await postForm(app, "/upgrade", { to: "1.37", from: "1.36", args: "kubelet" });
    expect([none.status, none.words]).toEqual([400, expect.stringContaining("there is no flag in it")]);
  });

  test("merges drop-ins over the configuration, and names the drop-in and line of a finding", async () => {
    const { app } = await withNode();
    const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    const dropIns = `${head}featureGates:\n  MemoryQoS: false\n---\n${head}${GONE}maxPods: 5\n`;
    const asked = { to: "1.37", from: "1.36", change: "maxPods: -1\n" };
    const page = await postForm(app, "/upgrade", { ...asked, dropIns });
    expect(page.status, page.words).toBe(200);
    expect(page.words).toContain('featureGates["SidecarContainers"] drop-in 2, line 9, new');
    // the second drop-in overrides the file
    expect(page.words).not.toContain("maxPods line 1");
    expect(page.words).not.toMatch(/MemoryQoS off on/);
    expect(unescaped(page.html)).toContain(`${dropIns}</textarea>`);
    const alone = await postForm(app, "/upgrade", asked);
    expect(alone.words).toContain("maxPods line 1, as before");
    expect(alone.words).toMatch(/MemoryQoS off on/);
    const headless = await postForm(app, "/upgrade", { ...asked, change: "maxPods: 9\n", dropIns: "maxPods: 5" });
    expect(headless.words).toContain("drop-in 1");
    expect(headless.words).toContain("it would not start with this configuration");
  });

  test("answers an unknown current kubelet by the nearest version, and reports a field it ignores", async () => {
    const { app } = await withNode();
    const change = "maxPods: 9\nmemoryReservationPolicy: None\n";
    const page = await postForm(app, "/upgrade", { to: "1.37", from: "1.33", change });
    expect(page.words).toContain("kubelet 1.34 (the nearest known) -> 1.37: it would start");
    expect(page.words).toContain(
      "kubelet 1.33 is not known here: 1.34 is the nearest that is; what changed between the two is not listed.",
    );
    expect(page.words).toContain("What kubelet 1.34 alone does not take");
    expect(page.words).toContain("memoryReservationPolicy line 2 unknown-field");
    expect(page.html).toContain('<q class="kubelet">strict decoding error: unknown field &quot;memoryRes');
    expect(page.html).toContain('<option value="1.33" selected>1.33</option>');
  });

  test("replays all pages of a node's decisions by a button, and the first one by a link", async () => {
    const { app, store } = await withNode();
    const since = Date.now() - 60_000;
    for (let i = 0; i < LONGER; i++) {
      const policyVersion = i % 2 === 0 ? "kubelet-1.36+7" : "kubelet-1.37+3";
      value(await store.record({ decision: decisionRow({ node: "n1", policyVersion, decidedAtMs: since + i }) }));
    }
    const all = LONGER + 2;
    const pressed = await postForm(app, "/upgrade", { to: "1.37", node: "n1" });
    expect(decisionsIn(pressed.words)).toBe(all);
    expect(pressed.words).not.toContain("nodewise upgrade goes through all");
    const linked = await openPage(app, "/upgrade?node=n1&to=1.37");
    expect(decisionsIn(linked.words)).toBeLessThan(all);
    expect(linked.words).toContain("nodewise upgrade goes through all");
  });

  test.each<[object, number, string]>([
    [{ node: "n1" }, 400, "must be a version of the kubelet"],
    [{ to: "1.99", node: "n1" }, 400, "kubelet 1.99 is not known here"],
    [{ to: "1.37" }, 400, "paste a configuration, or name a node"],
    [{ to: "1.37", change: "maxPods: 5" }, 400, "is needed: no snapshot has"],
    [{ to: "1.37", from: "1.36", change: "- a" }, 400, "no KubeletConfiguration"],
    [{ to: "1.37", from: "newest", change: "maxPods: 5" }, 400, "must be a version of the kubelet"],
    [{ to: "1.37", node: "n1", dropIns: "maxPods: 5" }, 400, "over which the drop-ins are merged"],
    [{ to: "1.37", from: "1.36", change: "maxPods: 5", dropIns: "a: [" }, 400, "the drop-ins:1:"],
    [{ to: "1.37", from: "1.36", change: "a: 1", dropIns: "a: 1\n---\n".repeat(65) }, 400, "64 are the most"],
    [{ to: "1.37", node: "n2" }, 404, "there is no node n2"],
  ])("reports %j at its field", async (fields, status, words) => {
    const { app } = await withNode();
    const page = await postForm(app, "/upgrade", { ...fields });
    expect([page.status, page.words]).toEqual([status, expect.stringContaining(words)]);
    expect(page.html).toContain('aria-invalid="true"');
  });
});
