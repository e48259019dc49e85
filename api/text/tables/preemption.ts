import { namespacedName, type PodRef } from "../../model/forms.ts";
import type {
  Preemption,
  PreemptionCandidate,
  PreemptionDecision,
  PreemptionPick,
  PreemptionRound,
  Shortage,
  Victim,
} from "../../model/preemption.ts";
import { counterfactualSentences } from "../sentences/counterfactual.ts";
import { listed, many } from "../sentences/words.ts";
import { amountsText, amountText, distanceText } from "../size.ts";
import { type Paint, printable } from "../style.ts";
import { bar, type Cell, type Column, type Glyph, legendText, type Row, table } from "../table.ts";
import { isSamePod, listText, outcome, podName, type Shown, sections, sentenceList } from "./shown.ts";

const BAR_WIDTH = 24;
const GLYPHS = [
  ["cyan", "█", "used"],
  ["green", "▓", "requested and free"],
  ["red", "×", "requested but missing"],
  ["dim", "·", "free after that"],
] as const satisfies readonly Glyph[];

/** Shows what the pod asks for beside what is used of each resource, and how much of it is short. */
export function resourcesTable(
  resources: readonly Shortage[],
  { columns, paint, notesAt }: Omit<Shown<unknown>, "decision">,
): string {
  if (resources.length === 0) return "";
  const right = (title: string): Column => ({ title, align: "right" });
  const drawn = table(
    [
      { title: "RESOURCE", shrinkTo: 12 },
      right("REQUESTED"),
      { title: "USED", align: "right", giveUp: 2 },
      { title: "CAPACITY", align: "right", giveUp: 3 },
      right("LEFT"),
      right("SHORT BY"),
      { title: "", giveUp: 1 },
    ],
    resources.map((r) => {
      const { resource, requested, used, capacity } = r;
      const short = shortOf(r);
      const amount = (units: number): string => amountText(resource, units);
      return {
        cells: [
          printable(resource),
          amount(requested),
          amount(used),
          amount(capacity),
          amount(capacity - used),
          { text: short > 0 ? amount(short) : "", color: "red" },
          barOf(r, paint),
        ],
        notes: notesAt(resource).map((note) => `  ${note}`),
      };
    }),
    columns,
    paint,
  );
  return `${drawn}${legendText(GLYPHS, drawn, paint)}`;
}

const shortOf = ({ requested, used, capacity }: Shortage): number => Math.max(0, requested - (capacity - used));

/** The bar's length is the capacity, or the capacity that would be needed. */
function barOf(r: Shortage, paint: Paint): string {
  const short = Math.min(shortOf(r), r.requested);
  const given = r.requested - short;
  const sizes = [r.used, given, short, r.capacity - r.used - given];
  const parts = GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, BAR_WIDTH);
}

/** Shows the pods that are ended, in kill order, with the reason of each choice. */
export function victimsTable(
  victims: readonly Victim[],
  { columns, paint, notesAt }: Omit<Shown<unknown>, "decision">,
): string {
  if (victims.length === 0) return "";
  return table(
    [
      { title: "", align: "right" },
      { title: "PREEMPTED, IN ORDER", shrinkTo: 12 },
      { title: "QOS" },
      { title: "PRIORITY", align: "right", giveUp: 1 },
      { title: "FREES", shrinkTo: 10 },
    ],
    victims.map((victim, i) => ({
      cells: [
        `${i + 1}`,
        podName(victim),
        victim.qos,
        victim.priority === null ? "none" : `${victim.priority}`,
        amountsText(victim.frees),
      ],
      notes: notesAt(`${victim.namespace}/${victim.name}`).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

/** Candidates shown for one choice (the nearest), and picks for one round (the first). The JSON has them all. */
const MAX_CANDIDATES = 5;
const MAX_PICKS = 4;

/** Tier by tier what was to be freed, and of each choice the nearest candidates with their distances. */
function roundsTable({ decision, columns, paint }: Shown<Preemption>): string {
  if (decision.rounds.length === 0) return "";
  return table(
    [
      { title: "ROUND" },
      { title: "TO FREE", shrinkTo: 10 },
      { title: "DISTANCE", align: "right" },
      { title: "" },
      { title: "CANDIDATE", shrinkTo: 10 },
      { title: "MEMORY", align: "right", giveUp: 2 },
      { title: "CPU", align: "right", giveUp: 1 },
    ],
    decision.rounds.flatMap((round) => roundRows(round, decision.preempt.length > 0 ? "preempted" : "chosen")),
    columns,
    paint,
  );
}

function roundRows(round: PreemptionRound, chosenIs: string): readonly Row[] {
  const { qos, picks, assumedGone } = round;
  if (picks.length === 0) {
    const enough = assumedGone.length === 0 ? "nothing is left" : `${listed(assumedGone)} free enough`;
    return [{ cells: [qos, { text: enough, color: "dim" }] }];
  }
  const rows = picks.slice(0, MAX_PICKS).flatMap((pick, i) => pickRows(pick, round, [i === 0 ? qos : "", chosenIs]));
  const rest = picks.length - MAX_PICKS;
  return rest > 0 ? [...rows, { cells: ["", { text: `(${rest} more choices)`, color: "dim" }] }] : rows;
}

/** The chosen candidate, then the others, nearest first. */
function pickRows(
  pick: PreemptionPick,
  { candidates }: PreemptionRound,
  [title, chosenIs]: readonly [string, string],
): readonly Row[] {
  const { open, chosen, distance, distances, tied } = pick;
  const isTied = (ref: PodRef): boolean => tied.some((one) => isSamePod(one, ref));
  const others = candidates
    .flatMap((candidate, i) => {
      const away = distances?.[i] ?? null;
      return away === null || isSamePod(candidate, chosen) ? [] : [{ candidate, away }];
    })
    .sort((a, b) => a.away - b.away);
  const row = (first: readonly string[], away: string, mark: Cell, of: PreemptionCandidate | undefined): Row => ({
    cells: [
      ...first,
      away,
      mark,
      of === undefined ? "" : podName(of),
      of === undefined ? "" : amountText("memory", of.memory),
      of === undefined ? "" : amountText("cpu", of.cpu),
    ],
  });
  const own = candidates.find((one) => isSamePod(one, chosen));
  const rest = others.length - (MAX_CANDIDATES - 1);
  return [
    row([title, amountsText(open)], distanceText(distance), { text: chosenIs, color: "red" }, own),
    ...others
      .slice(0, MAX_CANDIDATES - 1)
      .map(({ candidate, away }) =>
        row(["", ""], distanceText(away), { text: isTied(candidate) ? "tied" : "", color: "yellow" }, candidate),
      ),
    ...(rest > 0
      ? [
          {
            cells: [
              "",
              "",
              "",
              "",
              { text: `(${rest} more, up to ${distanceText(others.at(-1)?.away ?? 0)})`, color: "dim" as const },
            ],
          },
        ]
      : []),
  ];
}

/**
 * Shows which pods are ended so that the pod fits and how each was chosen, which others would have done, and what would spare
 * them.
 */
export function preemptionTable(shown: Shown<PreemptionDecision>): string {
  const { decision, paint } = shown;
  const sentences = counterfactualSentences(decision.counterfactuals, shown.isExact);
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
    ? `critical: ${many(candidates, "pod")} may be preempted for it`
    : "not critical: the kubelet preempts no pod for it";
  const needed = need.length === 0 ? "nothing is short" : `to be freed: ${amountsText(need)}`;
  const notes = [`${pod.namespace}/${pod.name}`, "preemption"].flatMap(notesAt).map((note) => `  ${note}\n`);
  return `${line}${paint("dim", `${may}; ${printable(needed)}`)}\n${notes.join("")}`;
}

const costText = ({ preempt }: PreemptionDecision, paint: Paint): string =>
  preempt.length === 0 ? "no pod is preempted for it" : paint("red", `${many(preempt.length, "pod")} preempted for it`);

function whyNot({ error, remainingReasons, unmet, critical }: PreemptionDecision): string {
  if (error !== null) return printable(error);
  const short = critical && unmet.length > 0 ? `, and ${amountsText(unmet)} could not be freed` : "";
  return printable(`${remainingReasons.join(", ")}${short}`);
}

/** Shows the pods that other choosers would take, beside what the kubelet does. */
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
        listText(set.pods.map(namespacedName), " "),
        { text: exact ? "" : `(after ${better.bound} steps)`, color: "dim" },
      ],
    })),
    columns,
    paint,
  );
}
