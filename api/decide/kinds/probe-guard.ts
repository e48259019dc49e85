import type { Asked, DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type {
  FailedContainer,
  GuardRelease,
  GuardSettings,
  KnownFailure,
  ProbeGuardAsk,
  ProbeGuardDecision,
} from "../../model/probe-guard.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";

/** The events since the last step; the times of all steps are milliseconds of one clock. */
export interface GuardEvents {
  readonly atMs: number;
  /** Groups of pods that have a liveness probe. */
  readonly groups: number;
  /** Once more at each attempt that fails while the kill is held. */
  readonly failed: readonly Pick<FailedContainer, "containerId" | "group">[];
  /** Containers that answer again. */
  readonly recovered: readonly string[];
  /** Containers that nobody probes any more. */
  readonly gone: readonly string[];
}

interface Failure {
  readonly group: string;
  /** The last one. */
  readonly atMs: number;
  /** Null: its kill goes ahead, or is not due. */
  readonly heldSinceMs: number | null;
}
/** By container. */
export type GuardState = ReadonlyMap<string, Failure>;

interface GuardStep {
  readonly next: GuardState;
  /** Unrelated groups with failures in the window, and from how many on they are a storm. */
  readonly failing: number;
  readonly least: number;
  /** In words. */
  readonly why: string;
  /** All kills that are held now. */
  readonly holding: number;
  /** The containers that failed now and whose kill goes ahead. */
  readonly killed: readonly string[];
  /** Kills that are held from now on. */
  readonly held: readonly string[];
  /** Those that are not held any more; `calm` and `held long enough` go ahead. */
  readonly released: readonly { readonly containerId: string; readonly why: GuardRelease }[];
}

/**
 * Holds the kills of containers whose liveness probes fail in the same window, while enough unrelated groups of pods are
 * among them, those with it that have not failed often enough to be killed. Who was due before it was clear that they are
 * many was killed already: one whose first failure kills, or whose period is much shorter than others'. A held kill ends when its
 * container answers again, when the failures are too few at its next failed attempt, or at that attempt after the longest
 * hold; then it goes ahead.
 */
export function guardStep(settings: GuardSettings, state: GuardState, events: GuardEvents): GuardStep {
  const { atMs, failed, recovered, gone } = events;
  const next = new Map([...state].filter(([, failure]) => counts(settings, failure, atMs)));
  const released: { containerId: string; why: GuardRelease }[] = [];
  const drop = (ids: readonly string[], why: "recovered" | "gone"): void => {
    for (const containerId of ids) {
      const isHeld = next.get(containerId)?.heldSinceMs != null;
      if (isHeld) released.push({ containerId, why });
      // a container that was killed for the storm is still a part of it
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

/** Held ones fail until they are released, however long their period is. */
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

/** The moment of the question, from which ages count back. */
const NOW_MS = 0;

/**
 * Which kills of containers with failed liveness probes wait, because so many unrelated ones fail together that it is rather
 * a trouble of the node. Nothing of the snapshot is read, and nothing is remembered: what was known before is in the ask.
 * Refused: nothing is asked. No kubelet does this.
 */
export function decideProbeGuard({ ask, explain }: Asked<ProbeGuardAsk>): Result<DecidedOf<"probe-guard">, Refusal> {
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

/** Explains by which numbers it is a storm or not, and for each container why its kill waits, or why it no longer does. */
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
