import { describe, expect, test } from "vitest";
import { startWorker, step } from "../../../api/decide/probes/worker.ts";
import type {
  AttemptOutcome,
  ContainerSeen,
  PodForProbe,
  TimedWorkerSpec,
  Worker,
  WorkerEffect,
  WorkerEvent,
} from "../../../api/decide/probes/worker-state.ts";
import type { ProbeType } from "../../../api/model/probe-spec.ts";
import type { ProbeTiming } from "../../../api/model/probes-decision.ts";

const TIMING: ProbeTiming = {
  initialDelaySeconds: 0,
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
  terminationGracePeriodSeconds: null,
};
const T0 = 1_000_000_000_000;
const OK: AttemptOutcome = { result: "success", output: "" };
const FAIL: AttemptOutcome = { result: "failure", output: "HTTP probe failed with statuscode: 500" };
const ERROR: AttemptOutcome = { error: "no such port" };

/** The pod and its running container as a worker sees them; `over` and `pod` replace parts of them. */
const podSeen = (over: Partial<ContainerSeen> = {}, pod: Partial<PodForProbe> = {}): PodForProbe => ({
  ended: false,
  deleting: false,
  container: { id: "c0", state: "running", startedAtMs: T0, started: true, willRestart: true, ...over },
  ...pod,
});

/** Drives a worker by hand, starting after its first `wake`. */
class Driven {
  readonly spec: TimedWorkerSpec;
  worker: Worker;
  effects: readonly WorkerEffect[];
  constructor(type: ProbeType, timing: Partial<ProbeTiming> = {}, over: Partial<TimedWorkerSpec> = {}, jitter = 0) {
    const managerStartMs = T0 - 3_600_000;
    this.spec = { type, probe: { ...TIMING, ...timing }, sidecar: false, managerStartMs, strict: false, ...over };
    const { next, effects } = startWorker(this.spec, T0, jitter);
    this.worker = next;
    this.effects = effects;
  }
  on(event: WorkerEvent): this {
    const { next, effects } = step(this.spec, this.worker, event);
    this.worker = next;
    this.effects = effects;
    return this;
  }
  tick(seconds: number, pod: PodForProbe | null = podSeen()): this {
    return this.on({ on: "tick", atMs: T0 + seconds * 1000, pod });
  }
  answer(seconds: number, outcome: AttemptOutcome): this {
    return this.on({ on: "attempted", atMs: T0 + seconds * 1000, outcome });
  }
  /** A tick and the result of its attempt. */
  turn(seconds: number, outcome: AttemptOutcome, pod: PodForProbe = podSeen()): this {
    return this.tick(seconds, pod).answer(seconds, outcome);
  }
  kinds(): readonly string[] {
    return this.effects.map((e) => e.kind);
  }
  set(): readonly string[] {
    return this.effects.flatMap((e) => (e.kind === "set" ? [`${e.containerId} ${e.result}`] : []));
  }
  wakeSeconds(): number | undefined {
    const wake = this.effects.find((e) => e.kind === "wake");
    return wake === undefined ? undefined : (wake.atMs - T0) / 1000;
  }
}

describe("a probe worker", () => {
  test.each([
    ["startup", "c0 Unknown"],
    ["liveness", "c0 Success"],
    ["readiness", "c0 Failure"],
  ] as const)("for %s begins with the result %s, set once", (type, initial) => {
    const driven = new Driven(type, { initialDelaySeconds: 60 }).tick(0);
    expect(driven.set()).toEqual([initial]);
    expect(driven.tick(10).set()).toEqual([]);
    expect(driven.tick(20, podSeen({ id: "c1" })).effects.slice(0, 2)).toEqual([
      { kind: "forget", containerId: "c0" },
      { kind: "set", containerId: "c1", result: initial.split(" ")[1] },
    ]);
  });

  test("waits for a pod status, a container, and initialDelaySeconds since its start", () => {
    const driven = new Driven("liveness", { initialDelaySeconds: 10 });
    expect(driven.tick(0, null).kinds()).toEqual(["wake"]);
    expect(driven.tick(10, { ended: false, deleting: false, container: null }).kinds()).toEqual(["wake"]);
    const late = podSeen({ startedAtMs: T0 + 10_001 });
    expect(driven.tick(20, late).kinds()).toEqual(["set", "wake"]);
    expect(driven.tick(30, late).kinds()).toEqual(["attempt"]);
  });

  test("asks only startup until the container is started, and the other probes afterwards", () => {
    const waiting = podSeen({ started: false });
    expect(new Driven("liveness").tick(0, waiting).kinds()).toEqual(["set", "wake"]);
    expect(new Driven("readiness").tick(0, waiting).kinds()).toEqual(["set", "wake"]);
    expect(new Driven("startup").tick(0, waiting).kinds()).toEqual(["set", "attempt"]);
    expect(new Driven("startup").tick(0).kinds()).toEqual(["set", "wake"]);
  });

  test("sets a result after threshold many equal outcomes in a row, and only when it changes", () => {
    const driven = new Driven("liveness");
    expect(driven.turn(0, FAIL).set()).toEqual([]);
    expect(driven.turn(10, FAIL).set()).toEqual([]);
    expect(driven.turn(20, OK).set()).toEqual([]);
    expect(driven.turn(30, FAIL).set()).toEqual([]);
    expect(driven.turn(40, FAIL).set()).toEqual([]);
    expect(driven.turn(50, FAIL).set()).toEqual(["c0 Failure"]);
    const readiness = new Driven("readiness", { successThreshold: 2 });
    expect(readiness.turn(0, OK).set()).toEqual([]);
    expect(readiness.turn(10, OK).set()).toEqual(["c0 Success"]);
    expect(readiness.turn(20, { result: "warning", output: "redirected" }).effects).toEqual([
      { kind: "event", reason: "ProbeWarning", message: "Readiness probe warning: redirected" },
      { kind: "wake", atMs: T0 + 30_000 },
    ]);
  });

  test("holds after a liveness failure and after any startup result, until there is a new container", () => {
    const liveness = new Driven("liveness", { failureThreshold: 1 }).turn(0, FAIL);
    expect(liveness.tick(10).kinds()).toEqual(["wake"]);
    expect(liveness.tick(20, podSeen({ id: "c1" })).kinds()).toEqual(["forget", "set", "attempt"]);
    for (const outcome of [OK, FAIL]) {
      const waiting = podSeen({ started: false });
      const startup = new Driven("startup", { failureThreshold: 1 }).turn(0, outcome, waiting);
      expect(startup.tick(10, waiting).kinds()).toEqual(["wake"]);
      expect(startup.tick(20, podSeen({ id: "c1", started: false })).kinds()).toContain("attempt");
    }
    const readiness = new Driven("readiness", { failureThreshold: 1 }).turn(0, FAIL);
    expect(readiness.tick(10).kinds()).toEqual(["attempt"]);
  });

  test("carries two failures before a crash over to the new container, unless it held", () => {
    const driven = new Driven("liveness").turn(0, FAIL).turn(10, FAIL);
    expect(driven.turn(20, FAIL, podSeen({ id: "c1" })).effects).toContainEqual({
      kind: "quirk",
      code: "counters-carry-over",
    });
    expect(driven.set()).toEqual(["c1 Failure"]);
    // after the hold, the next container has all three attempts again
    const after = podSeen({ id: "c2" });
    expect(driven.turn(30, FAIL, after).set()).toEqual([]);
    expect(driven.turn(40, FAIL, after).set()).toEqual([]);
    expect(driven.turn(50, FAIL, after).set()).toEqual(["c2 Failure"]);
    expect(driven.kinds()).not.toContain("quirk");
    // with a threshold of one, no count is carried over
    const one = new Driven("readiness").turn(0, OK).turn(10, OK, podSeen({ id: "c1" }));
    expect(one.kinds()).toEqual(["set", "wake"]);
    const strict = new Driven("liveness", {}, { strict: true }).turn(0, FAIL).turn(10, FAIL);
    expect(strict.turn(20, FAIL, podSeen({ id: "c1" })).set()).toEqual([]);
    expect(strict.turn(30, FAIL, podSeen({ id: "c1" })).set()).toEqual([]);
    expect(strict.turn(40, FAIL, podSeen({ id: "c1" })).set()).toEqual(["c1 Failure"]);
  });

  test("makes readiness with successThreshold 5 ready after one success when its run predates the container", () => {
    const pod = podSeen({ id: "c1" });
    for (const [strict, reported] of [
      [false, ["c1 Success"]],
      [true, []],
    ] as const) {
      const driven = new Driven("readiness", { successThreshold: 5 }, { strict });
      for (let i = 0; i < 7; i++) driven.turn(i * 10, OK);
      expect(driven.turn(70, OK, pod).set(), `strict ${strict}`).toEqual(reported);
    }
  });
});

describe("probe attempts that end in errors", () => {
  test("are repeated three times in one turn and discarded; another outcome counts", () => {
    const driven = new Driven("liveness", { failureThreshold: 1 }).tick(0);
    expect(driven.answer(0, ERROR).effects).toEqual([{ kind: "attempt", containerId: "c0", tries: 2 }]);
    expect(driven.answer(1, ERROR).effects).toEqual([{ kind: "attempt", containerId: "c0", tries: 3 }]);
    expect(driven.answer(2, ERROR).effects).toEqual([
      {
        kind: "event",
        reason: "Unhealthy",
        message: "Liveness probe errored and resulted in unknown state: no such port",
      },
      { kind: "quirk", code: "error-discarded" },
      { kind: "wake", atMs: T0 + 10_000 },
    ]);
    expect(driven.tick(10).answer(10, ERROR).answer(10, FAIL).set()).toEqual(["c0 Failure"]);
  });

  test("neither count for nor break a run of outcomes", () => {
    const driven = new Driven("liveness").turn(0, FAIL).turn(10, FAIL);
    driven.tick(20).answer(20, ERROR).answer(20, ERROR).answer(20, ERROR);
    expect(driven.turn(30, FAIL).set()).toEqual(["c0 Failure"]);
  });

  test("of a body that breaks off are reported as failures and discarded, and count only when strict", () => {
    const hang: AttemptOutcome = { error: "unexpected EOF", state: "failure" };
    const driven = new Driven("liveness", { failureThreshold: 1 }).tick(0);
    driven.answer(0, hang).answer(0, hang).answer(0, hang);
    expect(driven.effects.slice(0, 2)).toEqual([
      {
        kind: "event",
        reason: "Unhealthy",
        message: "Liveness probe errored and resulted in failure state: unexpected EOF",
      },
      { kind: "quirk", code: "hang-discarded" },
    ]);
    for (const outcome of [hang, ERROR]) {
      const strict = new Driven("liveness", { failureThreshold: 1 }, { strict: true }).tick(0);
      strict.answer(0, outcome).answer(0, outcome).answer(0, outcome);
      expect(strict.set()).toEqual(["c0 Failure"]);
    }
  });
});

describe("the probe worker of a container that does not run", () => {
  test("sets Failure and keeps its run, and stops only when the container will not come back", () => {
    const driven = new Driven("readiness").turn(0, OK).turn(10, FAIL).turn(20, FAIL);
    expect(driven.tick(30, podSeen({ state: "waiting", startedAtMs: null })).set()).toEqual(["c0 Failure"]);
    expect(driven.worker).toMatchObject({ at: "waiting", resultRun: 2, lastResult: "Failure" });
    expect(driven.tick(40, podSeen({ state: "terminated", willRestart: true })).kinds()).toEqual(["wake"]);
    expect(driven.tick(50, podSeen({ state: "terminated", willRestart: false })).kinds()).toEqual(["forget", "stop"]);
    expect(driven.tick(60).effects).toEqual([]);
  });

  test("stops when its pod has ended", () => {
    expect(
      new Driven("liveness")
        .turn(0, OK)
        .tick(10, podSeen({}, { ended: true }))
        .kinds(),
    ).toEqual(["forget", "stop"]);
  });

  test("stops with Success for liveness and startup when the pod is deleted; readiness continues", () => {
    const deleting = podSeen({}, { deleting: true });
    const failing = new Driven("liveness", { failureThreshold: 9 }).turn(0, FAIL);
    expect(failing.tick(10, deleting).kinds()).toEqual(["forget", "stop"]);
    const startup = new Driven("startup").tick(0, podSeen({ started: false }, { deleting: true }));
    expect(startup.set()).toEqual(["c0 Unknown", "c0 Success"]);
    expect(startup.kinds().at(-1)).toBe("stop");
    expect(new Driven("readiness").tick(0, deleting).kinds()).toEqual(["set", "attempt"]);
  });
});

describe("the timing of a probe worker", () => {
  test("keeps its tick: missed ticks count as one, and early ones wait", () => {
    const driven = new Driven("liveness").turn(0, OK);
    expect(driven.tick(9.9).effects).toEqual([{ kind: "wake", atMs: T0 + 10_000 }]);
    // the attempt took three and a half periods
    driven.tick(10).answer(45, OK);
    expect(driven.wakeSeconds()).toBe(20);
    driven.tick(45);
    expect(driven.kinds()).toEqual(["attempt"]);
    expect(driven.answer(46, OK).wakeSeconds()).toBe(50);
  });

  test("asks at once on a trigger and counts the period from it; a trigger during an attempt waits", () => {
    const driven = new Driven("readiness").turn(0, FAIL);
    driven.on({ on: "trigger", atMs: T0 + 4000, pod: podSeen() });
    expect(driven.kinds()).toEqual(["attempt"]);
    expect(driven.answer(4, OK).wakeSeconds()).toBe(14);
    driven.tick(14).on({ on: "trigger", atMs: T0 + 14_500, pod: podSeen() });
    expect(driven.effects).toEqual([]);
    expect(driven.answer(15, OK).wakeSeconds()).toBe(15);
    expect(driven.tick(15).kinds()).toEqual(["attempt"]);
    expect(driven.answer(15, OK).wakeSeconds()).toBe(25);
  });

  test("starts with a random share of the period only while the daemon is young", () => {
    expect(new Driven("liveness", {}, {}, 0.5).wakeSeconds()).toBe(0);
    const young = new Driven("liveness", {}, { managerStartMs: T0 - 9999 }, 0.5);
    expect(young.wakeSeconds()).toBe(5);
    expect(young.tick(5).kinds()).toEqual(["set", "attempt"]);
    expect(young.answer(5, OK).wakeSeconds()).toBe(15);
    expect(new Driven("liveness", {}, { managerStartMs: T0 - 10_000 }, 0.5).wakeSeconds()).toBe(0);
  });

  test("stops at once, except during an attempt, or in its first sleep unless strict", () => {
    const stop = (seconds: number): WorkerEvent => ({ on: "stop", atMs: T0 + seconds * 1000 });
    expect(new Driven("liveness").turn(0, OK).on(stop(1)).kinds()).toEqual(["forget", "stop"]);
    const asking = new Driven("liveness", { failureThreshold: 1 }).tick(0).on(stop(0.5));
    expect(asking.effects).toEqual([]);
    expect(asking.answer(1, FAIL).kinds()).toEqual(["event", "set", "forget", "stop"]);
    const over = { managerStartMs: T0 };
    const sleeping = new Driven("liveness", {}, over, 0.5).on(stop(1));
    expect(sleeping.effects).toEqual([{ kind: "quirk", code: "sleep-ignores-stop" }]);
    expect(sleeping.turn(5, OK).kinds()).toEqual(["forget", "stop"]);
    expect(new Driven("liveness", {}, { ...over, strict: true }, 0.5).on(stop(1)).kinds()).toEqual(["stop"]);
  });
});

describe("a probe worker after a restart of the daemon", () => {
  const managerStartMs = T0;
  test("leaves containers that started more than 10 s before it as they are, and no others", () => {
    const old = podSeen({ startedAtMs: T0 - 10_001 });
    expect(new Driven("readiness", {}, { managerStartMs }).tick(0, old).kinds()).toEqual(["quirk", "attempt"]);
    const young = podSeen({ startedAtMs: T0 - 10_000 });
    expect(new Driven("readiness", {}, { managerStartMs }).tick(0, young).set()).toEqual(["c0 Failure"]);
  });

  test("sets startup Success for a sidecar that had started", () => {
    const old = podSeen({ startedAtMs: T0 - 60_000 });
    const spec = { managerStartMs, sidecar: true };
    expect(new Driven("startup", {}, spec).tick(0, old).set()).toEqual(["c0 Success"]);
    expect(new Driven("startup", {}, { managerStartMs }).tick(0, old).set()).toEqual([]);
    expect(new Driven("liveness", {}, spec).tick(0, old).set()).toEqual([]);
  });
});
