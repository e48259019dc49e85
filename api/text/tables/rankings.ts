import type { EvictionDecision, RankedPod, Ranking } from "../../model/eviction.ts";
import { amountText } from "../amount-text.ts";
import { rankChangeSentences } from "../sentences/rank-change.ts";
import { printable } from "../style.ts";
import { type Row, table } from "../table.ts";
import type { Shown } from "./shown.ts";
import { isSamePod, podName } from "./verdict.ts";

/** Of the ranking that is acted on, and of the others; the JSON has more. */
const MOST_DRIVING = 10;
const MOST = 5;

/** Who would go first for each resource, and what would change that; the ranking that is acted on first. */
export function rankingTables(shown: Shown<EvictionDecision>): readonly string[] {
  const { rankings, reclaim } = shown.decision;
  const drives = ({ signals }: Ranking): boolean => reclaim !== null && signals.includes(reclaim.threshold.signal);
  const inOrder = [...rankings.filter(drives), ...rankings.filter((ranking) => !drives(ranking))];
  return inOrder
    .filter(({ pods }) => pods.length > 0)
    .map((ranking) => rankingTable(ranking, drives(ranking) ? MOST_DRIVING : MOST, shown));
}

function rankingTable(ranking: Ranking, most: number, { asked, columns, paint }: Shown<EvictionDecision>): string {
  const { resource, signals, pods, total } = ranking;
  const first = pods.slice(0, most);
  const own = asked === undefined ? undefined : pods.slice(most).find(({ pod }) => isSamePod(pod, asked));
  const rest = total - first.length - (own === undefined ? 0 : 1);
  const rows = [...first, ...(own === undefined ? [] : [own])].map((one) => rowOf(one, ranking));
  const drawn = table(
    [
      { title: "", align: "right" },
      { title: `FIRST TO GO FOR ${resource.toUpperCase()}`, shrinkTo: 12 },
      { title: "PRIORITY", align: "right", giveUp: 2 },
      { title: "USAGE", align: "right" },
      { title: "REQUEST", align: "right", giveUp: 1 },
      { title: "ABOVE REQUEST", align: "right" },
      { title: "" },
    ],
    rows,
    columns,
    paint,
  );
  const sentences = rankChangeSentences(ranking).map((text) => `- ${printable(text)}\n`);
  const more = rest > 0 ? `${rest} more; ` : "";
  return `${drawn}${paint("dim", `${more}by ${signals.join(", ")}`)}\n${sentences.join("")}`;
}

function rowOf({ place, pod, priority, usage, request, aboveRequest, critical, tie }: RankedPod, of: Ranking): Row {
  const amount = (units: number): string => amountText(of.resource, units);
  const marks = [
    ...(critical ? ["critical, stays"] : []),
    ...(usage === null ? ["no stats"] : []),
    ...(tie ? ["tie"] : []),
  ];
  return {
    cells: [
      `${place}`,
      podName(pod),
      `${priority}`,
      usage === null ? "" : amount(usage),
      of.resource === "pids" ? "" : amount(request),
      aboveRequest === null ? "" : amount(aboveRequest),
      { text: marks.join(", "), color: critical ? "dim" : "yellow" },
    ],
  };
}
