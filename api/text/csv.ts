import { verdictLabel } from "../model/kinds.ts";
import type { Comparison, SideValue } from "../model/outcome.ts";

export type CsvCell = string | number | null;

/**
 * Matches a text that spreadsheets treat as a formula (OWASP: CSV injection), also in full-width characters and after
 * spaces.
 */
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/;

function cellText(cell: CsvCell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * A table as CSV (RFC 4180), with a header row. Texts that a spreadsheet would run as a formula get an apostrophe,
 * since names come from callers; numbers stay unchanged.
 */
export const csvText = (columns: readonly string[], rows: readonly (readonly CsvCell[])[]): string =>
  [columns, ...rows].map((cells) => `${cells.map(cellText).join(",")}\r\n`).join("");

/** A decision in a list. */
interface ListedDecision {
  readonly decidedAt: string;
  readonly node: string;
  readonly kind: string;
  readonly verdict: string;
  /** Absent in the answers of an older API. */
  readonly reason?: string | null;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string } | null;
  readonly policyVersion: string;
  readonly snapshotId: string | null;
  readonly id: string;
  /** These two are absent in the answers of an older API. */
  readonly times?: number;
  readonly lastDecidedAt?: string;
}

const DECISION_COLUMNS = [
  ...["decidedAt", "node", "kind", "verdict", "reason"],
  ...["namespace", "pod", "podUid", "policyVersion", "snapshotId", "id"],
  ...["times", "lastDecidedAt", "outcome"],
];

/** `refused: OutOfcpu`, `admitted`, `admitted: Preempting`. */
const outcomeText = ({ reason, ...head }: Pick<ListedDecision, "kind" | "verdict" | "reason" | "pod">): string =>
  `${verdictLabel(head)}${reason ? `: ${reason}` : ""}`;

export const decisionsCsv = (decisions: readonly ListedDecision[]): string =>
  csvText(
    DECISION_COLUMNS,
    decisions.map(({ decidedAt, node, kind, verdict, reason = null, pod, policyVersion, snapshotId, id, ...last }) => [
      ...[decidedAt, node, kind, verdictLabel({ kind, verdict, pod }), reason],
      ...[pod?.namespace ?? null, pod?.name ?? null, pod?.uid ?? null, policyVersion, snapshotId, id],
      ...[last.times ?? 1, last.lastDecidedAt ?? decidedAt, outcomeText({ kind, verdict, reason, pod })],
    ]),
  );

/** An outcome in a list. */
interface Compared {
  readonly at: string;
  readonly node: string;
  readonly kind: string;
  readonly verdict: string;
  /** Absent in the answers of an older API. */
  readonly reason?: string | null;
  readonly pod: ListedDecision["pod"];
  readonly comparison: Comparison | null;
  readonly id: string;
}

export const OUTCOME_COLUMNS = [
  ...["at", "node", "kind", "verdict", "reason", "namespace", "pod", "podUid", "message"],
  ...["differsIn", "byKubelet", "byNodewise", "notComparable", "policyVersion", "snapshotId", "id"],
];

/** The cells of an outcome: `message` is the kubelet's; of the compared fields, only the first difference is shown. */
export function outcomeCells(outcome: Compared): readonly CsvCell[] {
  const { at, node, kind, verdict, reason = null, pod, comparison, id } = outcome;
  const { kubelet, difference, why, policyVersion = null, snapshotId = null } = comparison ?? {};
  return [
    ...[at, node, kind, verdict, reason, pod?.namespace ?? null, pod?.name ?? null, pod?.uid ?? null],
    ...[sideText(kubelet?.["message"]), difference?.field ?? null],
    ...[sideText(difference?.kubelet), sideText(difference?.nodewise), why?.code ?? null],
    ...[policyVersion, snapshotId, id],
  ];
}
const sideText = (value: SideValue | undefined): string | null =>
  value === undefined || value === null ? null : Array.isArray(value) ? value.join(" ") : String(value);
