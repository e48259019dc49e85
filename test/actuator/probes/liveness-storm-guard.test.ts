import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newlyHeldContainers } from "../../../actuator/probes/engine/history.ts";
import { GuardStateFile } from "../../../actuator/probes/engine/liveness-storm-guard.ts";
import { decideProbeGuard } from "../../../api/decide/kinds/probe-guard.ts";
import { decodeProbeGuardAsk, type GuardSettings } from "../../../api/model/probe-guard.ts";
import { EXEC, probe, probed, probedContainer, START } from "../../kit/runnable-pods.ts";
import { scratch } from "../pods/scratch.ts";
import { BAD, type ManagerFixture, managerFixture, OK, resultsOf } from "./manager-kit.ts";

const GUARD: GuardSettings = { windowSeconds: 5, least: { groups: 3 }, holdSeconds: 20 };
const pods = (count: number, owner: string | null = null) =>
  Array.from({ length: count }, (_, i) =>
    probed([probedContainer({ liveness: probe({ failureThreshold: 2 }) }, { id: `id-${i}` })], {
      uid: `u-${i}`,
      name: `p-${i}`,
      owner,
    }),
  );
const newest = ({ guarded }: ManagerFixture) => guarded.at(-1)?.decision;
const killed = ({ results }: ManagerFixture) =>
  results.filter(({ result }) => result === "Failure").map(({ containerId }) => containerId);

test("without a guard all failing containers are killed", async () => {
  const w = managerFixture();
  w.answer = () => BAD;
  w.manager.sync(pods(5));
  await w.clock.advance(1_500);
  expect(killed(w)).toHaveLength(5);
  expect(w.guarded).toEqual([]);
});

test("kills in a storm are held and recorded, and containers that answer again live on", async () => {
  const w = managerFixture({ guard: GUARD });
  w.manager.sync(pods(5));
  await w.clock.advance(900);
  w.answer = () => BAD;
  await w.clock.advance(6_000);
  expect([killed(w), w.guarded.length]).toEqual([[], 1]);
  const names = [0, 1, 2, 3, 4].map((i) => `ns/p-${i}/c`);
  const [first] = w.guarded;
  if (first === undefined) throw new Error("it said nothing");
  const held = newlyHeldContainers(first.decision);
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
  // a later single failure is not a storm
  w.answer = ({ target }) => (target.containerId === "id-3" ? BAD : OK);
  await w.clock.advance(3_000);
  expect(killed(w)).toEqual(["id-3"]);
});

test("a container that keeps failing is killed once after holdSeconds, and not probed again", async () => {
  const w = managerFixture({ guard: GUARD });
  w.answer = () => BAD;
  w.manager.sync(pods(3));
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

test("pods of one owner and single failures are killed as in the kubelet", async () => {
  const related = managerFixture({ guard: GUARD });
  related.answer = () => BAD;
  related.manager.sync(pods(5, "ReplicaSet/rs-1"));
  await related.clock.advance(1_500);
  expect(killed(related)).toHaveLength(5);
  const single = managerFixture({ guard: GUARD });
  single.answer = ({ target }) => (target.containerId === "id-2" ? BAD : OK);
  single.manager.sync(pods(5));
  await single.clock.advance(1_500);
  expect(killed(single)).toEqual(["id-2"]);
});

test("a kill goes ahead while the next attempt runs, whose result is ignored", async () => {
  const w = managerFixture({ guard: GUARD });
  w.answer = () => null;
  w.manager.sync(pods(1));
  for (const ms of [0, 990, 1_000]) {
    await w.clock.advance(ms);
    w.asked.at(-1)?.end(BAD);
  }
  // the next attempt starts before the gathered failures are judged
  await w.clock.advance(60);
  expect([killed(w), w.asked.length]).toEqual([[], 3]);
  await w.clock.advance(100);
  expect(killed(w)).toEqual(["id-0"]);
  const late = w.asked.at(-1);
  await w.clock.advance(5_000);
  expect(w.asked).toHaveLength(3);
  w.manager.sync(pods(1).map((one) => ({ ...one, containers: one.containers.map((c) => ({ ...c, id: "id-new" })) })));
  await w.clock.advance(1_000);
  expect(w.asked.at(-1)?.target.containerId).toBe("id-new");
  late?.end(BAD);
  await w.clock.advance(0);
  expect(resultsOf(w, "liveness")).toEqual(["Success", "Failure", "Success"]);
  expect(w.manager.facts()).toMatchObject([{ attempts: 2, activity: "probing" }]);
});

test("a killed container whose next exec waits for its turn is not probed again", async () => {
  const w = managerFixture({ guard: GUARD, execLimit: 1 });
  w.answer = () => null;
  const liveness = probe({ handler: EXEC, failureThreshold: 1 });
  const slow = probedContainer(
    { liveness: probe({ handler: EXEC, periodSeconds: 9 }) },
    { name: "slow", id: "id-slow" },
  );
  w.manager.sync([probed([probedContainer({ liveness }), slow])]);
  await w.clock.advance(990);
  w.asked[0]?.end(BAD);
  await w.clock.advance(200);
  expect(killed(w)).toEqual(["id-1"]);
  w.asked[1]?.end(OK);
  await w.clock.advance(5_000);
  expect(w.asked.map(({ target }) => target.containerId)).toEqual(["id-1", "id-slow"]);
});

test("a kill that was held long enough goes ahead at the next failure, whatever the threshold", async () => {
  const w = managerFixture({ guard: GUARD });
  w.answer = () => BAD;
  const patient = probe({ failureThreshold: 3 });
  w.manager.sync(
    pods(3).map((one) => ({ ...one, containers: [probedContainer({ liveness: patient }, { id: one.uid })] })),
  );
  await w.clock.advance(22_050);
  expect(killed(w)).toEqual([]);
  await w.clock.advance(1_000);
  expect(killed(w)).toHaveLength(3);
});

test("containers with a failed startup probe are killed, however many", async () => {
  const w = managerFixture({ guard: GUARD });
  w.answer = () => BAD;
  const startup = probe({ failureThreshold: 1 });
  w.manager.sync(pods(5).map((one) => ({ ...one, containers: [probedContainer({ startup }, { id: one.uid })] })));
  await w.clock.advance(500);
  expect([killed(w).length, w.guarded]).toEqual([5, []]);
});

test("a held container whose pod is removed is released, and only liveness is held", async () => {
  const w = managerFixture({ guard: GUARD });
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
  w.manager.sync(some);
  await w.clock.advance(1_500);
  expect(resultsOf(w, "readiness")).toEqual(["Failure", "Failure", "Failure"]);
  expect(resultsOf(w, "liveness")).toEqual(["Success", "Success", "Success"]);
  w.manager.sync(some.slice(1));
  await w.clock.advance(1_100);
  expect(newest(w)).toMatchObject({ released: [{ container: "ns/p-0/c", why: "gone" }], holding: 2 });
});

test("a guard decision replayed from its recorded input is the same, with a reason for each kill", async () => {
  const w = managerFixture({ guard: GUARD });
  w.answer = () => BAD;
  w.manager.sync(pods(3));
  await w.clock.advance(22_500);
  expect(w.guarded.length).toBeGreaterThan(1);
  for (const { ask, decision } of w.guarded) {
    const decoded = decodeProbeGuardAsk(JSON.parse(JSON.stringify(ask)));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    const again = decideProbeGuard({ snapshot: {}, facts: {}, ask: decoded.value, explain: "reasons" });
    expect(again).toMatchObject({ ok: true, value: { decision } });
    const places = again.ok ? again.value.reasons.map(({ at }) => at) : [];
    expect(places).toEqual(expect.arrayContaining(["node", ...newlyHeldContainers(decision)]));
  }
});

/** Pods whose probes have a period of 3 s and start at different times within it. */
const spreadOut = (failureThreshold: number) =>
  pods(5).map((one) => ({
    ...one,
    containers: [probedContainer({ liveness: probe({ periodSeconds: 3, failureThreshold }) }, { id: one.uid })],
  }));
const HOLDS = { guard: { ...GUARD, windowSeconds: 30 }, spread: true };

test("containers that began to fail count too, so that the first ones of a slow storm are held as well", async () => {
  const w = managerFixture(HOLDS);
  w.manager.sync(spreadOut(2));
  await w.clock.advance(9_000);
  w.answer = () => BAD;
  await w.clock.advance(15_000);
  expect([killed(w), newest(w)?.holding]).toEqual([[], 5]);
  expect(w.guarded.flatMap(({ killedBefore }) => killedBefore)).toEqual([]);
});

test("neither a container that recovered nor a probe that could not be made counts towards a storm", async () => {
  const w = managerFixture(HOLDS);
  const bad = new Set(["u-0", "u-1", "u-2"]);
  w.manager.sync(spreadOut(2));
  await w.clock.advance(9_000);
  w.answer = ({ target }) => (bad.has(target.containerId) ? BAD : OK);
  await w.clock.advance(3_000);
  bad.clear();
  await w.clock.advance(3_000);
  w.answer = ({ target }) => (target.containerId === "u-4" ? BAD : { error: "no runtime" });
  await w.clock.advance(6_100);
  expect(killed(w)).toEqual(["u-4"]);
});

test("with failureThreshold 1 the first containers are killed before the storm is seen, and recorded", async () => {
  const w = managerFixture(HOLDS);
  w.manager.sync(spreadOut(1));
  await w.clock.advance(9_000);
  w.answer = () => BAD;
  await w.clock.advance(6_000);
  expect(killed(w)).toHaveLength(2);
  const [first] = w.guarded;
  expect(first?.killedBefore).toEqual(killed(w).map((id) => `ns/${id.replace("u", "p")}/c`));
  expect(w.history.find(({ kind }) => kind === "probe-guard")).toMatchObject({ killedBefore: first?.killedBefore });
});

test("a restarted daemon still holds the same containers, and releases those that answer or are removed", async () => {
  const stateDir = scratch();
  const clockOf: { nowMs: () => number } = { nowMs: () => START };
  const faults: string[] = [];
  const memory = () =>
    new GuardStateFile({ stateDir, nowMs: () => clockOf.nowMs(), onFault: (message) => faults.push(message) });
  const before = managerFixture(HOLDS, undefined, memory());
  clockOf.nowMs = () => before.clock.wallMs;
  before.answer = () => BAD;
  before.manager.sync(spreadOut(2));
  await before.clock.advance(9_000);
  expect([killed(before), newest(before)?.holding]).toEqual([[], 5]);
  before.manager.close();
  expect(statSync(join(stateDir, "probe-guard.json")).mode & 0o777).toBe(0o600);

  // three of them succeed, one is removed, and the last still fails: without the remembered storm it would be killed
  const after = managerFixture(HOLDS, undefined, memory());
  clockOf.nowMs = () => after.clock.wallMs;
  after.clock.wallMs = before.clock.wallMs;
  after.answer = ({ target }) => (target.containerId === "u-0" ? BAD : null);
  after.manager.sync(spreadOut(2).slice(0, 4));
  await after.clock.advance(8_000);
  expect(killed(after)).toEqual([]);
  expect(newest(after)).toMatchObject({ holding: 4, released: [{ containerId: "u-4", why: "gone" }] });
  expect(after.manager.facts().find(({ podUid }) => podUid === "u-0")).toMatchObject({ activity: "held" });
  for (const { end } of after.asked) end(OK);
  after.answer = ({ target }) => (target.containerId === "u-0" ? BAD : OK);
  await after.clock.advance(8_000);
  expect(killed(after)).toEqual(["u-0"]);
  expect(after.guarded.flatMap(({ decision }) => decision.released.map(({ why }) => why)).toSorted()).toEqual([
    ...["calm", "gone", "recovered", "recovered", "recovered"],
  ]);
  expect(faults).toEqual([]);
});

test("without its state file a restarted daemon kills; outdated or invalid state is ignored", async () => {
  const stateDir = scratch();
  const file = join(stateDir, "probe-guard.json");
  const nowMs = () => START;
  const read = () => new GuardStateFile({ stateDir, nowMs, onFault: expect.fail }).read();
  expect(read()).toEqual([]);
  const entry = { containerId: "u-0", container: "ns/p-0/c", group: "u-0", failedAgoMs: 1, heldForMs: 5 };
  for (const text of ["", "{", "[]", '{"atMs":1}x', `{"atMs":"1","known":[]}`, `{"atMs":1,"known":[{}]}`]) {
    writeFileSync(file, text);
    expect(read()).toEqual([]);
  }
  writeFileSync(file, JSON.stringify({ atMs: START - 1_000, known: [entry] }));
  expect(read()).toEqual([{ ...entry, failedAgoMs: 1_001, heldForMs: 1_005 }]);
  // the clock was set back
  writeFileSync(file, JSON.stringify({ atMs: START + 9_000, known: [entry] }));
  expect(read()).toEqual([entry]);
  const others = ["1", "2"].map((n) => ({ ...entry, containerId: `u-${n}`, group: `u-${n}` }));
  const keptFor = async (heldForMs: number) => {
    const known = [entry, ...others].map((one) => ({ ...one, heldForMs }));
    const w = managerFixture(HOLDS, undefined, { read: () => known, persist() {} });
    w.answer = ({ target }) => (target.containerId === "u-0" ? BAD : null);
    w.manager.sync(spreadOut(2));
    await w.clock.advance(8_000);
    return killed(w);
  };
  expect([await keptFor(1_000), await keptFor(GUARD.holdSeconds * 1_000)]).toEqual([[], ["u-0"]]);
  expect(readFileSync(file, "utf8")).not.toBe("");
});

test("a state file that cannot be written is reported once", () => {
  const faults: string[] = [];
  const nowMs = () => START;
  const memory = new GuardStateFile({ stateDir: join(scratch(), "gone"), nowMs, onFault: (m) => faults.push(m) });
  memory.persist([]);
  memory.persist([]);
  expect(faults).toEqual([expect.stringMatching(/probe-guard\.json: .*ENOENT.* would not know what it holds$/)]);
});
