import type { Preemption, PreemptionDecision, Victim } from "../../model/preemption.ts";
import { amountsText } from "../amount-text.ts";
import { counterfactualSentences } from "../sentences/counterfactual.ts";
import { many } from "../sentences/words.ts";
import { type Paint, printable } from "../style.ts";
import { table } from "../table.ts";
import { outcome, sentenceList } from "./outcome.ts";
import { listText } from "./placements.ts";
import { roundsTable } from "./rounds.ts";
import { resourcesTable } from "./shortages.ts";
import { type Shown, sections } from "./shown.ts";
import { podName } from "./verdict.ts";
import { victimsTable } from "./victims.ts";

/** Who is ended so that the pod fits and how each was chosen, who else would have done, and what would spare them. */
export function preemptionTable(shown: Shown<PreemptionDecision>): string {
  const { decision, paint } = shown;
  const sentences = counterfactualSentences(decision.counterfactuals);
  return sections(
    headOf(shown),
    resourcesTable(decision.shortages, shown),
    victimsTable(decision.preempt, shown),
    roundsTable(shown),
    betterTable(shown),
    sentenceList(paint, "WHAT WOULD CHANGE IT", sentences.map(printable)),
  );
}

function headOf({ decision, paint, notesAt }: Shown<PreemptionDecision>): string {
  const { pod, admit, critical, candidates, need } = decision;
  const name = podName(pod);
  const line = admit
    ? outcome(paint, "green", "ADMITTED", `${name}: ${costText(decision, paint)}`)
    : outcome(paint, "red", "REFUSED", `${name}: ${whyNot(decision)}`);
  const may = critical
    ? `critical: ${many(candidates, "pod")} may be ended for it`
    : "not critical: a kubelet ends nobody for it";
  const needed = need.length === 0 ? "nothing is short" : `to be freed: ${amountsText(need)}`;
  const notes = [`${pod.namespace}/${pod.name}`, "preemption"].flatMap(notesAt).map((note) => `  ${note}\n`);
  return `${line}${paint("dim", `${may}; ${printable(needed)}`)}\n${notes.join("")}`;
}

const costText = ({ preempt }: PreemptionDecision, paint: Paint): string =>
  preempt.length === 0 ? "nobody is ended for it" : paint("red", `${many(preempt.length, "pod")} ended for it`);

function whyNot({ error, remainingReasons, unmet, critical }: PreemptionDecision): string {
  if (error !== null) return printable(error);
  const short = critical && unmet.length > 0 ? `, and ${amountsText(unmet)} could not be freed` : "";
  return printable(`${remainingReasons.join(", ")}${short}`);
}

/** What other choosers would take, beside what the kubelet does. */
function betterTable({ decision, columns, paint }: Shown<Preemption>): string {
  const { better, preempt, need } = decision;
  if (better === null) return "";
  const freed = need.map(({ resource }) => ({
    resource,
    quantity: preempt.reduce((sum, { frees }) => sum + (frees.find((f) => f.resource === resource)?.quantity ?? 0), 0),
  }));
  const sets = [
    ["the kubelet's", { pods: preempt, frees: freed }, true],
    ["fewest pods", better.fewestPods, better.exact.fewestPods],
    ["least requests", better.leastRequests, better.exact.leastRequests],
  ] as const;
  const rows = sets.flatMap(([name, set, exact]) => (set === null ? [] : [{ name, set, exact }]));
  const cut = !(better.exact.fewestPods && better.exact.leastRequests);
  if (rows.length === 1) {
    const sure = cut ? "no better set was found" : "no set of pods does better";
    return paint("dim", `${sure}${cut ? ` in ${better.bound} steps` : ""}\n`);
  }
  return table(
    [
      { title: "SET" },
      { title: "PODS", align: "right" },
      { title: "FREES", shrinkTo: 10 },
      { title: "", shrinkTo: 10 },
      { title: "", giveUp: 1 },
    ],
    rows.map(({ name, set, exact }) => ({
      cells: [
        name,
        `${set.pods.length}`,
        amountsText(set.frees),
        listText(set.pods.map(nameOf), " "),
        { text: exact ? "" : `(after ${better.bound} steps)`, color: "dim" },
      ],
    })),
    columns,
    paint,
  );
}
const nameOf = ({ namespace, name }: Victim): string => `${namespace}/${name}`;
