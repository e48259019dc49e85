import { expect, test } from "vitest";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { captured, plotData, subject } from "./node-subject.ts";

const START = Date.parse("2026-11-21T06:24:51Z");
const MI = 2 ** 20;

/** Pass number `i`, ten seconds after the one before, with so much memory left. */
function passAt(i: number, availableMi: number) {
  const snapshot = captured();
  const time = new Date(START + i * 10_000).toISOString();
  snapshot.observedAt = time;
  snapshot.stats.node.memory = { ...snapshot.stats.node.memory, time, availableBytes: availableMi * MI };
  return snapshot;
}

/** A history that counts the bodies of decisions that are read. */
function counted() {
  const store = value(openNode({ file: ":memory:" }));
  const reads = { count: 0 };
  const getDecision: typeof store.getDecision = (id) => {
    reads.count++;
    return store.getDecision(id);
  };
  return { store: { ...store, getDecision }, reads };
}

test("the points of many passes are drawn from the bodies of a few", async () => {
  const { store, reads } = counted();
  const { decide, show } = subject({ store });
  for (let i = 0; i < 100; i++) await decide("eviction", { snapshot: passAt(i, 2000 - 10 * i) });
  reads.count = 0;
  const { html, text } = await show("/nodes/n1");
  const { times, values, limits } = plotData(html, "memory.available");
  expect(times).toEqual(Array.from({ length: 100 }, (_, i) => START / 1000 + 10 * i));
  expect(values).toEqual(Array.from({ length: 100 }, (_, i) => (2000 - 10 * i) * MI));
  expect(limits).toEqual([
    { value: 500 * MI, words: "hard 500Mi", soft: false },
    { value: 700 * MI, words: "soft 30s 700Mi", soft: true },
  ]);
  expect(reads.count).toBeLessThanOrEqual(5);
  const told = text("plot-memory.available");
  expect(told).toContain("memory.available 1010 MiB < 500Mi hard above -60 MiB/min: met in 8m30s");
  expect(told).toContain(
    "< 700Mi soft 30s above -60 MiB/min: met in 5m10s, evicts in 5m40s; goes first: default/besteffort buys",
  );
  expect(text("eviction")).toMatch(/calm decided .*No pressure condition holds\./);
  expect(text("eviction")).toMatch(/First to go for memory .*1 default\/besteffort 0 1\.3 MiB 0 B 1\.3 MiB/);
  reads.count = 0;
  await show("/nodes/n1");
  expect(reads.count).toBe(1);
});

test("passes that remember nothing are read one by one, and no more than a bound", async () => {
  const { store, reads } = counted();
  const { decide, show } = subject({ store });
  for (let i = 0; i < 60; i++) {
    // a caller's own facts: of a kubelet that has just started
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

test("pressure: the conditions, who goes and why, and the ranking that is acted on", async () => {
  const { decide, show } = subject();
  await decide("eviction", { snapshot: passAt(0, 400) });
  await decide("eviction", { snapshot: passAt(1, 400) });
  const { text } = await show("/nodes/n1");
  const told = text("eviction");
  expect(told).toContain("evicts memory.available decided");
  expect(told).toContain("MemoryPressure observed now, true until");
  expect(told).toMatch(/default\/besteffort threshold 1 s The node was low on resource: memory/);
  expect(text("plot-memory.available")).toContain("< 500Mi hard below");
});

test("without a recorded pass the snapshot's own is shown as a first one, and the plot is a point", async () => {
  const { decide, show } = subject();
  await decide("allocatable", { snapshot: captured() });
  const { html, text } = await show("/nodes/n1");
  expect(text("eviction")).toContain("as a first pass over the newest snapshot would end: none was recorded");
  expect(text("plot-memory.available")).toContain("no forecast: 1 of the three observations that it takes");
  expect(html).not.toContain('<script type="application/json">');
});
