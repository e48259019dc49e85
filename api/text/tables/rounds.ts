import type { PodRef } from "../../model/managers.ts";
import type { Preemption, PreemptionCandidate, PreemptionPick, PreemptionRound } from "../../model/preemption.ts";
import { amountsText, amountText, distanceText } from "../amount-text.ts";
import { listed } from "../sentences/words.ts";
import { type Cell, type Row, table } from "../table.ts";
import type { Shown } from "./shown.ts";
import { isSamePod, podName } from "./verdict.ts";

/** Of one choice, the nearest; of one round, the first choices. The JSON has them all. */
const MOST_CANDIDATES = 5;
const MOST_PICKS = 4;

/** Tier by tier what was to be freed, and of each choice the nearest candidates with their distances. */
export function roundsTable({ decision, columns, paint }: Shown<Preemption>): string {
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
    decision.rounds.flatMap((round) => roundRows(round, decision.preempt.length > 0 ? "ended" : "would go")),
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
  const rows = picks.slice(0, MOST_PICKS).flatMap((pick, i) => pickRows(pick, round, [i === 0 ? qos : "", chosenIs]));
  const rest = picks.length - MOST_PICKS;
  return rest > 0 ? [...rows, { cells: ["", { text: `(${rest} more choices)`, color: "dim" }] }] : rows;
}

/** The chosen one, then the others as near to far. */
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
  const rest = others.length - (MOST_CANDIDATES - 1);
  return [
    row([title, amountsText(open)], distanceText(distance), { text: chosenIs, color: "red" }, own),
    ...others
      .slice(0, MOST_CANDIDATES - 1)
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
