import type { Comparison, Outcome } from "../../api/model/outcome.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { compareOutcome } from "../../api/service/agreement/compare.ts";
import type { Basis } from "../../api/service/agreement/compared.ts";
import { decoded, type Json } from "../kit/snapshots.ts";

/** Compares each outcome with a decision on one snapshot, with all other outcomes known. */
export function comparedOn(
  snapshot: Json,
  outcomes: readonly Outcome[],
  facts: Basis["facts"] = {},
): readonly Comparison[] {
  const own = effectiveSnapshot(decoded(snapshot));
  return outcomes.map((outcome) =>
    compareOutcome(outcome, {
      snapshotId: "s",
      snapshot: own,
      observedAtMs: Date.parse(own.observedAt ?? ""),
      others: outcomes.filter((one) => one !== outcome),
      facts,
    }),
  );
}

export const secondsBefore = (time: string, seconds: number): string =>
  new Date(Date.parse(time) - seconds * 1000).toISOString();
