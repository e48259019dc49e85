import type { ProbeTiming } from "../../model/probes-decision.ts";
import {
  type OutcomeScript,
  type OutcomeWord,
  parseOutcomes,
  type ScriptedOutcome,
} from "../../model/probes-outcomes.ts";
import type { ScriptedAttempt } from "./timeline-input.ts";
import type { AttemptOutcome } from "./worker-state.ts";

const OUTCOME: Readonly<Record<OutcomeWord, AttemptOutcome>> = {
  ok: { result: "success", output: "" },
  warn: { result: "warning", output: "" },
  fail: { result: "failure", output: "" },
  timeout: { result: "failure", output: "no answer in time" },
  error: { error: "the container could not be asked", state: "unknown" },
  hang: { error: "the answer broke off", state: "failure" },
};
const ALWAYS_OK: OutcomeScript = [{ word: "ok", tookMs: null }];
const CANNOT_BE_ASKED: OutcomeScript = [{ word: "error", tookMs: null }];

/**
 * The script of one probe from the items of an ask, which were checked with it; `ok` for ever without any. Nothing lasts
 * longer than the timeout: what would is one.
 */
export function attemptsOf(
  items: readonly string[] | undefined,
  timing: ProbeTiming,
  canBeAsked: boolean,
): readonly ScriptedAttempt[] {
  const timeoutMs = timing.timeoutSeconds * 1000;
  const script = items === undefined ? undefined : parseOutcomes(items);
  const given = script?.ok === true && script.value.length > 0 ? script.value : ALWAYS_OK;
  const known = new Map<ScriptedOutcome, ScriptedAttempt>();
  return (canBeAsked ? given : CANNOT_BE_ASKED).map((scripted) => {
    const made = known.get(scripted) ?? attemptOf(scripted, timeoutMs);
    known.set(scripted, made);
    return made;
  });
}

function attemptOf({ word, tookMs }: ScriptedOutcome, timeoutMs: number): ScriptedAttempt {
  const isSlow = word === "timeout" || word === "hang";
  const took = tookMs ?? (isSlow ? timeoutMs : 0);
  if (took < timeoutMs || isSlow) return { word, outcome: OUTCOME[word], tookMs: Math.min(took, timeoutMs) };
  return { word: "timeout", outcome: OUTCOME.timeout, tookMs: timeoutMs };
}
