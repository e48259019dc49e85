import { expect, test } from "vitest";
import { ExecLimit } from "../../../actuator/probes/engine/attempt.ts";
import { EXEC, probe, probed, probedContainer } from "../../kit/runnable-pods.ts";
import { managerFixture, OK } from "./manager-kit.ts";

test("the number of parallel execs is limited; pods take turns, each in its own order", async () => {
  const limit = new ExecLimit(2);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const add = (uid: string, name: string) =>
    limit.add(uid, () => {
      begun.push(name);
      return new Promise((done) => ends.push(done));
    });
  for (const name of ["a1", "a2", "a3", "a4"]) add("a", name);
  add("b", "b1");
  const unqueue = add("b", "b2");
  add("c", "c1");
  expect([begun, limit.running, limit.waiting]).toEqual([["a1", "a2"], 2, 5]);
  unqueue();
  unqueue();
  expect(limit.waiting).toBe(4);
  while (limit.running > 0) {
    ends.shift()?.();
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(begun).toEqual(["a1", "a2", "a3", "b1", "c1", "a4"]);
  expect(limit.waiting).toBe(0);
});

const execs = (count: number, more = {}) =>
  Array.from({ length: count }, (_, i) =>
    probed([probedContainer({ liveness: probe({ handler: EXEC, ...more }) }, { id: `id-${i}` })], {
      uid: `u-${i}`,
      name: `p-${i}`,
    }),
  );

test("waiting for a turn does not use up the timeout, and waiting longer than a period is reported", async () => {
  const w = managerFixture({ execLimit: 1 });
  w.answer = () => null;
  w.manager.sync(execs(2, { timeoutSeconds: 5 }));
  await w.clock.advance(1_500);
  expect(w.asked).toHaveLength(1);
  expect(w.manager.facts().map(({ activity }) => activity)).toEqual(["probing", "queued"]);
  expect(w.manager.problems()).toEqual([]);
  w.asked[0]?.end(OK);
  await w.clock.advance(0);
  expect(w.asked[1]).toMatchObject({ timeoutMs: 5_000, target: { containerId: "id-1" } });
  expect(w.counted.waited).toBe(1);
  expect(w.history).toContainEqual(
    expect.objectContaining({ kind: "overdue", pod: "ns/p-1", container: "c", type: "liveness", seconds: 1.5 }),
  );
  expect(w.manager.problems()).toEqual(["exec probes wait longer than their period: 1 run, 1 wait for their turn"]);
  await w.clock.advance(60_001);
  expect(w.manager.problems()).toEqual([]);
});

test("probes with other handlers do not wait for execs", async () => {
  const w = managerFixture({ execLimit: 1 });
  w.answer = ({ handler }) => ("exec" in handler ? null : OK);
  w.manager.sync([...execs(3), probed([probedContainer({ liveness: probe() }, { id: "id-http" })])]);
  await w.clock.advance(2_500);
  expect(w.asked.filter(({ handler }) => !("exec" in handler))).toHaveLength(3);
  expect(w.asked.filter(({ handler }) => "exec" in handler)).toHaveLength(1);
});

test("a waiting exec whose pod is removed leaves the queue, and the next one takes its turn", async () => {
  const w = managerFixture({ execLimit: 1 });
  w.answer = () => null;
  const pods = execs(3);
  w.manager.sync(pods);
  await w.clock.advance(100);
  w.manager.sync([pods[0], pods[2]].filter((one) => one !== undefined));
  expect(w.manager.facts()).toHaveLength(2);
  w.asked[0]?.end(OK);
  await w.clock.advance(0);
  expect(w.asked.map(({ target }) => target.containerId)).toEqual(["id-0", "id-2"]);
});
