import { expect, test } from "vitest";
import { EXEC, probe, probed, probedContainer, START } from "../../kit/runnable-pods.ts";
import { type ManagerFixture, managerFixture } from "./manager-kit.ts";

const liveness = probe();
const many = (count: number, periodSeconds = 1) =>
  Array.from({ length: count }, (_, i) =>
    probed([probedContainer({ liveness: probe({ periodSeconds }) }, { id: `id-${i}` })], {
      uid: `uid-${i}`,
      name: `p-${i}`,
    }),
  );
/** How many attempts started in each 100 ms from `fromMs` on. */
function windows({ asked }: ManagerFixture, fromMs: number, count: number): readonly number[] {
  const counts = Array<number>(count).fill(0);
  for (const { atMs } of asked) {
    const window = Math.floor((atMs - fromMs) / 100);
    if (window >= 0 && window < count) counts[window] = (counts[window] ?? 0) + 1;
  }
  return counts;
}

test("probes of one period that start together are spread evenly over it, and keep their period", async () => {
  const w = managerFixture({ spread: true });
  w.manager.sync(many(1_000));
  await w.clock.advance(3_000);
  const seen = windows(w, 1_000, 20);
  expect(Math.max(...seen)).toBeLessThanOrEqual(110);
  expect(Math.min(...seen)).toBeGreaterThanOrEqual(90);
  const ofOne = w.asked.filter(({ target }) => target.containerId === "id-7").map(({ atMs }) => atMs);
  expect(ofOne).toHaveLength(3);
  for (const [i, at] of ofOne.entries()) expect(Math.abs(at - (ofOne[0] ?? 0) - i * 1_000)).toBeLessThanOrEqual(10);
  expect(Math.max(...w.counted.late)).toBeLessThanOrEqual(0.01);
});

test("without spreading all probes start together", async () => {
  const w = managerFixture();
  w.manager.sync(many(100));
  await w.clock.advance(1_999);
  expect(Math.max(...windows(w, 0, 20))).toBe(100);
});

test("without spreading a young daemon uses the kubelet's jitter", async () => {
  let turn = 0;
  const w = managerFixture({ startedAtMs: START }, () => turn++ / 10);
  w.manager.sync(many(10, 10));
  await w.clock.advance(9_500);
  expect(w.asked.map(({ atMs }) => Math.round(atMs / 1_000))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("first attempts come within a period, and new pods take the slots of removed ones", async () => {
  const w = managerFixture({ spread: true });
  const pods = many(40, 10);
  w.manager.sync(pods);
  await w.clock.advance(10_010);
  expect(new Set(w.asked.map(({ target }) => target.containerId)).size).toBe(40);
  w.manager.sync(pods.slice(20));
  w.manager.sync([...pods.slice(20), ...many(80, 10).slice(60)]);
  w.asked.length = 0;
  await w.clock.advance(10_010);
  expect(Math.max(...windows(w, 10_000, 100))).toBeLessThanOrEqual(2);
});

test("a new pod takes the slot of a removed one, and no timer remains", async () => {
  const w = managerFixture({ spread: true });
  const turns = async (pods: ReturnType<typeof many>): Promise<readonly number[]> => {
    w.asked.length = 0;
    w.manager.sync(pods);
    await w.clock.advance(100_000);
    return w.asked.map(({ atMs }) => Math.round((atMs % 100_000) / 10)).sort((a, b) => a - b);
  };
  const first = await turns(many(5, 100));
  expect(await turns(many(10, 100).slice(5))).toEqual(first);
  w.manager.sync([]);
  expect(w.clock.timers).toBe(0);
});

test("readiness is probed at once when its container starts to run, except while the daemon is young", async () => {
  const slow = probe({ periodSeconds: 300 });
  const waiting = probedContainer({ readiness: slow }, { id: null, state: "waiting", startedAtMs: null });
  const running = probedContainer({ readiness: slow });
  const old = managerFixture({ spread: true });
  old.manager.sync([probed([waiting]), probed([running], { uid: "pod-2", name: "taken" })]);
  await old.clock.advance(0);
  expect(old.manager.ready("pod-2", "c")).toBe(true);
  old.manager.sync([probed([probedContainer({ readiness: slow }, { id: "id-9" })])]);
  await old.clock.advance(0);
  expect(old.manager.ready("pod-1", "c")).toBe(true);
  const young = managerFixture({ spread: true, startedAtMs: START });
  young.manager.sync(many(50, 300).map((one) => probed([probedContainer({ readiness: slow }, { id: one.uid })], one)));
  young.manager.sync([probed([running])]);
  young.manager.trigger("pod-1");
  await young.clock.advance(0);
  expect(young.asked).toEqual([]);
});

test("the plan states the rate, the crowds and the expected execs of all probes", async () => {
  const w = managerFixture();
  const exec = probe({ handler: EXEC, periodSeconds: 2, timeoutSeconds: 4 });
  w.answer = (asked) => ("exec" in asked.handler ? null : { result: "success", output: "" });
  w.manager.sync([probed([probedContainer({ liveness, readiness: exec })])]);
  expect(w.manager.plan()).toEqual({
    probes: 2,
    perSecond: { exec: 0.5, http: 1, tcp: 0, grpc: 0 },
    maxAtOnce: { spread: 1, unspread: 2 },
    execsAtOnce: { expected: 1, hanging: 1 },
  });
  await w.clock.advance(500);
  w.asked.find(({ handler }) => "exec" in handler)?.end({ result: "success", output: "" });
  await w.clock.advance(0);
  expect(w.manager.plan().execsAtOnce.expected).toBeCloseTo(0.25);
});
