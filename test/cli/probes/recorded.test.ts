import { expect, test } from "vitest";
import { type RecordedOutcomes, recordedOutcomes } from "../../../api/cli/probes/outcomes.ts";
import type { ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { BAD, type ManagerFixture, managerFixture, OK } from "../../actuator/probes/manager-kit.ts";
import { dryRun, HTTP, probedPod } from "../../decide/probes/probes-kit.ts";
import { probe, probed, probedContainer } from "../../kit/runnable-pods.ts";

const HUNG: ProbeOutcome = {
  error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
  state: "failure",
};
const BROKEN: ProbeOutcome = { error: "unexpected EOF", state: "failure" };
const TIMING = { periodSeconds: 10, timeoutSeconds: 2, failureThreshold: 3 };

/** A container that gives `answers` in order and then repeats the last one; HUNG lasts for the whole timeout. */
async function lived(answers: readonly ProbeOutcome[], seconds: number): Promise<ManagerFixture> {
  const w = managerFixture();
  let at = 0;
  w.answer = () => {
    const answer = answers[Math.min(at++, answers.length - 1)] as ProbeOutcome;
    if (answer !== HUNG) return answer;
    w.clock.after(TIMING.timeoutSeconds * 1000, () => w.asked.at(-1)?.end(HUNG));
    return null;
  };
  w.manager.sync([probed([probedContainer({ liveness: probe(TIMING) })])]);
  await w.clock.advance(seconds * 1000);
  return w;
}
const restartsOf = (outcomes: RecordedOutcomes, seconds: number): number => {
  const { liveness = ["ok"] } = outcomes;
  return dryRun(probedPod({ livenessProbe: { ...HTTP, ...TIMING } }), { outcomes: liveness.join(","), seconds })
    .restarts;
};
const killed = ({ results }: ManagerFixture): number => results.filter(({ result }) => result === "Failure").length;

const times = (outcome: ProbeOutcome, count: number): readonly ProbeOutcome[] => Array(count).fill(outcome);
test.each<readonly [string, readonly ProbeOutcome[], readonly string[]]>([
  ["a body that hangs", [...times(OK, 13), HUNG], ["ok*13", "hang"]],
  ["a body that breaks off", [...times(OK, 13), BROKEN], ["ok*13", "hang@0ms"]],
  ["a body that hangs from the start", [HUNG], ["hang"]],
  ["what cannot be asked", [OK, { error: "no such port" }], ["ok", "error"]],
  ["a body that hangs, then failures", [OK, ...times(HUNG, 3), BAD], ["ok", "hang*3", "fail"]],
  ["failures from the start", [BAD], ["fail"]],
])("%s: dry run of recorded outcomes restarts exactly if the container was killed", async (_name, answers, wanted) => {
  const seconds = 400;
  const w = await lived(answers, seconds);
  const outcomes = recordedOutcomes(w.history);
  expect(outcomes).toEqual({ liveness: wanted });
  expect(restartsOf(outcomes, seconds) > 0).toBe(killed(w) > 0);
});

test("a container that ended by itself has no failed attempt in the recorded outcomes", async () => {
  const w = await lived([OK], 30);
  w.manager.sync([probed([probedContainer({ liveness: probe(TIMING) }, { state: "terminated", startedAtMs: null })])]);
  await w.clock.advance(20_000);
  expect(w.history).toMatchObject([{ kind: "result", to: "Failure", unasked: true }]);
  expect(recordedOutcomes(w.history)).toEqual({});
});
