import { describe, expect, test } from "vitest";
import { eventsOfAdmission, eventsOfPass, type NodeEvent, spansOf } from "../../api/ui/node/node-events.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { container } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import { capturedSnapshot, partOf, plotData, readable, subject } from "./node-subject.ts";

const START = Date.parse("2026-11-21T06:24:51Z");
const MI = 2 ** 20;

/** Pass number `i`, ten seconds after the one before, with this much available memory. */
function passAt(i: number, availableMi: number) {
  const snapshot = capturedSnapshot();
  const time = new Date(START + i * 10_000).toISOString();
  snapshot.observedAt = time;
  snapshot.stats.node.memory = { ...snapshot.stats.node.memory, time, availableBytes: availableMi * MI };
  return snapshot;
}
/** A history that counts how many bodies of decisions are read. */
function countedReads() {
  const store = value(openNode({ file: ":memory:" }));
  const reads = { count: 0 };
  const getDecision: typeof store.getDecision = (id) => {
    reads.count++;
    return store.getDecision(id);
  };
  return { store: { ...store, getDecision }, reads };
}
const marksIn = (html: string): readonly string[] =>
  [...html.matchAll(/<path class="act (\w+)" d="[^"]*"><title>([^<]*)/g)].map(
    ([, tone, words]) => `${tone}: ${readable(words ?? "")}`,
  );
interface Drawn {
  readonly acts: readonly { at: number; number: number; tone: string }[];
  readonly times: readonly number[];
}

describe("marks of actions in a signal's plot", () => {
  test("show an eviction with pod, time and decision in that signal's plot only, also without scripts", async () => {
    const { decide, show } = subject();
    const ids: string[] = [];
    for (const [i, left] of [2000, 1500, 1000, 400, 450, 2000].entries())
      ids.push((await decide("eviction", { snapshot: passAt(i, left) })).id);
    const { html, text } = await show("/nodes/n1");
    const plot = partOf(html, "plot-memory.available");
    const words = "evicted default/besteffort for memory.available<500Mi by 2 passes from 06:25:21 to 06:25:31";
    expect(marksIn(plot)).toEqual([`bad: ${words}`]);
    expect(plot).toMatch(/<text class="act-name" x="[\d.]+" y="\d+">1<\/text>/);
    expect(plot).toContain(
      `<a href="/decisions/${ids[3]}" title="evicted default/besteffort for memory.available&lt;500Mi">evicted default/besteffort for memory.available&lt;500Mi</a>`,
    );
    expect(plot.match(/aria-label="([^"]*)"/)?.[1]).toContain(
      "; 1: evicted default/besteffort for memory.available&lt;500Mi",
    );
    const { acts, times } = plotData(html, "memory.available") as unknown as Drawn;
    expect(acts).toEqual([{ at: START / 1000 + 30, number: 1, tone: "bad" }]);
    expect(times).toContain(acts[0]?.at);
    for (const signal of ["nodefs.available", "pid.available"])
      expect(marksIn(partOf(html, `plot-${signal}`))).toEqual([]);
    expect(text("eviction")).toContain("hard threshold soft threshold evicted: a pod is evicted");
  });

  test("combine many evicting passes in a row into one mark, and read only a few of them", async () => {
    const { store, reads } = countedReads();
    const { decide, show } = subject({ store });
    const count = 60;
    for (let i = 0; i < count; i++) await decide("eviction", { snapshot: passAt(i, i < 10 ? 2000 : 400) });
    reads.count = 0;
    const plot = partOf((await show("/nodes/n1")).html, "plot-memory.available");
    const [mark, ...others] = marksIn(plot);
    expect(mark).toBe(
      "bad: evicted default/besteffort for memory.available<500Mi, then memory.available<700Mi by 50 passes from 06:26:31 to 06:34:41",
    );
    expect(others).toEqual([]);
    expect(reads.count).toBeLessThanOrEqual(5);
  });

  test("are at the time of their pass", async () => {
    const { decide, show } = subject();
    for (const [i, left] of [2000, 1500, 400, 1500, 1500].entries())
      await decide("eviction", { snapshot: passAt(i, left) });
    const plot = partOf((await show("/nodes/n1")).html, "plot-memory.available");
    const curve = /class="curve" d="([^"]*)"/.exec(plot)?.[1] ?? "";
    const places = [...curve.matchAll(/[ML]([\d.]+) /g)].map(([, x]) => x);
    expect(/class="act bad" d="M([\d.]+) /.exec(plot)?.[1]).toBe(places[2]);
  });

  test("are absent without evictions, together with list and legend", async () => {
    const { decide, show } = subject();
    for (let i = 0; i < 3; i++) await decide("eviction", { snapshot: passAt(i, 2000) });
    const section = partOf((await show("/nodes/n1")).html, "eviction");
    expect(marksIn(section)).toEqual([]);
    expect(section).not.toContain("<ol");
    expect(readable(section)).not.toContain("a pod is evicted");
  });

  test("show reclaims without an eviction, and pods preempted for a critical pod", async () => {
    const { decide, show } = subject();
    const full = passAt(1, 2000);
    const disk = { availableBytes: 5e9, capacityBytes: 270e9, inodes: 1e7, inodesFree: 9e6, time: full.observedAt };
    const stats = {
      ...full.stats,
      node: { ...full.stats.node, fs: disk, runtime: { imageFs: disk, containerFs: disk } },
    };
    await decide("eviction", { snapshot: passAt(0, 2000) });
    const after = { ...stats, node: { ...stats.node, fs: { ...disk, availableBytes: 200e9 } } };
    const free = { ...disk, availableBytes: 200e9 };
    const freed = { ...after, node: { ...after.node, runtime: { imageFs: free, containerFs: free } } };
    const { id } = await decide("eviction", { snapshot: { ...full, stats }, ask: { statsAfterReclaim: freed } });
    const pod = podOf(
      [container("a", { cpu: "300m", memory: "22Gi" })],
      { priority: 2_000_000_000, priorityClassName: "system-node-critical" },
      { metadata: { name: "agent", namespace: "kube-system", uid: "u-agent" } },
    );
    const admission = await decide("admission", { snapshot: full, ask: { pod } });
    await decide("eviction", { snapshot: passAt(2, 2000) });
    const { html } = await show("/nodes/n1");
    const disks = ["nodefs.available", "imagefs.available"].map((signal) => partOf(html, `plot-${signal}`)).join("");
    expect(marksIn(disks)).toEqual([
      expect.stringMatching(/^warn: reclaimed delete-unused-.* for \w+\.available<5% at 06:25:01$/),
    ]);
    expect(disks).toContain(`/decisions/${id}`);
    const memory = partOf(html, "plot-memory.available");
    expect(marksIn(memory)).toEqual([expect.stringMatching(/^c3: preempted default\/.* for kube-system\/agent at/)]);
    expect(memory).toContain(`/decisions/${admission.id}`);
  });
});

const act = (atMs: number, over: Partial<NodeEvent> = {}): NodeEvent => ({
  kind: "evicted",
  decisionId: `d${atMs}`,
  atMs,
  untilMs: atMs,
  times: 1,
  what: "shop/web",
  why: "memory.available<1Gi",
  signals: ["memory.available"],
  ...over,
});

test("consecutive passes with the same action are combined, in whatever order they are reported", () => {
  const reported = [act(30), act(10), act(20), act(40, { what: "shop/db" }), act(50)];
  expect(spansOf(reported).map(({ atMs, untilMs, times, what }) => [atMs, untilMs, times, what])).toEqual([
    [10, 30, 3, "shop/web"],
    [40, 40, 1, "shop/db"],
    [50, 50, 1, "shop/web"],
  ]);
  const others = [act(10), act(15, { kind: "preempted", why: "x/y" }), act(20)];
  expect(spansOf(others)).toHaveLength(2);
});

test("an eviction for a pod's own limit names no threshold, and an admission without preemption is no mark", () => {
  const pod = { namespace: "shop", name: "web", uid: "u" };
  const pass = { reclaim: null, evicted: [{ pod, cause: "emptyDir" }], thresholds: [] } as never;
  expect(eventsOfPass(pass, { id: "d", decidedAtMs: 7 })).toEqual([
    {
      kind: "evicted",
      decisionId: "d",
      atMs: 7,
      untilMs: 7,
      times: 1,
      what: "shop/web",
      why: "a limit of an emptyDir",
      signals: ["nodefs.available"],
    },
  ]);
  expect(eventsOfAdmission({ pod, preempt: [] }, { id: "d", decidedAtMs: 7 })).toEqual([]);
});
