import { join } from "node:path";
import { readProbeHistory } from "../../../actuator/probes/history.ts";
import type { ProbeHistoryEntry } from "../../../actuator/probes/history-entry.ts";
import { ok } from "../../model/result.ts";
import { listed } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { stateHome } from "../directories.ts";
import { EXIT, fault, type Outcome } from "../exit.ts";
import type { ProbeOutcomesGiven } from "./given.ts";
import { recordedOutcomes } from "./recorded.ts";

type OfContainer = Extract<ProbeHistoryEntry, { readonly container: string }>;

/** Prints what the attempts of one container's probes ended with, as `decide probes --outcomes @FILE` takes it. */
export async function probeOutcomes(given: ProbeOutcomesGiven, { terminal, env }: Cli): Promise<Outcome> {
  const stateDir = given.stateDir ?? join(stateHome(env), "actuator");
  const read = readProbeHistory(stateDir, { limit: Number.POSITIVE_INFINITY });
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const entries = read.value.toReversed();
  const ofPod = entries.filter((entry): entry is OfContainer => "pod" in entry && entry.pod === given.pod);
  const names = [...new Set(ofPod.map(({ container }) => container))].toSorted();
  if (names.length === 0) return fault(EXIT.failed, `the history in ${stateDir} tells nothing of ${given.pod}`);
  const name = given.container ?? names[0] ?? "";
  if (given.container === undefined && names.length > 1)
    return fault(EXIT.badInput, `--container: ${given.pod} has ${listed(names.map(printable))}: name one`);
  if (!names.includes(name))
    return fault(EXIT.badInput, `--container ${name}: ${given.pod} has ${listed(names.map(printable))}`);
  const outcomes = recordedOutcomes(ofPod.filter(({ container }) => container === name));
  if (Object.keys(outcomes).length === 0)
    return fault(EXIT.failed, `the history in ${stateDir} tells of no attempt of ${given.pod}/${name}`);
  const omitted = entries.reduce((sum, entry) => sum + (entry.kind === "omitted" ? entry.count : 0), 0);
  if (omitted > 0) terminal.warn(`${omitted} entries were too many for the history: some outcomes may be missing`);
  terminal.write(`${JSON.stringify(outcomes, null, 1)}\n`);
  return ok(EXIT.ok);
}
