import type { ProbeHistoryEntry } from "../../../actuator/probes/history-entry.ts";
import { PROBE_TYPES, type ProbeType } from "../../model/probe.ts";
import { MOST_OUTCOMES, type OutcomeWord } from "../../model/probes-outcomes.ts";

/** What the attempts of one container ended with, as `--outcomes` takes it. */
export type RecordedOutcomes = Readonly<Partial<Record<ProbeType, readonly string[]>>>;
type Run = Extract<ProbeHistoryEntry, { readonly kind: "run" }>;
type Change = Extract<ProbeHistoryEntry, { readonly kind: "result" }>;

const WORD: Readonly<Record<Run["outcome"], OutcomeWord>> = { success: "ok", failure: "fail", error: "error" };

/**
 * The outcomes of the probes of one container, by type, from the entries about it, the oldest first. A run is written when
 * it has ended, so how long the last one has lasted is not known: it stands as one outcome, which repeats. Of more than a
 * script may have the newest are taken.
 */
export function recordedOutcomes(entries: readonly ProbeHistoryEntry[]): RecordedOutcomes {
  const told = entries.filter((entry) => entry.kind === "run" || entry.kind === "result");
  return Object.fromEntries(
    PROBE_TYPES.flatMap((type) => {
      const items = itemsOf(told.filter((entry) => entry.type === type));
      return items.length === 0 ? [] : [[type, items]];
    }),
  );
}

function itemsOf(entries: readonly (Run | Change)[]): readonly string[] {
  const last = lastWord(entries);
  if (last === null) return [];
  const items = [last as string];
  let left = MOST_OUTCOMES - 1;
  for (const run of entries.filter((entry) => entry.kind === "run").reverse()) {
    const times = Math.min(run.times, left);
    if (times === 0) break;
    left -= times;
    items.unshift(times === 1 ? WORD[run.outcome] : `${WORD[run.outcome]}*${times}`);
  }
  return items;
}

/** What the attempts end with since the last run ended; null: nobody knows anything. */
function lastWord(entries: readonly (Run | Change)[]): OutcomeWord | null {
  const at = entries.findLastIndex(({ kind }) => kind === "run");
  const change = entries.findLast((entry, i) => i > at && entry.kind === "result" && entry.to !== "Unknown");
  if (change?.kind === "result") return change.to === "Success" ? "ok" : "fail";
  const run = entries[at];
  if (run?.kind !== "run") return null;
  return run.outcome === "success" ? "fail" : "ok";
}
