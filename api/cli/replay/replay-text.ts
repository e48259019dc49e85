import { isVerdict } from "../../model/decision.ts";
import { endWord } from "../../model/kinds.ts";
import type { Versions } from "../../service/replay/replay-one.ts";
import {
  type ChangedDecision,
  type Counts,
  passedOf,
  podsText,
  standForText,
  type Tally,
  type UnreadableDecision,
  type VerdictChange,
} from "../../service/replay/tally.ts";
import { differenceLine } from "../../text/difference.ts";
import { type Color, clip, type Paint, printable } from "../../text/style.ts";
import { type Column, table } from "../../text/table.ts";
import { isGood, type Terminal } from "../terminal.ts";

/** Nodes with the most changes; the others are counted. */
const NODES = 20;

/** A changed decision: one line, and one for the first place where it differs. */
export function changedText(
  { decidedAt, node, kind, pod, recordedVerdict, recordedReason, verdict, reason, id, ...more }: ChangedDecision,
  { columns, paint }: Terminal,
): string {
  const who = podsText(more);
  const parts = [decidedAt, node, kind, ...(who === "" ? [] : [who]), `kubelet ${versionsText(more)}`];
  const head = parts.map(printable).join("  ");
  const recorded = { kind, pod, verdict: recordedVerdict, reason: recordedReason };
  const line = `${head}  ${verdictsText(recorded, { kind, pod, verdict, reason }, paint)}  ${printable(id)}`;
  return `${line}\n  ${clip(detailText(more), Math.max(20, columns - 2))}\n`;
}

const versionsText = ({ recordedUnder, replayedUnder }: Versions): string =>
  recordedUnder === replayedUnder ? recordedUnder : `${recordedUnder} -> ${replayedUnder}`;

/** A decision of which nothing can be said: one line, and one for what is wrong with it. */
export function unreadableText(
  { decidedAt, node, kind, id, unreadable }: UnreadableDecision,
  { columns, paint }: Terminal,
): string {
  const head = [decidedAt, node, kind].map(printable).join("  ");
  const why = clip(printable(unreadable), Math.max(20, columns - 2));
  return `${head}  ${paint("red", "(unreadable)")}  ${printable(id)}\n  ${why}\n`;
}

/**
 * Describes the decisions that nothing is said of: `2,500 of 2,504 decisions could not be decided again: 2,500 have no snapshot
 * any more`.
 */
export function lostText(counts: Counts): string {
  const { gone, unreadable } = counts;
  const parts = [
    ...(gone > 0 ? [`${text(gone)} ${gone === 1 ? "has" : "have"} no snapshot any more`] : []),
    ...(unreadable > 0 ? [`${text(unreadable)} cannot be read`] : []),
  ];
  return `${text(gone + unreadable)} of ${text(passedOf(counts))} decisions could not be decided again: ${parts.join(", ")}`;
}

function detailText({
  differences,
  differenceCount,
  problem,
}: Pick<ChangedDecision, "differences" | "differenceCount" | "problem">): string {
  if (problem !== null) return printable(`${problem.code}: ${problem.detail}`);
  const [first] = differences;
  if (first === undefined) return "";
  const others = differenceCount > 1 ? `, and ${differenceCount - 1} more` : "";
  return `${differenceLine(first)}${others}`;
}

/** How a decision ended; `verdict` is null where it is refused. */
interface End {
  readonly kind: string;
  readonly verdict: string | null;
  readonly pod?: ChangedDecision["pod"];
  readonly reason?: string | null | undefined;
}
/** In the words of lists: `admitted`, `refused OutOfcpu`. */
function endText({ kind, verdict, reason, ...about }: End, paint: Paint): string {
  if (verdict === null) return paint("red", "(refused)");
  const word = [endWord({ kind, verdict, ...about }), ...(reason ? [reason] : [])].join(" ");
  return paint(colorOf(verdict), printable(word));
}
const colorOf = (verdict: string): Color => (isVerdict(verdict) && isGood(verdict) ? "green" : "yellow");
const verdictsText = (recorded: End, replayed: End, paint: Paint): string =>
  recorded.verdict === replayed.verdict
    ? endText(recorded, paint)
    : `${endText(recorded, paint)} -> ${endText(replayed, paint)}`;

const COUNTS = ["REPLAYED", "SAME", "DIFFERS", "REFUSED", "GONE"];
/** Lists the columns of counts, with one for unreadable decisions where there are any. */
const countColumns = ({ counts }: Tally): readonly Column[] =>
  [...COUNTS, ...(counts.unreadable > 0 ? ["UNREADABLE"] : [])].map((title) => ({ title, align: "right" }));
const text = (n: number): string => n.toLocaleString("en");
const cellsOf = ({ replayed, same, differs, refused, gone, unreadable }: Counts, { counts }: Tally) => [
  text(replayed),
  text(same),
  { text: text(differs), ...(differs > 0 && { color: "yellow" as const }) },
  { text: text(refused), ...(refused > 0 && { color: "red" as const }) },
  text(gone),
  ...(counts.unreadable > 0 ? [{ text: text(unreadable), ...(unreadable > 0 && { color: "red" as const }) }] : []),
];
const changedCount = ({ differs, refused }: Counts): number => differs + refused;

/** Shows the counts: by kind, by node, by kubelet version, and verdict by verdict. */
export function tallyText(tally: Tally, terminal: Terminal): string {
  const { columns: width, paint } = terminal;
  const kinds = Object.entries(tally.byKind).map(([kind, counts]) => ({
    cells: [printable(kind), ...cellsOf(counts, tally)],
  }));
  const total = { cells: ["all", ...cellsOf(tally.counts, tally)] };
  const byKind = table(
    [{ title: "KIND" }, ...countColumns(tally)],
    [...kinds, ...(kinds.length > 1 ? [total] : [])],
    width,
    paint,
  );
  const parts = [
    byKind,
    standForText(tally.counts).replace(/.$/, "$&\n"),
    nodesText(tally, terminal),
    versionsTable(tally, terminal),
    verdictChanges(tally.verdicts, terminal),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function nodesText(tally: Tally, { columns: width, paint }: Terminal): string {
  const nodes = Object.entries(tally.byNode).sort(
    ([a, x], [b, y]) => changedCount(y) - changedCount(x) || (a < b ? -1 : 1),
  );
  const rows = nodes.slice(0, NODES).map(([node, counts]) => ({ cells: [printable(node), ...cellsOf(counts, tally)] }));
  const others = nodes.length - rows.length;
  const more = others === 0 ? "" : `and ${text(others)} more nodes, with no more changes\n`;
  return table([{ title: "NODE", shrinkTo: 10 }, ...countColumns(tally)], rows, width, paint) + more;
}

function versionsTable(tally: Tally, { columns: width, paint }: Terminal): string {
  const rows = tally.byVersion.map((one) => ({ cells: [versionsText(one), ...cellsOf(one, tally)] }));
  return rows.length === 0 ? "" : table([{ title: "KUBELET" }, ...countColumns(tally)], rows, width, paint);
}

function verdictChanges(changes: readonly VerdictChange[], { columns: width, paint }: Terminal): string {
  if (changes.length === 0) return "";
  const rows = changes.map(({ kind, recorded, replayed, count }) => ({
    cells: [kind, verdictsText({ kind, verdict: recorded }, { kind, verdict: replayed }, paint), text(count)],
  }));
  const columns: readonly Column[] = [{ title: "KIND" }, { title: "VERDICT" }, { title: "DECISIONS", align: "right" }];
  return table(columns, rows, width, paint);
}
