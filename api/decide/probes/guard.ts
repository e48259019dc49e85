/** When failed liveness probes are taken for one trouble of the node, not for many of its containers. */
export interface GuardSettings {
  /** Failures so far apart, or closer, belong together. */
  readonly windowSeconds: number;
  /**
   * So many unrelated groups of pods, or this share (0 to 1) of all groups with liveness probes. Of either, at least 2:
   * one group has nobody to be related to.
   */
  readonly least: { readonly groups: number } | { readonly share: number };
  /** No kill is held longer. */
  readonly holdSeconds: number;
}

/** A container whose liveness probe has reached its failure threshold. */
export interface FailedContainer {
  readonly containerId: string;
  /** Pods of one owner are one group: what they have in common is no storm. */
  readonly group: string;
}
/** What was seen since the last step; the times of all steps are milliseconds of one clock. */
export interface GuardEvents {
  readonly atMs: number;
  /** Groups of pods that have a liveness probe. */
  readonly groups: number;
  /** Once more at each attempt that fails while the kill is held. */
  readonly failed: readonly FailedContainer[];
  /** Containers that answer again. */
  readonly recovered: readonly string[];
  /** Containers that nobody probes any more. */
  readonly gone: readonly string[];
}

interface Failure {
  readonly group: string;
  /** The last one. */
  readonly atMs: number;
  /** Null: its kill goes ahead. */
  readonly heldSinceMs: number | null;
}
/** By container. */
export type GuardState = ReadonlyMap<string, Failure>;
export const CALM: GuardState = new Map();

export type Release = "recovered" | "gone" | "calm" | "held long enough";
/** What a person should know of a step; null: nothing changed. */
export interface GuardRecord {
  readonly kind: "probe-guard";
  /** Kills that are held from now on. */
  readonly held: readonly string[];
  /** Those that are not any more; `calm` and `held long enough` go ahead. */
  readonly released: readonly { readonly containerId: string; readonly why: Release }[];
  /** All that are held now. */
  readonly holding: number;
  readonly why: string;
}
export interface GuardStep {
  readonly next: GuardState;
  /** Of the containers that failed now: those whose kill goes ahead. */
  readonly killed: readonly string[];
  readonly record: GuardRecord | null;
}

/**
 * Holds the kills of containers whose liveness probes fail in the same window, while enough unrelated groups of pods are
 * among them. Those that failed before it was clear that they are many were killed already. A held kill ends when its
 * container answers again, when the failures are too few at its next failed attempt, or at that attempt after the longest
 * hold; then it goes ahead.
 */
export function guardStep(settings: GuardSettings, state: GuardState, events: GuardEvents): GuardStep {
  const { atMs, failed, recovered, gone } = events;
  const next = new Map([...state].filter(([, failure]) => counts(settings, failure, atMs)));
  const released: { containerId: string; why: Release }[] = [];
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
  const isNews = verdicts.held.length > 0 || released.length > 0;
  const holding = isNews ? [...next.values()].filter(({ heldSinceMs }) => heldSinceMs !== null).length : 0;
  const why = `liveness probes of ${failing} unrelated groups of ${events.groups} failed within ${settings.windowSeconds} s; from ${least} on kills are held, for ${settings.holdSeconds} s at most`;
  const record: GuardRecord = { kind: "probe-guard", held: verdicts.held, released, holding, why };
  return { next, killed: verdicts.killed, record: isNews ? record : null };
}

/** Held ones fail until they are released, however long their period is. */
const counts = ({ windowSeconds }: GuardSettings, { heldSinceMs, atMs }: Failure, nowMs: number): boolean =>
  heldSinceMs !== null || nowMs - atMs <= windowSeconds * 1000;

export const leastGroups = ({ least }: GuardSettings, groups: number): number =>
  Math.max(2, "groups" in least ? least.groups : Math.ceil(least.share * groups));

interface Verdicts {
  readonly held: readonly string[];
  readonly killed: readonly string[];
  readonly released: readonly { readonly containerId: string; readonly why: Release }[];
}
function judged(
  { holdSeconds }: GuardSettings,
  next: Map<string, Failure>,
  failed: readonly FailedContainer[],
  isStorm: boolean,
  atMs: number,
): Verdicts {
  const held: string[] = [];
  const killed: string[] = [];
  const released: { containerId: string; why: Release }[] = [];
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
