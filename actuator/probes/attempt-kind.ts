import type { AttemptOutcome } from "../../api/decide/probes/worker-state.ts";

/**
 * How an attempt ended. Success that is told as a warning is a success here. `hang` and `broken`: errors after the head of
 * an HTTP answer, whose body never ended or ended too soon.
 */
export const ATTEMPT_KINDS = ["success", "failure", "error", "hang", "broken"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/** Of its timeout: clocks that are not the same may differ by so little. */
const WHOLE = 0.95;

/** `seconds`: what it took. */
export function attemptKind(outcome: AttemptOutcome, seconds: number, timeoutSeconds: number): AttemptKind {
  if (!("error" in outcome)) return outcome.result === "failure" ? "failure" : "success";
  if (outcome.state !== "failure") return "error";
  return seconds >= timeoutSeconds * WHOLE ? "hang" : "broken";
}
