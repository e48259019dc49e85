import { readProbeHistory } from "../../../actuator/probes/engine/history.ts";
import type { ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import { ok } from "../../base/result.ts";
import { PROBE_TYPES, type ProbeType } from "../../model/probe-spec.ts";
import { MAX_OUTCOMES, type OutcomeWord } from "../../model/probes-decision.ts";
import { listed } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { stateDirectory } from "../inputs/daemon-status.ts";
import { EXIT, fault, type Outcome } from "../terminal.ts";
import type { ProbeOutcomesFlags } from "./probes.ts";

/** The outcomes of one container's attempts, in the form of `--outcomes`. */
export type RecordedOutcomes = Readonly<Partial<Record<ProbeType, readonly string[]>>>;
type Run = Extract<ProbeHistoryEntry, { readonly kind: "run" }>;
type Change = Extract<ProbeHistoryEntry, { readonly kind: "result" }>;

type FirstEntry = Extract<ProbeHistoryEntry, { readonly kind: "first" }>;
type OutcomeEntry = Run | Change | FirstEntry;

/** A body that breaks off at once corresponds to hanging for less than the timeout. */
const WORD: Readonly<Record<Run["outcome"], OutcomeWord | "hang@0ms">> = {
  success: "ok",
  failure: "fail",
  error: "error",
  hang: "hang",
  broken: "hang@0ms",
};

/**
 * The outcomes of one container's probes, by type, from its entries, oldest first. A run is recorded when it ends, so the length
 * of the current one is unknown: it is one outcome, which repeats. Only the newest are used if there are more than a script
 * allows.
 */
export function recordedOutcomes(entries: readonly ProbeHistoryEntry[]): RecordedOutcomes {
  const attempts = entries.filter(isOfAttempts);
  return Object.fromEntries(
    PROBE_TYPES.flatMap((type) => {
      const items = itemsOf(attempts.filter((entry) => entry.type === type));
      return items.length === 0 ? [] : [[type, items]];
    }),
  );
}

const isOfAttempts = (entry: ProbeHistoryEntry): entry is OutcomeEntry =>
  entry.kind === "run" || entry.kind === "first" || (entry.kind === "result" && entry.unasked !== true);

function itemsOf(entries: readonly OutcomeEntry[]): readonly string[] {
  const last = lastWord(entries);
  if (last === null) return [];
  const items: string[] = [last];
  let left = MAX_OUTCOMES - 1;
  for (const run of entries.filter((entry) => entry.kind === "run").reverse()) {
    const times = Math.min(run.times, left);
    if (times === 0) break;
    left -= times;
    items.unshift(times === 1 ? WORD[run.outcome] : `${WORD[run.outcome]}*${times}`);
  }
  return items;
}

/** The outcome of attempts since the last recorded run; null if nothing is known. */
function lastWord(entries: readonly OutcomeEntry[]): string | null {
  const at = entries.findLastIndex(({ kind }) => kind === "run");
  const run = entries[at];
  if (run?.kind === "run" && run.next !== undefined) return WORD[run.next];
  const after = entries.slice(at + 1);
  const first = after.find(({ kind }) => kind === "first");
  if (first?.kind === "first") return WORD[first.outcome];
  const change = after.findLast((entry) => entry.kind === "result" && entry.to !== "Unknown");
  if (change?.kind === "result") return change.to === "Success" ? "ok" : "fail";
  // a run recorded by an older daemon
  if (run?.kind !== "run") return null;
  return run.outcome === "success" ? "fail" : "ok";
}

type ContainerEntry = Extract<ProbeHistoryEntry, { readonly container: string }>;

/** Prints the outcomes of one container's probes, for `decide probes --outcomes @FILE`. */
export async function probeOutcomes(given: ProbeOutcomesFlags, { terminal, env }: Cli): Promise<Outcome> {
  const stateDir = stateDirectory(given, env);
  const read = readProbeHistory(stateDir, { limit: Number.POSITIVE_INFINITY });
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const entries = read.value.toReversed();
  const ofPod = entries.filter((entry): entry is ContainerEntry => "pod" in entry && entry.pod === given.pod);
  const names = [...new Set(ofPod.map(({ container }) => container))].toSorted();
  if (names.length === 0) return fault(EXIT.failed, `the history in ${stateDir} has nothing about ${given.pod}`);
  const name = given.container ?? names[0] ?? "";
  if (given.container === undefined && names.length > 1)
    return fault(EXIT.badInput, `--container: ${given.pod} has ${listed(names.map(printable))}: name one`);
  if (!names.includes(name))
    return fault(EXIT.badInput, `--container ${name}: ${given.pod} has ${listed(names.map(printable))}`);
  const outcomes = recordedOutcomes(ofPod.filter(({ container }) => container === name));
  if (Object.keys(outcomes).length === 0)
    return fault(EXIT.failed, `the history in ${stateDir} has no attempt of ${given.pod}/${name}`);
  const omitted = entries.reduce((sum, entry) => sum + (entry.kind === "omitted" ? entry.count : 0), 0);
  if (omitted > 0) terminal.warn(`${omitted} entries were too many for the history: some outcomes may be missing`);
  terminal.write(`${JSON.stringify(outcomes, null, 1)}\n`);
  return ok(EXIT.ok);
}
