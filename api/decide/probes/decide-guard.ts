import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { FailedContainer, KnownFailure, ProbeGuardAsk, ProbeGuardDecision } from "../../model/probe-guard.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";
import { explainGuard } from "./explain-guard.ts";
import { type GuardState, type GuardStep, guardStep } from "./guard.ts";

/** The moment of the question, from which ages count back. */
const NOW_MS = 0;

/**
 * Which kills of containers with failed liveness probes wait, because so many unrelated ones fail together that it is rather
 * a trouble of the node. Nothing of the snapshot is read, and nothing is remembered: what was known before is in the ask.
 * Refused: nothing is asked. No kubelet does this.
 */
export function decideProbeGuard({ ask, explain }: Asked<ProbeGuardAsk>): Result<Decided<ProbeGuardDecision>, Refusal> {
  const { guard, groups, known, failed, recovered, gone } = ask;
  if (guard === null) {
    const message = "which failed liveness probes are to be judged? post the guard's settings, and what failed";
    return err({ code: "needs_input", message, needs: ["ask.guard"] });
  }
  const events = { atMs: NOW_MS, groups, failed, recovered, gone };
  const decision = decisionOf(ask, guardStep(guard, stateOf(known), events));
  const reasons = new Reasons(explain);
  explainGuard(decision, guard, reasons);
  const verdict = decision.holding > 0 ? "keeps" : decision.kill.length > 0 ? "restarts" : "decided";
  return ok({ decision, verdict, reasons: reasons.list, needs: [], next: null });
}

const stateOf = (known: readonly KnownFailure[]): GuardState =>
  new Map(
    known.map(({ containerId, group, failedAgoMs, heldForMs }) => [
      containerId,
      { group, atMs: NOW_MS - failedAgoMs, heldSinceMs: heldForMs === null ? null : NOW_MS - heldForMs },
    ]),
  );

function decisionOf({ groups, known, failed }: ProbeGuardAsk, step: GuardStep): ProbeGuardDecision {
  const { next, failing, least, why, holding, killed, released } = step;
  const names = new Map([...known, ...failed].map(({ containerId, container }) => [containerId, container]));
  const named = (containerId: string): Pick<FailedContainer, "containerId" | "container"> => ({
    containerId,
    container: names.get(containerId) ?? containerId,
  });
  const asked = new Set(failed.map(({ containerId }) => containerId));
  return {
    storm: failing >= least,
    groups,
    failingGroups: failing,
    leastGroups: least,
    message: why,
    kill: killed.map(named),
    hold: [...next].flatMap(([id, { heldSinceMs }]) =>
      heldSinceMs === null || !asked.has(id) ? [] : [{ ...named(id), heldForMs: NOW_MS - heldSinceMs }],
    ),
    released: released.map(({ containerId, why }) => ({ ...named(containerId), why })),
    holding,
    known: [...next].map(([id, { group, atMs, heldSinceMs }]) => ({
      ...named(id),
      group,
      failedAgoMs: NOW_MS - atMs,
      heldForMs: heldSinceMs === null ? null : NOW_MS - heldSinceMs,
    })),
  };
}
