export type CsvCell = string | number | null;

/** How a spreadsheet recognizes a formula (OWASP: CSV injection), also in full-width characters and behind spaces. */
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/;

function cellText(cell: CsvCell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * A table as CSV (RFC 4180), the columns' names first. Texts that a spreadsheet would run as a formula begin with an apostrophe,
 * since names come from whoever posts a snapshot; numbers stay as they are.
 */
export const csvText = (columns: readonly string[], rows: readonly (readonly CsvCell[])[]): string =>
  [columns, ...rows].map((cells) => `${cells.map(cellText).join(",")}\r\n`).join("");

/** A decision as lists have it. */
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
}

const DECISION_COLUMNS = [
  ...["decidedAt", "node", "kind", "verdict", "reason"],
  ...["namespace", "pod", "podUid", "policyVersion", "snapshotId", "id"],
];

export const decisionsCsv = (decisions: readonly ListedDecision[]): string =>
  csvText(
    DECISION_COLUMNS,
    decisions.map(({ decidedAt, node, kind, verdict, reason = null, pod, policyVersion, snapshotId, id }) => [
      ...[decidedAt, node, kind, verdict, reason],
      ...[pod?.namespace ?? null, pod?.name ?? null, pod?.uid ?? null, policyVersion, snapshotId, id],
    ]),
  );
