import { expect, test } from "vitest";
import { timelineOf } from "../../api/decide/kinds/probes.ts";
import { CRASH_LOOP_BACK_OFF } from "../../api/decide/probes/back-off.ts";
import type {
  ContainerTrace,
  ProbeTrace,
  ScriptedAttempt,
  TimelineContainer,
  TimelineInput,
} from "../../api/decide/probes/sim-worker.ts";
import { PROBE_TYPES } from "../../api/model/probe-spec.ts";
import type { ProbeTiming, Span } from "../../api/model/probes-decision.ts";
import { type Draws, draws } from "./draws.ts";

const ANSWERS: readonly ScriptedAttempt[] = [
  { word: "ok", outcome: { result: "success", output: "" }, tookMs: 0 },
  { word: "ok", outcome: { result: "success", output: "" }, tookMs: 700 },
  { word: "fail", outcome: { result: "failure", output: "" }, tookMs: 0 },
  { word: "fail", outcome: { result: "failure", output: "" }, tookMs: 1300 },
  { word: "timeout", outcome: { result: "failure", output: "" }, tookMs: 4000 },
  { word: "error", outcome: { error: "no" }, tookMs: 10 },
];
const timingOf = (d: Draws): ProbeTiming => ({
  initialDelaySeconds: d.chance(2) ? 0 : d.below(8),
  timeoutSeconds: 1 + d.below(4),
  periodSeconds: 1 + d.below(5),
  successThreshold: 1 + d.below(3),
  failureThreshold: 1 + d.below(4),
  terminationGracePeriodSeconds: null,
});
/** Sequences of equal answers, as a failing server gives them. */
function scriptOf(d: Draws): readonly ScriptedAttempt[] {
  return Array.from({ length: 1 + d.below(8) }, () => d.pick(ANSWERS)).flatMap((answer) =>
    Array.from({ length: 1 + d.below(6) }, () => answer),
  );
}
const inputOf = (d: Draws): TimelineInput => ({
  containers: Array.from({ length: 1 + d.below(2) }, (_, i) => ({
    name: `c${i}`,
    sidecar: i === 0 && d.chance(4),
    restartPolicy: d.chance(8) ? "Never" : "Always",
    probes: PROBE_TYPES.filter(() => !d.chance(4)).map((type) => ({ type, timing: timingOf(d), script: scriptOf(d) })),
  })),
  endMs: 90_000,
  strict: true,
  graceSeconds: 5,
  stopMs: d.below(8000),
  exitCode: d.below(2),
  backOff: d.chance(2) ? CRASH_LOOP_BACK_OFF : { firstMs: 0, longestMs: 0 },
  statusTriggers: d.chance(2),
  kubeletRestartMs: d.chance(3) ? d.below(60_000) : null,
  jitter: d.below(100) / 100,
});

const isFailure = (word: string): boolean => word === "fail" || word === "timeout";
/**
 * The number of consecutive failures at that moment; in `strict` mode three errors of one tick count as one failure.
 */
function failuresUntil({ attempts }: ProbeTrace, containerId: string, atMs: number): number {
  let thirds = 0;
  for (const { outcome, tookMs, ...made } of attempts) {
    const endMs = made.atMs + tookMs;
    // a success at the same moment came later
    if (made.containerId !== containerId || endMs > atMs || (made.atMs === atMs && outcome === "ok")) continue;
    if (outcome === "ok") thirds = 0;
    else thirds += isFailure(outcome) ? 3 : 1;
  }
  return Math.floor(thirds / 3);
}
const within = (spans: readonly Span[], atMs: number): boolean =>
  spans.some(({ fromMs, toMs }) => fromMs <= atMs && (toMs === null || toMs >= atMs));

const met = { failures: 0, restarts: 0, successes: 0, holds: 0, delays: 0, readiness: 0 };

function checkAttempts(lane: ProbeTrace, timing: ProbeTiming, { runs, started }: ContainerTrace, at: string): void {
  for (const { atMs, containerId } of lane.attempts) {
    const startedAtMs = runs.find(({ id }) => id === containerId)?.startedAtMs ?? Number.POSITIVE_INFINITY;
    const waited = Math.floor((atMs - startedAtMs) / 1000);
    expect(waited, `${at} at ${atMs}`).toBeGreaterThanOrEqual(timing.initialDelaySeconds);
    if (timing.initialDelaySeconds > 0) met.delays++;
    if (lane.type !== "startup") expect(within(started, atMs), `${at} at ${atMs}: started`).toBe(true);
  }
  for (const { fromMs, toMs } of lane.onHold) {
    met.holds++;
    const during = lane.attempts.filter((a) => a.atMs > fromMs && (toMs === null || a.atMs < toMs));
    expect(during, `${at} held at ${fromMs}`).toEqual([]);
  }
}

/**
 * Checks the results of one probe. Cases with a kubelet restart are left out, since the kubelet then reports results
 * again.
 */
function checkResults(lane: ProbeTrace, timing: ProbeTiming, { runs }: ContainerTrace, at: string): void {
  for (const [i, { atMs, containerId, result }] of lane.results.entries()) {
    const before = lane.results[i - 1];
    const isFirst = before?.containerId !== containerId;
    if (!isFirst) expect(result, `${at} at ${atMs}: told twice`).not.toBe(before?.result);
    if (result === "Success") met.successes++;
    const endedAtMs = runs.find(({ id }) => id === containerId)?.endedAtMs ?? Number.POSITIVE_INFINITY;
    // readiness begins with a failure, and a result for a container that has ended is reported too
    if (result !== "Failure" || atMs >= endedAtMs || (isFirst && lane.type === "readiness")) continue;
    met.failures++;
    const failed = failuresUntil(lane, containerId, atMs);
    expect(failed, `${at} at ${atMs}`).toBeGreaterThanOrEqual(timing.failureThreshold);
  }
}

test("over random pods no probe fails before its threshold, runs before its time, or reports a result twice", () => {
  for (let seed = 0; seed < 400; seed++) {
    const input = inputOf(draws(seed));
    const { containers, ready } = timelineOf(input);
    for (const [i, container] of containers.entries()) {
      met.restarts += container.restarts;
      for (const [j, lane] of container.lanes.entries()) {
        const timing = (input.containers[i] as TimelineContainer).probes[j]?.timing as ProbeTiming;
        const at = `seed ${seed} ${container.name} ${lane.type}`;
        checkAttempts(lane, timing, container, at);
        if (input.kubeletRestartMs === null) checkResults(lane, timing, container, at);
      }
      for (const { fromMs } of container.ready) {
        met.readiness++;
        expect(within(container.started, fromMs), `seed ${seed} ready at ${fromMs}`).toBe(true);
      }
    }
    for (const { fromMs } of ready) {
      expect(
        containers.every((c) => within(c.ready, fromMs)),
        `seed ${seed} pod`,
      ).toBe(true);
    }
    if (seed % 20 === 0) expect(timelineOf(input)).toEqual(timelineOf(input));
  }
  for (const [what, count] of Object.entries(met)) expect(count, what).toBeGreaterThan(200);
});
