import { expect, test } from "vitest";
import { epochMs } from "../../api/model/units.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { capturedSnapshot, partOf, plotData, subject } from "./node-subject.ts";

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
function counted() {
  const store = value(openNode({ file: ":memory:" }));
  const reads = { count: 0 };
  const getDecision: typeof store.getDecision = (id) => {
    reads.count++;
    return store.getDecision(id);
  };
  return { store: { ...store, getDecision }, reads };
}

test("the plots of many passes are drawn from the bodies of a few", async () => {
  const { store, reads } = counted();
  const { app, decide, show } = subject({ store });
  for (let i = 0; i < 100; i++) await decide("eviction", { snapshot: passAt(i, 2000 - 10 * i) });
  // the node was observed days before the post, so the time of the forecast has passed
  const { thresholds } = (await (await app.request("/v1/nodes/n1")).json()) as {
    thresholds: readonly { signal: string; type: string; observedAt: string; metAt: string | null }[];
  };
  const observedAt = "2026-11-21T06:41:21Z";
  expect(thresholds.find(({ signal, type }) => signal === "memory.available" && type === "hard")).toMatchObject({
    observedAt: expect.stringMatching(/^2026-11-21T06:41:21(?:\.000)?Z$/),
    metAt: expect.stringMatching(/^2026-11-21T06:49:51(?:\.000)?Z$/),
  });
  expect((await show("/nodes/n1")).text("eviction")).toContain(
    `on stats of ${observedAt.replace("T", " ").replace("Z", " UTC")}`,
  );
  reads.count = 0;
  const { html, text } = await show("/nodes/n1");
  const { times, values, limits } = plotData(html, "memory.available");
  expect(times).toEqual(Array.from({ length: 100 }, (_, i) => START / 1000 + 10 * i));
  expect(values).toEqual(Array.from({ length: 100 }, (_, i) => (2000 - 10 * i) * MI));
  expect(limits).toEqual([
    { value: 500 * MI, words: "hard 500 MiB", soft: false },
    { value: 700 * MI, words: "soft 30s 700 MiB", soft: true },
  ]);
  expect(reads.count).toBeLessThanOrEqual(5);
  const message = text("plot-memory.available");
  expect(message).toContain("memory.available 1010 MiB < 500 MiB hard above -60 MiB/min: met 8m30s after these stats");
  expect(message).toContain(
    "< 700 MiB soft 30s above -60 MiB/min: met 5m10s after these stats, evicts 5m40s after these stats; default/besteffort is evicted first, which delays it by",
  );
  expect(text("eviction")).toMatch(/calm decided .*No pressure condition holds\./);
  expect(text("eviction")).toMatch(/Eviction order for memory .*1 default\/besteffort 0 1\.3 MiB 0 B 1\.3 MiB/);
  reads.count = 0;
  await show("/nodes/n1");
  expect(reads.count).toBe(1);
});

test("passes without facts are read one by one, up to a limit", async () => {
  const { store, reads } = counted();
  const { decide, show } = subject({ store });
  for (let i = 0; i < 60; i++) {
    // facts in the question: those of a kubelet that has just started
    const facts = { ...FIRST, atMs: START + i * 10_000 - 1 };
    await decide("eviction", { snapshot: passAt(i, 2000 - i), ask: { facts } });
  }
  reads.count = 0;
  const { html } = await show("/nodes/n1");
  expect(reads.count).toBe(48);
  expect(plotData(html, "memory.available").values).toEqual(Array.from({ length: 48 }, (_, i) => (2000 - 12 - i) * MI));
});
const FIRST = {
  fileSystems: "one",
  thresholdsFirstObservedAt: [],
  thresholdsMet: [],
  nodeConditionsLastObservedAt: [],
  lastObservations: [],
  samples: [],
};

test("plots go back as far as requested, over a week by a few passes of each part", async () => {
  const { store, reads } = counted();
  let clock = START;
  const { decide, show } = subject({ store, now: () => epochMs(clock) });
  const hours = 6 * 24;
  for (let hour = 0; hour <= hours; hour++) {
    for (let i = 0; i < 3; i++) {
      const pass = hour * 360 + i;
      clock = START + pass * 10_000;
      await decide("eviction", { snapshot: passAt(pass, hour === 30 ? 400 : 2000 + hour) });
    }
  }
  const hoursOf = async (range: string): Promise<number[]> => {
    reads.count = 0;
    const { html } = await show(`/nodes/n1${range}`);
    expect(reads.count).toBeLessThanOrEqual(48);
    const { times } = plotData(html, "memory.available");
    return times.map((at) => Math.floor((at - START / 1000) / 3600));
  };
  const week = await hoursOf("?range=7d");
  expect([week[0], week.at(-1)]).toEqual([expect.toSatisfy((hour: number) => hour < 12), hours]);
  expect(new Set(week).size).toBeGreaterThan(20);
  expect(new Set(await hoursOf("?range=6h"))).toEqual(
    new Set([hours - 5, hours - 4, hours - 3, hours - 2, hours - 1, hours]),
  );
  expect(new Set(await hoursOf("?range=1h"))).toEqual(new Set([hours]));
  const { html, text } = await show("/nodes/n1?range=7d");
  expect(text("plot-memory.available")).toMatch(/evicted default\/\S+ for memory\.available<500Mi/);
  expect(html).toMatch(/<a href="\/nodes\/n1\?range=7d#eviction" aria-current="true">week</);
  expect((await show("/nodes/n1?range=9d")).status).toBe(400);
});

test("plots under pressure, memory's and the nearest are unfolded, the others folded", async () => {
  const { decide, show } = subject();
  const snapshot = passAt(0, 2000);
  await decide("eviction", { snapshot });
  const folded = async (): Promise<readonly string[]> =>
    [...partOf((await show("/nodes/n1")).html, "other-plots").matchAll(/id="plot-([^"]*)"/g)].map(
      ([, id]) => id as string,
    );
  expect(await folded()).not.toContain("memory.available");
  expect(await folded()).not.toContain("nodefs.available");
  expect(await folded()).toContain("imagefs.available");
  const pids = { time: new Date(START + 60_000).toISOString(), maxpid: 1000, curproc: 990 };
  const pressed = passAt(6, 2000);
  await decide("eviction", {
    snapshot: { ...pressed, stats: { ...pressed.stats, node: { ...pressed.stats.node, rlimit: pids } } },
  });
  expect(await folded()).not.toContain("pid.available");
});

test("under pressure the page shows the conditions, who is evicted and why, and the ranking", async () => {
  const { decide, show } = subject();
  await decide("eviction", { snapshot: passAt(0, 400) });
  await decide("eviction", { snapshot: passAt(1, 400) });
  const { text } = await show("/nodes/n1");
  const message = text("eviction");
  expect(message).toContain("evicts memory.available decided");
  expect(message).toContain("MemoryPressure observed now, true until");
  expect(message).toMatch(/default\/besteffort threshold 1 s The node was low on resource: memory/);
  expect(text("plot-memory.available")).toContain("< 500 MiB hard below");
});

test("without a recorded pass the newest snapshot is decided as a first one, with a single point", async () => {
  const { decide, show } = subject();
  await decide("allocatable", { snapshot: capturedSnapshot() });
  const { html, text } = await show("/nodes/n1");
  expect(text("eviction")).toContain("as a first pass over the newest snapshot would end: none was recorded");
  expect(text("plot-memory.available")).toContain("no forecast: 1 of the three observations that it takes");
  expect(html).not.toContain('<script type="application/json">');
});
