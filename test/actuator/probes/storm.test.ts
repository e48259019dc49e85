import { expect, test } from "vitest";
import { newlyHeld } from "../../../actuator/probes/chronicle.ts";
import { decideProbeGuard } from "../../../api/decide/probes/decide-guard.ts";
import { decodeProbeGuardAsk, type GuardSettings } from "../../../api/model/probe-guard.ts";
import { BAD, container, EXEC, OK, pod, probe, told, type World, world } from "./manager-kit.ts";

const GUARD: GuardSettings = { windowSeconds: 5, least: { groups: 3 }, holdSeconds: 20 };
const pods = (count: number, owner: string | null = null) =>
  Array.from({ length: count }, (_, i) =>
    pod([container({ liveness: probe({ failureThreshold: 2 }) }, { id: `id-${i}` })], {
      uid: `u-${i}`,
      name: `p-${i}`,
      owner,
    }),
  );
const newest = ({ guarded }: World) => guarded.at(-1)?.decision;
const killed = ({ results }: World) =>
  results.filter(({ result }) => result === "Failure").map(({ containerId }) => containerId);

test("without a guard all of them are killed", async () => {
  const w = world();
  w.answer = () => BAD;
  w.manager.look(pods(5));
  await w.clock.advance(1_500);
  expect(killed(w)).toHaveLength(5);
  expect(w.guarded).toEqual([]);
});

test("kills of a storm are held, told and kept, and those that answer again live on", async () => {
  const w = world({ guard: GUARD });
  w.manager.look(pods(5));
  await w.clock.advance(900);
  w.answer = () => BAD;
  await w.clock.advance(6_000);
  expect([killed(w), w.guarded.length]).toEqual([[], 1]);
  const names = [0, 1, 2, 3, 4].map((i) => `ns/p-${i}/c`);
  const [first] = w.guarded;
  if (first === undefined) throw new Error("it said nothing");
  const held = newlyHeld(first.decision);
  expect([held.toSorted(), first.decision.holding]).toEqual([names, 5]);
  expect(first.decision.message).toMatch(/ 5 unrelated groups of 5 /);
  const [entry] = w.history.filter(({ kind }) => kind === "probe-guard");
  expect(entry).toEqual({
    ...{ kind: "probe-guard", at: expect.any(String), held, released: [], holding: 5 },
    ...{ why: first.decision.message, ask: first.ask },
  });
  expect(w.manager.problems()).toEqual([expect.stringMatching(/^the probe guard holds the kills of 5 containers: /)]);
  expect(w.manager.facts().map(({ activity, failures }) => [activity, failures])).toEqual(Array(5).fill(["held", 6]));
  w.answer = () => OK;
  await w.clock.advance(30_000);
  expect([killed(w), w.manager.problems()]).toEqual([[], []]);
  const released = w.guarded.slice(1).flatMap(({ decision }) => decision.released);
  expect(released.map(({ container }) => container).sort()).toEqual(names);
  expect(new Set(released.map(({ why }) => why))).toEqual(new Set(["recovered"]));
  // the next failure is no storm
  w.answer = ({ target }) => (target.containerId === "id-3" ? BAD : OK);
  await w.clock.advance(3_000);
  expect(killed(w)).toEqual(["id-3"]);
});

test("what fails on is killed when it was held long enough, once, and is asked no more", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => BAD;
  w.manager.look(pods(3));
  await w.clock.advance(20_500);
  expect(killed(w)).toEqual([]);
  await w.clock.advance(2_000);
  expect(killed(w).sort()).toEqual(["id-0", "id-1", "id-2"]);
  expect(w.results.at(-1)).toMatchObject({ result: "Failure", was: "Success", output: BAD.output });
  expect(newest(w)?.released).toContainEqual({
    ...{ containerId: "id-1", container: "ns/p-1/c", why: "held long enough" },
  });
  const count = w.asked.length;
  await w.clock.advance(5_000);
  expect(w.asked).toHaveLength(count);
  expect(w.manager.resultOf("id-0", "liveness")).toBe("Failure");
});

test("pods of one owner and single failures are killed as the kubelet kills them", async () => {
  const related = world({ guard: GUARD });
  related.answer = () => BAD;
  related.manager.look(pods(5, "ReplicaSet/rs-1"));
  await related.clock.advance(1_500);
  expect(killed(related)).toHaveLength(5);
  const single = world({ guard: GUARD });
  single.answer = ({ target }) => (target.containerId === "id-2" ? BAD : OK);
  single.manager.look(pods(5));
  await single.clock.advance(1_500);
  expect(killed(single)).toEqual(["id-2"]);
});

test("a kill goes ahead although the container is being asked again, and what that ends with is not heard", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => null;
  w.manager.look(pods(1));
  for (const ms of [0, 990, 1_000]) {
    await w.clock.advance(ms);
    w.asked.at(-1)?.end(BAD);
  }
  // the next attempt begins before what was gathered is judged
  await w.clock.advance(60);
  expect([killed(w), w.asked.length]).toEqual([[], 3]);
  await w.clock.advance(100);
  expect(killed(w)).toEqual(["id-0"]);
  const late = w.asked.at(-1);
  await w.clock.advance(5_000);
  expect(w.asked).toHaveLength(3);
  w.manager.look(pods(1).map((one) => ({ ...one, containers: one.containers.map((c) => ({ ...c, id: "id-new" })) })));
  await w.clock.advance(1_000);
  expect(w.asked.at(-1)?.target.containerId).toBe("id-new");
  late?.end(BAD);
  await w.clock.advance(0);
  expect(told(w, "liveness")).toEqual(["Success", "Failure", "Success"]);
  expect(w.manager.facts()).toMatchObject([{ attempts: 2, activity: "probing" }]);
});

test("a killed container whose next exec waits for its turn is not asked any more", async () => {
  const w = world({ guard: GUARD, execLimit: 1 });
  w.answer = () => null;
  const liveness = probe({ handler: EXEC, failureThreshold: 1 });
  const slow = container({ liveness: probe({ handler: EXEC, periodSeconds: 9 }) }, { name: "slow", id: "id-slow" });
  w.manager.look([pod([container({ liveness }), slow])]);
  await w.clock.advance(990);
  w.asked[0]?.end(BAD);
  await w.clock.advance(200);
  expect(killed(w)).toEqual(["id-1"]);
  w.asked[1]?.end(OK);
  await w.clock.advance(5_000);
  expect(w.asked.map(({ target }) => target.containerId)).toEqual(["id-1", "id-slow"]);
});

test("a kill that was held long goes ahead at the next failure, whatever the threshold", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => BAD;
  const patient = probe({ failureThreshold: 3 });
  w.manager.look(pods(3).map((one) => ({ ...one, containers: [container({ liveness: patient }, { id: one.uid })] })));
  await w.clock.advance(22_050);
  expect(killed(w)).toEqual([]);
  await w.clock.advance(1_000);
  expect(killed(w)).toHaveLength(3);
});

test("failed startups are killed, however many", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => BAD;
  const startup = probe({ failureThreshold: 1 });
  w.manager.look(pods(5).map((one) => ({ ...one, containers: [container({ startup }, { id: one.uid })] })));
  await w.clock.advance(500);
  expect([killed(w).length, w.guarded]).toEqual([5, []]);
});

test("a held container whose pod is gone is let go, and only liveness is held", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => BAD;
  const some = pods(3).map((one) => ({
    ...one,
    containers: one.containers.map((c) => ({
      ...c,
      probes: {
        ...c.probes,
        liveness: probe({ periodSeconds: 5, failureThreshold: 1 }),
        readiness: probe({ failureThreshold: 1 }),
      },
    })),
  }));
  w.manager.look(some);
  await w.clock.advance(1_500);
  expect(told(w, "readiness")).toEqual(["Failure", "Failure", "Failure"]);
  expect(told(w, "liveness")).toEqual(["Success", "Success", "Success"]);
  w.manager.look(some.slice(1));
  await w.clock.advance(1_100);
  expect(newest(w)).toMatchObject({ released: [{ container: "ns/p-0/c", why: "gone" }], holding: 2 });
});

test("asked again from what was written down it is the same decision, with the reason of each kill", async () => {
  const w = world({ guard: GUARD });
  w.answer = () => BAD;
  w.manager.look(pods(3));
  await w.clock.advance(22_500);
  expect(w.guarded.length).toBeGreaterThan(1);
  for (const { ask, decision } of w.guarded) {
    const decoded = decodeProbeGuardAsk(JSON.parse(JSON.stringify(ask)));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    const again = decideProbeGuard({ snapshot: {}, facts: {}, ask: decoded.value, explain: "reasons" });
    expect(again).toMatchObject({ ok: true, value: { decision } });
    const places = again.ok ? again.value.reasons.map(({ at }) => at) : [];
    expect(places).toEqual(expect.arrayContaining(["node", ...newlyHeld(decision)]));
  }
});
