import { mergedOutcome, type Outcome, outcomeKey } from "../../api/model/outcome.ts";

/** The outcomes as the history stores them: without duplicates, ordered by time and key. */
export function mergedOutcomes(found: readonly Outcome[]): readonly Outcome[] {
  const merged = new Map<string, Outcome>();
  for (const one of found) {
    const key = JSON.stringify(outcomeKey(one));
    const known = merged.get(key);
    merged.set(key, known === undefined ? one : mergedOutcome(known, one));
  }
  return [...merged]
    .sort(([k, a], [l, b]) => Date.parse(a.at) - Date.parse(b.at) || (k < l ? -1 : 1))
    .map(([, one]) => one);
}
