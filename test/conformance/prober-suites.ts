import { timelineOf } from "../../api/decide/kinds/probes.ts";
import type { ScriptedAttempt, Timeline, TimelineInput } from "../../api/decide/probes/sim-worker.ts";
import type { ProbeType, StoredResult } from "../../api/model/probe-spec.ts";
import { type Suite, suite } from "./suite.ts";

type Answer = "ok" | "fail" | "error";
interface ProberCase {
  readonly probes: Readonly<Partial<Record<ProbeType, Readonly<Record<string, number>>>>>;
  readonly script: Readonly<Partial<Record<ProbeType, readonly Answer[]>>>;
  readonly restartOnFailure: boolean;
  readonly seconds: number;
}
const ANSWERS: Readonly<Record<Answer, ScriptedAttempt>> = {
  ok: { word: "ok", outcome: { result: "success", output: "" }, tookMs: 0 },
  fail: { word: "fail", outcome: { result: "failure", output: "" }, tookMs: 0 },
  error: { word: "error", outcome: { error: "no answer" }, tookMs: 0 },
};
/** The time between a failure and the start of the next container. */
const NEW_CONTAINER_MS = 450;
const TYPES = ["startup", "readiness", "liveness"] as const;

/**
 * In the recording, which ran in real time, a container that is not restarted continues to run after a failure. Here
 * its termination never ends.
 */
function readProber({ probes, script, restartOnFailure, seconds }: ProberCase): TimelineInput {
  const timing = { initialDelaySeconds: 0, terminationGracePeriodSeconds: null };
  return {
    containers: [
      {
        name: "c",
        sidecar: false,
        restartPolicy: restartOnFailure ? "Always" : "Never",
        probes: TYPES.filter((type) => probes[type] !== undefined).map((type) => ({
          type,
          timing: { ...timing, ...(probes[type] as never as TimelineInput["containers"][0]["probes"][0]["timing"]) },
          script: (script[type] ?? []).map((answer) => ANSWERS[answer]),
        })),
      },
    ],
    endMs: seconds * 1000,
    strict: false,
    graceSeconds: 3600,
    stopMs: restartOnFailure ? NEW_CONTAINER_MS : 3_600_000,
    exitCode: 1,
    backOff: { firstMs: 0, longestMs: 0 },
    statusTriggers: false,
    kubeletRestartMs: null,
    jitter: 0,
  };
}

function shown({ containers: [container] }: Timeline): Record<string, unknown> {
  const lanes = container?.lanes ?? [];
  const attempts = lanes.filter((lane) => lane.attempts.length > 0);
  return {
    attempts: Object.fromEntries(
      attempts.map((lane) => [
        lane.type,
        lane.attempts.map((a) => `${Math.round(a.atMs / 1000)}s ${a.containerId} ${a.outcome}`),
      ]),
    ),
    restarts: container?.restarts,
    results: Object.fromEntries(
      lanes.map((lane) => [lane.type, lane.results.map((r) => `${r.containerId} ${WORDS[r.result]}`)]),
    ),
  };
}
const WORDS: Readonly<Record<StoredResult, string>> = { Unknown: "UNKNOWN", Success: "Success", Failure: "Failure" };

export const PROBER_SUITES: Readonly<Record<string, Suite>> = {
  prober: suite({
    read: readProber,
    decide: timelineOf,
    show: shown,
    // In the recording a tick at the very end may be included or not: with 16 s, one in four such cases includes it.
    alike: (input) => [{ ...input, endMs: input.endMs - 1 }],
  }),
};
