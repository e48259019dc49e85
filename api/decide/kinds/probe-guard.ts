import { err, ok, type Result } from "../../base/result.ts";
import type { DecideArguments, DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type {
  FailedContainer,
  GuardRelease,
  GuardSettings,
  KnownFailure,
  ProbeGuardAsk,
  ProbeGuardDecision,
} from "../../model/probe-guard.ts";
import { Reasons } from "../reasons.ts";

/** The events since the last step; the times of all steps are milliseconds of one clock. */
export interface GuardEvents {
  readonly atMs: number;
  /** The number of pod groups with a liveness probe. */
  readonly groups: number;
  /** Containers that failed; a held container occurs again at each failed attempt. */
  readonly failed: readonly Pick<FailedContainer, "containerId" | "group">[];
  /** Ids of containers whose probe succeeds again. */
  readonly recovered: readonly string[];
  /** Ids of containers that are no longer probed. */
  readonly gone: readonly string[];
}

interface Failure {
  readonly group: string;
  /** When its last failure was. */
  readonly atMs: number;
  /** Since when its kill is held; null: it is not held. */
  readonly heldSinceMs: number | null;
}
/** The failures by container. */
export type GuardState = ReadonlyMap<string, Failure>;

interface GuardStep {
  readonly next: GuardState;
  /** The number of unrelated groups with failures in the window, and the number from which they are a storm. */
  readonly failing: number;
  readonly least: number;
  /** The explanation for people. */
  readonly why: string;
  /** The total number of kills that are held now. */
  readonly holding: number;
  /** Ids of the containers that failed now and whose kill goes ahead. */
  readonly killed: readonly string[];
  /** Ids of the containers whose kills are held from now on. */
  readonly held: readonly string[];
  /** Kills that are no longer held; those with `calm` and `held long enough` go ahead. */
  readonly released: readonly { readonly containerId: string; readonly why: GuardRelease }[];
}

/**
 * Holds the kills of containers whose liveness probes fail in the same window as those of enough unrelated pod groups,
 * including groups that have not reached their threshold. Kills that were due before the storm was recognised have
 * already happened: of containers that one failure kills, or with a much shorter period. A held kill ends when its
 * container succeeds again, or at its next failed attempt if there are too few failures or the longest hold has
 * passed; then it goes ahead.
 */
export function guardStep(settings: GuardSettings, state: GuardState, events: GuardEvents): GuardStep {
  const { atMs, failed, recovered, gone } = events;
  const next = new Map([...state].filter(([, failure]) => counts(settings, failure, atMs)));
  const released: { containerId: string; why: GuardRelease }[] = [];
  const drop = (ids: readonly string[], why: "recovered" | "gone"): void => {
    for (const containerId of ids) {
      const isHeld = next.get(containerId)?.heldSinceMs != null;
      if (isHeld) released.push({ containerId, why });
      // a container that was killed during the storm still counts towards it
      if (isHeld || why === "recovered") next.delete(containerId);
    }
  };
  drop(recovered, "recovered");
  drop(gone, "gone");
  for (const { containerId, group } of failed) {
    const heldSinceMs = next.get(containerId)?.heldSinceMs ?? null;
    next.set(containerId, { group, atMs, heldSinceMs });
  }
  const failing = new Set([...next.values()].map(({ group }) => group)).size;
  const least = leastGroups(settings, events.groups);
  const verdicts = judged(settings, next, failed, failing >= least, atMs);
  released.push(...verdicts.released);
  const holding = [...next.values()].filter(({ heldSinceMs }) => heldSinceMs !== null).length;
  const why = `liveness probes of ${failing} unrelated group${failing === 1 ? "" : "s"} of ${events.groups} failed within ${settings.windowSeconds} s; from ${least} on kills are held, for ${settings.holdSeconds} s at most`;
  return { next, failing, least, why, holding, killed: verdicts.killed, held: verdicts.held, released };
}

/** Whether a failure counts: a held one counts until it is released, however long its period. */
const counts = ({ windowSeconds }: GuardSettings, { heldSinceMs, atMs }: Failure, nowMs: number): boolean =>
  heldSinceMs !== null || nowMs - atMs <= windowSeconds * 1000;

export const leastGroups = ({ least }: GuardSettings, groups: number): number =>
  Math.max(2, "groups" in least ? least.groups : Math.ceil(least.share * groups));

interface Verdicts {
  readonly held: readonly string[];
  readonly killed: readonly string[];
  readonly released: readonly { readonly containerId: string; readonly why: GuardRelease }[];
}
function judged(
  { holdSeconds }: GuardSettings,
  next: Map<string, Failure>,
  failed: GuardEvents["failed"],
  isStorm: boolean,
  atMs: number,
): Verdicts {
  const held: string[] = [];
  const killed: string[] = [];
  const released: { containerId: string; why: GuardRelease }[] = [];
  for (const { containerId } of failed) {
    const failure = next.get(containerId) as Failure;
    const { heldSinceMs } = failure;
    const isOver = heldSinceMs !== null && atMs - heldSinceMs >= holdSeconds * 1000;
    if (isStorm && !isOver) {
      if (heldSinceMs === null) held.push(containerId);
      next.set(containerId, { ...failure, heldSinceMs: heldSinceMs ?? atMs });
      continue;
    }
    killed.push(containerId);
    if (heldSinceMs !== null) released.push({ containerId, why: isOver ? "held long enough" : "calm" });
    next.set(containerId, { ...failure, heldSinceMs: null });
  }
  return { held, killed, released };
}

/** The time of the question; ages count back from it. */
const NOW_MS = 0;

/**
 * Decides which liveness kills wait, because so many unrelated containers fail together that the node is the likelier
 * cause. The snapshot is not read and nothing is remembered: known failures are in the ask. Refused: no ask. No
 * kubelet does this.
 */
export function decideProbeGuard({
  ask,
  explain,
}: DecideArguments<ProbeGuardAsk>): Result<DecidedOf<"probe-guard">, Refusal> {
  const { guard, groups, known, failed, recovered, gone } = ask;
  if (guard === null) {
    const message = "which failed liveness probes are to be judged? post the guard's settings, and what failed";
    return err({ code: "needs_input", message, needs: ["ask.guard"] });
  }
  const events = { atMs: NOW_MS, groups, failed, recovered, gone };
  const decision = decisionOf(ask, guardStep(guard, stateOf(known), events));
  const reasons = new Reasons<ReasonCode<"probe-guard">>(explain);
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

/** Explains the numbers that make a storm or not, and for each container why its kill waits, or no longer does. */
function explainGuard(
  decision: ProbeGuardDecision,
  guard: GuardSettings,
  reasons: Reasons<ReasonCode<"probe-guard">>,
): void {
  const { storm, groups, failingGroups, leastGroups, kill, hold, released } = decision;
  const { windowSeconds, least, holdSeconds } = guard;
  const share = "share" in least ? { share: least.share } : {};
  const numbers = { failingGroups, groups, leastGroups, windowSeconds, ...share };
  reasons.add(storm ? "probe_storm" : "no_probe_storm", "node", "storm", numbers);
  const why = new Map(released.map(({ containerId, why }) => [containerId, why]));
  for (const { container, heldForMs } of hold)
    reasons.add(heldForMs === 0 ? "kill_held" : "kill_held_on", container, "hold", { heldForMs, holdSeconds });
  for (const { containerId, container } of kill)
    if (!why.has(containerId)) reasons.add("kill_not_held", container, "kill");
  for (const { container, why } of released) reasons.add(RELEASED[why], container, "released", { holdSeconds });
}
const RELEASED: Readonly<Record<GuardRelease, ReasonCode<"probe-guard">>> = {
  recovered: "released_recovered",
  gone: "released_gone",
  calm: "released_calm",
  "held long enough": "released_held_long_enough",
};
