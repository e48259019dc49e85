import { LINT_SEVERITIES, type LintSeverity } from "../decide/lint/lint.ts";
import type { Touched, TouchedFinding } from "../routes/lint-touched.ts";
import { many } from "../text/sentences/words.ts";
import { type Color, printable } from "../text/style.ts";
import { table } from "../text/table.ts";
import type { Terminal } from "./terminal.ts";

const COLORS: Readonly<Record<LintSeverity, Color>> = {
  "refuses-start": "red",
  error: "red",
  warning: "yellow",
  note: "cyan",
};
const COLUMNS = [
  { title: "SEVERITY" },
  { title: "FIELD" },
  { title: "WHERE", giveUp: 2, cut: "start" },
  { title: "TOUCHED", align: "right" },
  { title: "CODE", giveUp: 1 },
] as const;

/** A row for each finding, its message, what to do and the patch that mends it below; then how many there are. */
export function findingsText(
  findings: readonly TouchedFinding[],
  placeOf: (field: string) => string | null,
  { columns, paint }: Terminal,
): string {
  if (findings.length === 0) return `${paint("green", "nothing found")}\n`;
  const isCounted = findings.some(({ touched }) => touched !== null);
  const rows = findings.map(({ severity, field, message, kubelet, advice, fix, touched, code }) => ({
    cells: [
      { text: severity, color: COLORS[severity] },
      printable(field),
      printable(placeOf(field) ?? ""),
      isCounted ? touchedText(touched) : "",
      code,
    ],
    notes: [
      `  ${kubelet ? paint("dim", "kubelet: ") : ""}${printable(message)}`,
      `  ${paint("dim", "-> ")}${printable(advice)}`,
      ...(fix === null ? [] : [`  ${paint("dim", "patch: ")}${printable(JSON.stringify(fix))}`]),
    ],
  }));
  return `${table(COLUMNS, rows, columns, paint)}\n${countsText(findings)}\n`;
}

const touchedText = (touched: Touched | null): string =>
  touched === null ? "not counted" : `${touched.decisions} of ${touched.of}`;

function countsText(findings: readonly TouchedFinding[]): string {
  const counts = LINT_SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? "" : severity === "refuses-start" ? `${count} ${severity}` : many(count, severity);
  });
  const tried = findings.find(({ touched }) => touched !== null)?.touched;
  const looked =
    tried === undefined || tried === null
      ? ""
      : `; touched: recorded decisions whose own configuration has the finding too, and that the patch would have changed, or without one that it did something to, of the newest ${tried.of}`;
  return counts.filter((count) => count !== "").join(", ") + looked;
}
