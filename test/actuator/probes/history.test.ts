import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ProbeHistory, readProbeHistory } from "../../../actuator/probes/engine/history.ts";
import type { ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import { EXEC, probe, probed, probedContainer, START } from "../../kit/runnable-pods.ts";
import { scratch } from "../pods/scratch.ts";
import { BAD, managerFixture, OK, StillClock } from "./manager-kit.ts";

function opened(stateDir = scratch()) {
  const clock = new StillClock();
  const faults: string[] = [];
  const history = new ProbeHistory({ stateDir, clock, onFault: (message) => faults.push(message) });
  const read = (limit = 100_000) => {
    const entries = readProbeHistory(stateDir, { limit });
    if (!entries.ok) throw new Error(entries.error);
    return entries.value;
  };
  return { stateDir, file: join(stateDir, "probe-history.jsonl"), clock, history, faults, read };
}
const at = "2026-11-22T12:00:00.000Z";
const named = { at, pod: "ns/web", podUid: "pod-1", container: "c", type: "liveness" } as const;
const result = (containerId: string): ProbeHistoryEntry => ({
  ...{ ...named, kind: "result", containerId, from: "Success", to: "Failure" },
});
const run = (times: number): ProbeHistoryEntry => ({ ...named, kind: "run", outcome: "failure", times });

test("entries of one second are written together, and read newest first", async () => {
  const { clock, history, read, file } = opened();
  expect(read()).toEqual([]);
  history.add(result("id-1"));
  history.add({ ...run(3), at: "2026-11-22T12:00:00.500Z" });
  expect(read()).toEqual([]);
  await clock.advance(1_000);
  expect(read()).toEqual([{ ...run(3), at: "2026-11-22T12:00:00.500Z" }, result("id-1")]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(clock.timers).toBe(0);
});

test("in a storm the most telling entries are kept, with the number of omitted ones", () => {
  const { history, read } = opened();
  for (let i = 0; i < 150; i++) history.add(run(i));
  for (let i = 0; i < 150; i++) history.add(result(`id-${i}`));
  for (let i = 0; i < 100; i++) history.add(run(i));
  history.flush();
  const entries = read();
  const count = (kind: string) => entries.filter((entry) => entry.kind === kind).length;
  expect([count("result"), count("run"), entries[0]]).toEqual([150, 50, { at, kind: "omitted", count: 200 }]);
  history.flush();
  expect(read()).toHaveLength(201);
  for (let i = 0; i < 300; i++) history.add(result(`id-${i}`));
  history.flush();
  expect([read().length, read()[0]]).toEqual([402, { at, kind: "omitted", count: 100 }]);
});

test("lines that are no entry are skipped", () => {
  const { file, read } = opened();
  writeFileSync(file, `{"kind":"result"}\nx\n${JSON.stringify(result("id-1"))}\n{"at":"cut`);
  expect(read()).toEqual([result("id-1")]);
});

test("a missing directory is reported once", () => {
  const { history, faults, file } = opened(join(scratch(), "gone"));
  for (let i = 0; i < 3; i++) {
    history.add(run(i));
    history.flush();
  }
  expect(faults).toEqual([expect.stringContaining(`probe history ${file}: ENOENT`)]);
});

test("result changes are kept, successes in between only counted, and response bodies left out", async () => {
  const w = managerFixture();
  w.manager.sync([probed([probedContainer({ readiness: probe({ failureThreshold: 2 }) })])]);
  await w.clock.advance(4_500);
  w.answer = () => BAD;
  await w.clock.advance(3_000);
  w.answer = () => ({ result: "success", output: "password=1" });
  await w.clock.advance(2_000);
  const reported = w.history.map((entry) => (entry.kind === "run" ? [entry.outcome, entry.times] : entry));
  const change = { ...named, type: "readiness", kind: "result", containerId: "id-1", at: expect.any(String) };
  expect(reported).toEqual([
    { ...change, from: "Failure", to: "Success" },
    ["success", 5],
    { ...change, from: "Success", to: "Failure", output: BAD.output },
    ["failure", 3],
    { ...change, from: "Failure", to: "Success" },
  ]);
  expect(JSON.stringify([w.history, w.manager.facts(), w.results])).not.toMatch(/password|fine/);
});

test("an initial result set without an attempt is not recorded as one", async () => {
  const w = managerFixture();
  const liveness = probe();
  w.answer = () => BAD;
  w.manager.sync([probed([probedContainer({ liveness, readiness: probe() })])]);
  await w.clock.advance(500);
  w.manager.sync([probed([probedContainer({ liveness, readiness: probe() }, { state: "terminated" })])]);
  await w.clock.advance(1_000);
  w.manager.sync([probed([probedContainer({ liveness, readiness: probe() }, { id: "id-2", state: "waiting" })])]);
  await w.clock.advance(1_000);
  expect(w.results.map(({ output }) => output)).toEqual(w.results.map(() => ""));
  expect(w.history.map((entry) => entry.kind === "result" && [entry.containerId, entry.from, entry.to])).toEqual([
    // the first attempt of both readiness probes failed
    false,
    false,
    ["id-1", "Success", "Failure"],
    ["id-2", "Success", "Failure"],
  ]);
  const restarted = managerFixture({ startedAtMs: START });
  restarted.answer = () => BAD;
  const old = probedContainer({ liveness: probe({ failureThreshold: 1 }) }, { startedAtMs: START - 60_000 });
  restarted.manager.sync([probed([old])]);
  await restarted.clock.advance(500);
  expect(restarted.history).toEqual([expect.objectContaining({ from: null, to: "Failure", output: BAD.output })]);
});

test("a result due to the former container's counters is marked as such", async () => {
  const w = managerFixture();
  const liveness = probe();
  w.answer = () => BAD;
  w.manager.sync([probed([probedContainer({ liveness })])]);
  await w.clock.advance(1_500);
  w.manager.sync([probed([probedContainer({ liveness }, { id: "id-2" })])]);
  await w.clock.advance(1_000);
  expect(w.history).toContainEqual(
    expect.objectContaining({ kind: "result", containerId: "id-2", to: "Failure", quirk: "counters-carry-over" }),
  );
});

test("output is cut to 1 KiB between two characters", async () => {
  const w = managerFixture();
  w.answer = () => ({ result: "failure", output: `x${"é".repeat(3_000)}` });
  w.manager.sync([probed([probedContainer({ liveness: probe({ failureThreshold: 1 }) })])]);
  await w.clock.advance(100);
  const [facts] = w.manager.facts();
  expect(Buffer.byteLength(facts?.output ?? "")).toBe(1_023);
  expect(facts?.output).toMatch(/^xé+$/);
  expect(w.results.at(-1)?.output).toBe(facts?.output);
});

test("entries of a real probe manager are read back equal", async () => {
  const { history, read, file } = opened();
  const w = managerFixture();
  w.answer = () => BAD;
  w.manager.sync([probed([probedContainer({ liveness: probe() })])]);
  await w.clock.advance(5_000);
  w.answer = () => OK;
  for (const entry of w.history) history.add(entry);
  history.flush();
  expect(read()).toEqual(w.history.toReversed());
  expect(readFileSync(file, "utf8").endsWith("}\n")).toBe(true);
});

test("a probe that fails from the start is recorded at its first attempt, once for each container", async () => {
  const w = managerFixture();
  w.answer = ({ handler }) => ("exec" in handler ? { error: "no runtime" } : BAD);
  const of = (id: string) => {
    const probes = {
      readiness: probe(),
      liveness: probe({ failureThreshold: 90 }),
    };
    const slow = probedContainer({ startup: probe({ handler: EXEC }) }, { name: "slow", id: `${id}-slow` });
    return probed([probedContainer(probes, { id }), slow]);
  };
  w.manager.sync([of("id-1")]);
  await w.clock.advance(7_000);
  const reportOf = () =>
    w.history
      .map((entry) => entry.kind === "first" && [entry.containerId, entry.type, entry.outcome, entry.output])
      .toSorted();
  const first = [
    ["id-1", "liveness", "failure", BAD.output],
    ["id-1", "readiness", "failure", BAD.output],
    ["id-1-slow", "startup", "error", "no runtime"],
  ];
  expect(reportOf()).toEqual(first);
  w.manager.sync([of("id-2")]);
  await w.clock.advance(3_000);
  expect(reportOf()).toHaveLength(6);
  // a first result of success is not recorded
  const well = managerFixture();
  well.manager.sync([probed([probedContainer({ liveness: probe() })])]);
  await well.clock.advance(3_000);
  expect(well.history).toEqual([]);
});

test("execs that wait longer than their period are recorded when that begins, not at each attempt", async () => {
  const w = managerFixture({ execLimit: 1 });
  const exec = (periodSeconds: number) => ({ liveness: probe({ handler: EXEC, periodSeconds }) });
  w.answer = () => null;
  const slow = probedContainer(exec(4), { name: "slow", id: "id-slow" });
  w.manager.sync([probed([slow, probedContainer(exec(1))])]);
  const overdue = () => w.history.filter(({ kind }) => kind === "overdue").length;
  /** Runs all execs `times` times, with a duration of `ms` each. */
  const run = async (times: number, ms: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await w.clock.advance(ms);
      for (const { end } of w.asked) end(OK);
    }
  };
  await run(12, 1_500);
  expect(w.counted.waited).toBeGreaterThan(3);
  expect(overdue()).toBe(1);
  // for some time no attempt has to wait
  await run(1_400, 50);
  const calm = w.counted.waited;
  await run(12, 1_500);
  expect(w.counted.waited).toBeGreaterThan(calm);
  expect(overdue()).toBe(2);
});

test("a warning is recorded without the response body", async () => {
  const w = managerFixture();
  w.answer = () => ({ result: "warning", output: "Probe terminated redirects, Response body: <p>secret</p>" });
  w.manager.sync([probed([probedContainer({ readiness: probe() })])]);
  await w.clock.advance(2_500);
  expect(w.manager.facts()).toMatchObject([{ output: "Probe terminated redirects" }]);
  expect(JSON.stringify([w.history, w.manager.facts(), w.results])).not.toMatch(/secret/);
});
