import { expect, test } from "vitest";
import { resultRow, value } from "../contract/store-rows.ts";
import { realRuntime } from "../kit/real-node.ts";
import { capturedSnapshot, subject } from "./node-subject.ts";

const EVIL = `</script><script>alert("1")</script><img src=x onerror='y' style="z">`;
/** Every tag of a page, unchanged. */
const tagsOf = (html: string): readonly string[] => [...html.matchAll(/<[a-zA-Z/!][^>]*>/g)].map(([tag]) => tag);

test("names with markup are shown as text in every part", async () => {
  const { decide, show, store } = subject();
  const snapshot = capturedSnapshot();
  const [first] = snapshot.pods;
  if (first === undefined) throw new Error("no pod");
  snapshot.node.status.nodeInfo["kernelVersion"] = EVIL;
  const asked = {
    ...snapshot,
    kubeletConfiguration: { ...snapshot.kubeletConfiguration, cpuManagerPolicyOptions: { [EVIL]: EVIL } },
    runtime: { ...realRuntime(), images: [{ id: EVIL, repoTags: [EVIL], size: "7" }] },
    devices: [{ resource: "example.com/gpu", id: EVIL, health: EVIL, numaNodes: [0] }],
    devicePlugins: [{ resource: "example.com/gpu" }],
  };
  const { id } = await decide("allocatable", { snapshot: asked });
  const cgroups = await decide("cgroups", { snapshot: asked });
  for (let i = 0; i < 3; i++) {
    const time = new Date(Date.parse(snapshot.observedAt) + i * 10_000).toISOString();
    snapshot.stats.node.memory = { ...snapshot.stats.node.memory, time };
    await decide("eviction", { snapshot: { ...asked, stats: snapshot.stats, observedAt: time } });
  }
  const step = { op: EVIL, path: EVIL, file: EVIL, to: EVIL, before: EVIL, status: "failed", message: EVIL };
  const body = JSON.stringify({ dryRun: true, steps: [step] });
  value(await store.addResults(cgroups.id, [{ ...resultRow({ atMs: Date.now() }), body }]));
  const { html, status } = await show("/nodes/n1");
  expect(status).toBe(200);
  expect(html).toContain(`/decisions/${id}`);
  expect(html).toContain("&lt;img src=x");
  const tags = tagsOf(html);
  expect(tags.filter((tag) => /\s(?:on\w+|style)\s*=/i.test(tag.replaceAll(/"[^"]*"/g, '""')))).toEqual([]);
  expect(tags.filter((tag) => tag.startsWith("<img") || tag.startsWith("<style"))).toEqual([]);
  const scripts = tags.filter((tag) => tag.startsWith("<script"));
  const known = /^<script (?:type="application\/json"|(?:type="module" )?src="\/assets\/[\w.]+"(?: defer)?)>$/;
  expect(scripts.filter((tag) => !known.test(tag))).toEqual([]);
  expect(scripts.filter((tag) => tag.includes("json")).length).toBeGreaterThan(0);
});

test("form input with markup is shown as text", async () => {
  const { decide, show } = subject();
  await decide("allocatable", { snapshot: capturedSnapshot() });
  const page = await show(`/nodes/n1/decisions?pod=${encodeURIComponent(`"><script>alert(1)</script>`)}`);
  expect(page.status).toBe(200);
  expect(page.html).toContain('value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"');
  expect(tagsOf(page.html).filter((tag) => /^<script(?! (?:type="module" )?src="\/assets)/.test(tag))).toEqual([]);
});
