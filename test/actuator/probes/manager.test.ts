import { expect, test } from "vitest";
import type { ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { EXEC, probe, probed, probedContainer, START } from "../../kit/runnable-pods.ts";
import { BAD, type ManagerFixture, managerFixture, OK, resultsOf } from "./manager-kit.ts";

const startsOf = ({ asked }: ManagerFixture) => asked.map(({ atMs }) => atMs);

test("a container is probed every period with its own target, and only changes are reported", async () => {
  const w = managerFixture();
  const readiness = probe({ periodSeconds: 2, timeoutSeconds: 3 });
  const ports = [{ name: "web", containerPort: 8080, hostPort: 0, hostIP: "", protocol: "TCP" as const }];
  const env = [{ name: "A", value: "1" }];
  w.manager.sync([probed([probedContainer({ readiness }, { ports, env })])]);
  await w.clock.advance(5_900);
  expect(startsOf(w)).toEqual([0, 2_000, 4_000]);
  expect(w.asked[0]).toMatchObject({
    handler: readiness.handler,
    timeoutMs: 3_000,
    target: { podIP: "10.0.0.1", ports, env, containerId: "id-1" },
  });
  const asked = w.asked.map(({ target }) => target);
  expect(new Set(asked).size).toBe(1);
  w.manager.sync([probed([probedContainer({ readiness }, { ports, env })], { podIP: "10.0.0.2" })]);
  await w.clock.advance(2_000);
  expect(w.asked.at(-1)?.target).toEqual({ ...asked[0], podIP: "10.0.0.2" });
  w.counted.ended.pop();
  expect(w.results).toEqual([
    expect.objectContaining({ type: "readiness", result: "Failure", was: null, containerId: "id-1", podUid: "pod-1" }),
    expect.objectContaining({ result: "Success", was: "Failure", output: "", probe: readiness, container: "c" }),
  ]);
  expect(w.manager.resultOf("id-1", "readiness")).toBe("Success");
  expect(w.manager.resultOf("id-1", "liveness")).toBeUndefined();
  expect(w.counted.ended).toEqual(Array(3).fill(["readiness", "success"]));
});

test("a failed liveness probe is reported once with its last output, and stops until the next container", async () => {
  const w = managerFixture();
  const liveness = probe({ terminationGracePeriodSeconds: 7 });
  w.manager.sync([probed([probedContainer({ liveness })])]);
  w.answer = () => BAD;
  await w.clock.advance(10_500);
  expect(resultsOf(w, "liveness")).toEqual(["Success", "Failure"]);
  expect(startsOf(w)).toEqual([0, 1_000, 2_000]);
  expect(w.results.at(-1)).toMatchObject({ output: BAD.output, probe: { terminationGracePeriodSeconds: 7 } });
  expect(w.events).toHaveLength(3);
  expect(w.events[0]).toMatchObject({
    reason: "Unhealthy",
    message: `Liveness probe failed: ${BAD.output}`,
    namespace: "ns",
    pod: "web",
    container: "c",
  });
  w.answer = () => OK;
  w.manager.sync([probed([probedContainer({ liveness }, { id: "id-2", startedAtMs: w.clock.wallMs })])]);
  await w.clock.advance(2_000);
  expect(w.manager.resultOf("id-1", "liveness")).toBeUndefined();
  expect(w.manager.resultOf("id-2", "liveness")).toBe("Success");
  expect(w.asked.at(-1)?.target.containerId).toBe("id-2");
});

test("the startup probe runs first, and the others start as soon as it has succeeded", async () => {
  const w = managerFixture();
  const slow = probe({ periodSeconds: 10 });
  w.answer = () => BAD;
  w.manager.sync([
    probed([probedContainer({ startup: probe({ failureThreshold: 9 }), liveness: slow, readiness: slow })]),
  ]);
  await w.clock.advance(3_500);
  expect(new Set(w.counted.ended.map(([type]) => type))).toEqual(new Set(["startup"]));
  expect([w.manager.started("pod-1", "c"), w.manager.ready("pod-1", "c")]).toEqual([false, false]);
  w.answer = () => OK;
  await w.clock.advance(600);
  expect(w.manager.started("pod-1", "c")).toBe(true);
  // the readiness probe ran at once, before its regular attempt at 10 s
  expect(w.manager.ready("pod-1", "c")).toBe(true);
  await w.clock.advance(6_500);
  expect(w.counted.ended.filter(([type]) => type === "startup")).toHaveLength(5);
  expect(w.counted.ended.filter(([type]) => type === "liveness")).toHaveLength(1);
});

test("a container's readiness is probed as soon as it runs", async () => {
  const w = managerFixture();
  const readiness = probe({ periodSeconds: 30 });
  const waiting = probedContainer({ readiness }, { id: null, state: "waiting", startedAtMs: null });
  w.manager.sync([probed([waiting])]);
  await w.clock.advance(4_000);
  expect(w.manager.ready("pod-1", "c")).toBe(false);
  w.manager.sync([probed([probedContainer({ readiness }, { startedAtMs: w.clock.wallMs })])]);
  await w.clock.advance(0);
  expect([startsOf(w), w.manager.ready("pod-1", "c")]).toEqual([[4_000], true]);
});

test("a trigger probes the containers that are not ready, and restarts their period", async () => {
  const w = managerFixture();
  const readiness = probe({ periodSeconds: 10 });
  w.answer = () => BAD;
  w.manager.sync([probed([probedContainer({ readiness })])]);
  await w.clock.advance(4_000);
  w.manager.trigger("pod-1");
  w.manager.trigger("no such pod");
  await w.clock.advance(9_990);
  expect(startsOf(w)).toEqual([0, 4_000]);
  w.answer = () => OK;
  await w.clock.advance(20);
  w.manager.trigger("pod-1");
  await w.clock.advance(0);
  expect(startsOf(w)).toEqual([0, 4_000, 14_000]);
});

test("deletion stops liveness and startup probes except a sidecar's; readiness probes continue to the end", async () => {
  const w = managerFixture();
  const probes = { liveness: probe(), readiness: probe() };
  const containers = [probedContainer(probes), probedContainer(probes, { name: "side", id: "id-s", isSidecar: true })];
  w.manager.sync([probed(containers)]);
  await w.clock.advance(500);
  w.manager.sync([probed(containers, { deletionAtMs: w.clock.wallMs })]);
  w.asked.length = 0;
  await w.clock.advance(1_000);
  expect(w.asked.map(({ target }) => target.containerId).sort()).toEqual(["id-1", "id-s", "id-s"]);
  expect(w.manager.resultOf("id-1", "liveness")).toBeUndefined();
  expect(w.manager.ready("pod-1", "c")).toBe(true);
  w.manager.sync([]);
  w.asked.length = 0;
  await w.clock.advance(5_000);
  expect(w.asked).toEqual([]);
  expect(w.manager.resultOf("id-1", "readiness")).toBeUndefined();
  expect([w.manager.started("pod-1", "c"), w.manager.ready("pod-1", "c"), w.manager.facts()]).toEqual([
    false,
    false,
    [],
  ]);
  expect(w.clock.timers).toBe(0);
});

test("the result of an attempt that ends after its pod was removed is dropped", async () => {
  const w = managerFixture();
  w.answer = () => null;
  w.manager.sync([probed([probedContainer({ liveness: probe({ failureThreshold: 1 }) })])]);
  await w.clock.advance(100);
  const before = w.results.length;
  w.manager.sync([]);
  w.asked[0]?.end(BAD);
  await w.clock.advance(5_000);
  expect([w.results.length, w.asked.length]).toEqual([before, 1]);
  expect(w.manager.resultOf("id-1", "liveness")).toBeUndefined();
});

test("the worker of a container that will not restart ends, and the next container has a new one", async () => {
  const w = managerFixture();
  const liveness = probe();
  w.manager.sync([probed([probedContainer({ liveness })])]);
  await w.clock.advance(100);
  const ended = probedContainer({ liveness }, { state: "terminated", willRestart: false, startedAtMs: null });
  let reported = 0;
  for (let i = 0; i < 4; i++) {
    w.manager.sync([probed([ended])]);
    await w.clock.advance(1_000);
    reported ||= w.results.length;
  }
  expect(w.results).toHaveLength(reported);
  expect([w.manager.facts(), w.manager.resultOf("id-1", "liveness")]).toEqual([[], undefined]);
  const count = w.asked.length;
  w.manager.sync([probed([probedContainer({ liveness }, { id: "id-2", startedAtMs: w.clock.wallMs })])]);
  await w.clock.advance(500);
  expect(w.asked.length).toBe(count + 1);
});

test("an attempt that cannot be made is repeated three times and changes no result", async () => {
  const w = managerFixture();
  w.answer = () => ({ error: "no such port" });
  w.manager.sync([probed([probedContainer({ liveness: probe({ failureThreshold: 1 }) })])]);
  await w.clock.advance(500);
  expect([w.asked.length, resultsOf(w, "liveness")]).toEqual([3, ["Success"]]);
  expect(w.counted.ended).toEqual(Array(3).fill(["liveness", "error"]));
  expect(w.events).toHaveLength(1);
});

test("setting the wall clock neither hastens nor stops probes, and initial delays count real time", async () => {
  const w = managerFixture();
  w.manager.sync([probed([probedContainer({ liveness: probe({ initialDelaySeconds: 5 }) })])]);
  await w.clock.advance(2_000);
  w.clock.wallMs += 7_200_000;
  await w.clock.advance(2_500);
  expect(w.asked).toEqual([]);
  w.clock.wallMs -= 9_000_000;
  await w.clock.advance(2_000);
  expect(startsOf(w)).toEqual([5_000, 6_000]);
});

test("after a daemon restart ready containers stay ready until an attempt fails", async () => {
  const readiness = probe({ periodSeconds: 10, failureThreshold: 1 });
  const before = probedContainer({ readiness }, { startedAtMs: START - 60_000, wasStarted: true });
  const young = probedContainer(
    { readiness },
    { name: "young", id: "id-y", startedAtMs: START - 5_000, wasStarted: true },
  );
  const w = managerFixture({ startedAtMs: START }, () => 0.5);
  w.answer = () => BAD;
  w.manager.sync([probed([before, young], { wasReady: true })]);
  expect(["c", "young"].map((name) => w.manager.ready("pod-1", name))).toEqual([true, false]);
  await w.clock.advance(4_990);
  // half a period, which is the kubelet's jitter: no attempt has started yet, and a trigger starts none
  w.manager.trigger("pod-1");
  expect([w.asked.length, w.manager.ready("pod-1", "c")]).toEqual([0, true]);
  await w.clock.advance(20);
  expect([w.asked.length, w.manager.ready("pod-1", "c")]).toEqual([4, false]);
  const unready = managerFixture({ startedAtMs: START });
  unready.answer = () => null;
  unready.manager.sync([probed([before], { wasReady: false })]);
  await unready.clock.advance(100);
  expect(unready.manager.ready("pod-1", "c")).toBe(false);
});

test("containers started before the daemon skip their startup probe, and their other probes go on", async () => {
  const w = managerFixture({ startedAtMs: START });
  const probes = { startup: probe(), liveness: probe() };
  const before = probedContainer(probes, { startedAtMs: START - 60_000, wasStarted: true });
  const other = probedContainer(probes, { name: "other", id: "id-o", startedAtMs: START - 60_000, wasStarted: false });
  w.answer = ({ target }) => (target.containerId === "id-o" ? BAD : OK);
  w.manager.sync([probed([before, other])]);
  expect(["c", "other"].map((name) => w.manager.started("pod-1", name))).toEqual([true, false]);
  await w.clock.advance(1_500);
  expect(w.counted.ended.filter(([, result]) => result === "success")).toEqual(Array(2).fill(["liveness", "success"]));
  expect(w.counted.ended.filter(([, result]) => result === "failure")).toEqual(Array(2).fill(["startup", "failure"]));
});

test("an attempt that cannot be made neither adds to failures in a row nor ends them", async () => {
  const w = managerFixture();
  const answers: ProbeOutcome[] = [BAD, { error: "e" }, { error: "e" }, { error: "e" }, BAD];
  w.answer = () => answers.shift() ?? null;
  w.manager.sync([probed([probedContainer({ liveness: probe({ failureThreshold: 9 }) })])]);
  await w.clock.advance(2_500);
  expect(w.manager.facts()).toMatchObject([{ failures: 2, attempts: 5 }]);
});

test("a container without probes is ready while it runs, and one with a startup probe after its success", () => {
  const w = managerFixture({ spread: true });
  const bare = probedContainer({}, { name: "bare", id: "id-b" });
  const past = probedContainer({}, { name: "past", id: "id-p", state: "terminated" });
  const starting = probedContainer({ startup: probe() }, { name: "starting", id: "id-t" });
  w.manager.sync([probed([bare, past, starting])]);
  const seen = ["bare", "past", "starting", "unknown"].map((name) => [
    w.manager.started("pod-1", name),
    w.manager.ready("pod-1", name),
  ]);
  expect(seen).toEqual([
    [true, true],
    [false, false],
    [false, false],
    [false, false],
  ]);
});

test("a closed manager neither probes nor reports", async () => {
  const w = managerFixture({ execLimit: 1 });
  w.answer = () => null;
  const liveness = probe({ handler: EXEC, failureThreshold: 1 });
  w.manager.sync([probed([probedContainer({ liveness }), probedContainer({ liveness }, { name: "d", id: "id-2" })])]);
  await w.clock.advance(100);
  const before = w.results.length;
  w.manager.close();
  w.asked[0]?.end(BAD);
  await w.clock.advance(60_000);
  expect([w.asked.length, w.results.length, w.events.length]).toEqual([1, before, 0]);
  const gone = managerFixture();
  gone.answer = () => null;
  gone.manager.sync([probed([probedContainer({ liveness: probe() })])]);
  await gone.clock.advance(100);
  gone.manager.sync([]);
  gone.manager.close();
  gone.asked[0]?.end(BAD);
  await gone.clock.advance(100);
  expect([gone.asked.length, gone.events]).toEqual([1, []]);
});
