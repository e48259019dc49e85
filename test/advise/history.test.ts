import { expect, onTestFinished, test } from "vitest";
import { adviseNode, measuredHistory } from "../../api/service/advise/advise-node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { HOUR, measuredSnapshot, START } from "../kit/summary.ts";

const MINUTE = 60_000;

/**
 * A history of a node with a snapshot each `everyMs`; its kubelet uses 1 MiB in the first, 2 MiB in the second and so
 * on. Each snapshot has `kinds` decisions.
 */
async function history(count: number, everyMs: number, kinds = 1) {
  const store = value(openNode({ file: ":memory:" }));
  onTestFinished(() => store.close());
  for (let i = 0; i < count; i++) {
    const at = T0 + i * everyMs;
    const snapshot = snapshotRow({ node: "n1", storedAtMs: at, body: JSON.stringify(measuredSnapshot(i, i + 1)) });
    for (let kind = 0; kind < kinds; kind++) {
      const decision = decisionRow({ node: "n1", snapshotId: snapshot.id, decidedAtMs: at + kind });
      value(await store.record({ decision, snapshot }));
    }
  }
  return store;
}
const ALL = { sinceMs: 0, untilMs: T0 + 1e12 };
const read = async (store: Awaited<ReturnType<typeof history>>, most: number, span = ALL) => {
  const { measurements, ...rest } = value(await measuredHistory(store, "n1", span, most));
  return { ...rest, hours: measurements.map(({ atMs }) => ((atMs ?? 0) - START) / HOUR) };
};

test("every snapshot is read once for advice, newest first, whatever was decided on it", async () => {
  const store = await history(20, 10 * MINUTE, 6);
  const all = await read(store, 100);
  expect(all).toEqual({ hours: Array.from({ length: 20 }, (_, i) => 19 - i), withoutStats: 0, everyMs: null });
});

test("of too many snapshots some are read at even times", async () => {
  const store = await history(100, MINUTE, 2);
  const some = await read(store, 10);
  expect(some.hours.length).toBeGreaterThanOrEqual(9);
  expect(some.hours.length).toBeLessThanOrEqual(10);
  const gaps = some.hours.slice(1).map((hour, i) => (some.hours[i] as number) - hour);
  expect(Math.max(...gaps) - Math.min(...gaps)).toBeLessThanOrEqual(1);
  expect(some.hours.at(-1)).toBeLessThan(12);
  expect(some.everyMs).toBeGreaterThan(9 * MINUTE);
});

test("a time with many decisions counts no more than a quiet one", async () => {
  const store = await history(10, HOUR);
  // a hundred passes within the last minute
  for (let i = 0; i < 100; i++) {
    const at = T0 + 10 * HOUR + i * 500;
    const snapshot = snapshotRow({ node: "n1", storedAtMs: at, body: JSON.stringify(measuredSnapshot(50, 500 + i)) });
    value(
      await store.record({ decision: decisionRow({ node: "n1", snapshotId: snapshot.id, decidedAtMs: at }), snapshot }),
    );
  }
  const some = await read(store, 12);
  expect(some.hours.filter((hour) => hour === 50)).toHaveLength(1);
  expect(some.hours).toEqual(expect.arrayContaining([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
});

test("snapshots outside the time span are ignored; those without stats or deleted ones are counted", async () => {
  const store = await history(10, HOUR);
  const some = await read(store, 100, { sinceMs: T0 + 3 * HOUR, untilMs: T0 + 6 * HOUR });
  expect(some.hours).toEqual([5, 4, 3]);
  const bare = snapshotRow({ node: "n1", body: '{"node":{"metadata":{"name":"n1"}}}' });
  const at = T0 + 20 * HOUR;
  value(
    await store.record({ decision: decisionRow({ node: "n1", snapshotId: bare.id, decidedAtMs: at }), snapshot: bare }),
  );
  value(await store.record({ decision: decisionRow({ node: "n1", snapshotId: "gone", decidedAtMs: at + HOUR }) }));
  expect(await read(store, 100)).toMatchObject({ withoutStats: 2 });
  expect((await read(store, 100)).hours).toHaveLength(10);
});

test("advice uses the configuration and capacity of the node's latest snapshot", async () => {
  const store = await history(30, HOUR);
  const request = { span: ALL, percentile: 100, marginPercent: 0, limit: 100 };
  const advice = value(await adviseNode(store, "n1", request));
  expect(advice).toMatchObject({
    node: "n1",
    measurements: { count: 30 },
    patch: { kubeReserved: { memory: "180Mi" } },
  });
  expect(value(await adviseNode(store, "n2", request))).toBe("no snapshot of it is stored");
});
