import { describe, expect, test } from "vitest";
import { timelineOf } from "../../../api/decide/kinds/probes.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../api/decide/probes/back-off.ts";
import { settingsOf } from "../../../api/decide/probes/settings.ts";
import type { ScriptedAttempt, Timeline } from "../../../api/decide/probes/sim-worker.ts";
import type { ProbeType } from "../../../api/model/probe-spec.ts";
import captured from "../../data/real-probes.json" with { type: "json" };
import { decodedPod } from "../../kit/pods.ts";

/** A real kubelet 1.36.3 with these probes, compared with the dry run of the same probes. */
type Name = (typeof captured)[number]["name"];
const captureOf = (name: Name) => captured.find((c) => c.name === name) as (typeof captured)[number];

const ok: ScriptedAttempt = { word: "ok", outcome: { result: "success", output: "" }, tookMs: 0 };
const fail = (output: string): ScriptedAttempt => ({ word: "fail", outcome: { result: "failure", output }, tookMs: 0 });
const times = (count: number, attempt: ScriptedAttempt): ScriptedAttempt[] =>
  Array.from({ length: count }, () => attempt);

function dryRun(
  name: Name,
  scripts: Partial<Record<ProbeType, readonly ScriptedAttempt[]>>,
  { seconds, stopMs = 400 }: { readonly seconds: number; readonly stopMs?: number },
): Timeline {
  const { spec } = captureOf(name);
  const pod = decodedPod({ metadata: { name }, spec });
  return timelineOf({
    containers: settingsOf(pod).map((setting) => ({
      ...setting,
      probes: setting.probes.map(({ type, timing }) => ({ type, timing, script: scripts[type] ?? [ok] })),
    })),
    endMs: seconds * 1000,
    strict: false,
    graceSeconds: spec.terminationGracePeriodSeconds,
    stopMs,
    exitCode: 0,
    backOff: CRASH_LOOP_BACK_OFF,
    statusTriggers: true,
    kubeletRestartMs: null,
    jitter: 0,
  });
}

const attemptsOf = (timeline: Timeline, type: ProbeType): Record<string, number> => {
  const lane = timeline.containers[0]?.lanes.find((l) => l.type === type);
  const counts = { failed: 0, successful: 0 };
  for (const { outcome } of lane?.attempts ?? []) counts[outcome === "ok" ? "successful" : "failed"]++;
  return counts;
};
function expectSame(name: Name, timeline: Timeline): void {
  const { events, probeTotals, restartCount } = captureOf(name);
  const reported = timeline.events.map(({ type, reason, message, count }) => ({ type, reason, message, count }));
  expect(reported).toEqual(events);
  expect(timeline.containers[0]?.restarts).toBe(restartCount);
  for (const [key, total] of Object.entries(probeTotals)) {
    const [type, result] = key.split(" ") as [ProbeType, string];
    expect(attemptsOf(timeline, type)[result], key).toBe(total);
  }
}

describe("a dry run has the events, counts and restarts of a real kubelet", () => {
  test("for an exec probe that fails with output, restarted twice at once and then after a back-off", () => {
    const timeline = dryRun("exec-exit-3-output", { liveness: [fail("out\nerr\n")] }, { seconds: 36 });
    expectSame("exec-exit-3-output", timeline);
    expect(timeline.containers[0]?.runs.map((r) => r.endedBy)).toEqual(Array(4).fill("liveness"));
  });

  test("for a container that ignores SIGTERM, with the probe's own grace period", () => {
    const timeline = dryRun("live-grace", { liveness: [fail("")] }, { seconds: 38, stopMs: 3_600_000 });
    expectSame("live-grace", timeline);
    // the probe's grace period of 1 s is raised to 2 s; the pod's own would be 20 s
    expect(timeline.containers[0]?.runs[1]?.startedAtMs).toBe(6000);
  });

  test("for OnFailure with exit code 0: restarted at first, completed once a back-off would delay it", () => {
    const timeline = dryRun("live-restart-onfailure-exit0", { liveness: [fail("")] }, { seconds: 60 });
    expectSame("live-restart-onfailure-exit0", timeline);
    expect(captureOf("live-restart-onfailure-exit0").phase).toBe("Succeeded");
    expect(attemptsOf(timeline, "liveness")).toEqual({ failed: 9, successful: 0 });
  });

  test("for a startup probe that never succeeds: liveness and readiness are never asked", () => {
    const timeline = dryRun("startup-never", { startup: [fail("")] }, { seconds: 31 });
    expectSame("startup-never", timeline);
    for (const type of ["liveness", "readiness"] as const) {
      expect(attemptsOf(timeline, type)).toEqual({ failed: 0, successful: 0 });
    }
    expect(timeline.ready).toEqual([]);
  });

  test("for readiness that is asked out of turn, twice more for each container", () => {
    const refused = [fail("connection refused")];
    const timeline = dryRun("http-refused", { liveness: refused, readiness: refused }, { seconds: 32 });
    const { probeTotals, restartCount } = captureOf("http-refused");
    expect(probeTotals).toEqual({ "liveness failed": 20, "readiness failed": 28 });
    expect(attemptsOf(timeline, "liveness").failed).toBe(20);
    expect(attemptsOf(timeline, "readiness").failed).toBe(28);
    expect(timeline.containers[0]?.restarts).toBe(restartCount);
  });

  test.each(["http-302-same-host", "http-400", "http-500-body", "grpc-refused", "exec-long-output"] as const)(
    "for %s, which never gets ready",
    (name) => {
      const { probeTotals, failingSeconds = 0, restartCount } = captureOf(name);
      const timeline = dryRun(name, { readiness: [fail("")] }, { seconds: failingSeconds });
      expect([timeline.ready, restartCount]).toEqual([[], 0]);
      // sometimes the kubelet sees sandbox and container in separate updates: each causes another status, and an
      // attempt out of turn
      const more = (probeTotals["readiness failed"] ?? 0) - (attemptsOf(timeline, "readiness").failed as number);
      expect([0, 1, 2]).toContain(more);
    },
  );

  test("for tcp probes whose readiness has a delay, and for readiness alone", () => {
    const { probeTotals } = captureOf("tcp-ok");
    const tcp = dryRun("tcp-ok", {}, { seconds: 42 });
    expect(tcp.events).toEqual([]);
    expect(tcp.ready).toEqual([{ fromMs: 5000, toMs: null }]);
    expect(attemptsOf(tcp, "liveness").successful).toBe(probeTotals["liveness successful"]);
    // the readiness probe has a separate period from liveness, which started with the status
    expect([0, 1]).toContain(
      (probeTotals["readiness successful"] ?? 0) - (attemptsOf(tcp, "readiness").successful as number),
    );
    expectSame("readiness-gate", dryRun("readiness-gate", {}, { seconds: 43 }));
  });

  test("for a container that is always ready: one attempt more than liveness", () => {
    for (const name of ["http-200", "grpc-default"]) {
      const { probeTotals } = captureOf(name);
      const alive = probeTotals["liveness successful"] as number;
      const timeline = dryRun(name, {}, { seconds: alive - 1 });
      expectSame(name, timeline);
    }
  });
});

describe("a dry run has the readiness of a real kubelet to the tick", () => {
  const unready = fail("cat: can't open '/tmp/ok': No such file or directory\n");
  const down = fail('service unhealthy (responded with "NOT_SERVING")');
  test.each([
    ["exec-ready-flips", [...times(5, unready), ...times(7, ok), ...times(8, unready), ok], 51],
    ["grpc-flip", [...times(5, down), ...times(8, ok), ...times(9, down), ...times(8, ok), ...times(9, down), ok], 43],
  ] as const)("%s", (name, readiness, seconds) => {
    const timeline = dryRun(name, { readiness }, { seconds });
    const { events, probeTotals, readiness: seen } = captureOf(name);
    const reported = timeline.events.map(({ type, reason, message, count }) => ({ type, reason, message, count }));
    expect(reported).toEqual(events);
    expect(attemptsOf(timeline, "readiness").failed).toBe(probeTotals["readiness failed"]);
    const flips = timeline.ready.flatMap(({ fromMs, toMs }) => (toMs === null ? [fromMs] : [fromMs, toMs]));
    // the first observation only shows that the pod is not ready yet
    const real = seen.slice(1).map((flip) => Date.parse(flip.seen));
    expect(flips.slice(1).map((at, i) => at - (flips[i] as number))).toEqual(
      real.slice(1).map((at, i) => Math.round((at - (real[i] as number)) / 1000) * 1000),
    );
    expect(flips.length).toBeGreaterThan(2);
  });
});
