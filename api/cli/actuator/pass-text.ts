import type { StepResult } from "../../../actuator/apply/steps.ts";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { harmlessCause, isForeign, isReported } from "../../../actuator/plan/drift.ts";
import type { Skip } from "../../../actuator/plan/step.ts";
import type { DriftRow } from "../../../actuator/status/node-status.ts";
import { type Color, printable } from "../../text/style.ts";
import { type Cell, table } from "../../text/table.ts";
import type { Terminal } from "../terminal.ts";

/**
 * One line on what a pass saw and did: `28 cgroups decided; 120 steps applied; 1 file with another value than wanted`. Other
 * values are only those that were right, or that nodewise wrote, and have changed. A value that is set for the first time, or
 * after a changed decision, is a step.
 */
export function passLine(report: PassReport): string {
  const { cgroups, applied, skipped, decidedBy, decisionId, drift } = report;
  if (cgroups === null) return `${report.at} nothing decided: ${count(report.problems.length, "problem")}`;
  const by = decidedBy === "api" ? ` by the API (${decisionId})` : "";
  const parts = [
    `${count(cgroups.cgroups.length, "cgroup")} decided${by}`,
    ...(applied === null ? [] : stepCounts(applied.results)),
    ...filesThat(drift.filter(isForeign).length, "with a wrong value"),
    ...filesThat(drift.filter(harmlessCause).length, "rounded by the kernel or the runtime"),
    ...(skipped.length === 0 ? [] : [`${skipped.length} skipped`]),
  ];
  return `${report.at} ${parts.join("; ")}`;
}

function stepCounts(results: readonly StepResult[]): readonly string[] {
  if (results.length === 0) return ["nothing to do"];
  const groups = Map.groupBy(results, ({ status }) => status);
  return Array.from(groups, ([status, steps]) => `${count(steps.length, "step")} ${status.replace("_", " ")}`);
}
const filesThat = (n: number, what: string): readonly string[] => (n === 0 ? [] : [`${count(n, "file")} ${what}`]);
const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

const STATUS_COLOR: Readonly<Record<StepResult["status"], Color | undefined>> = {
  planned: undefined,
  applied: "green",
  unchanged: "dim",
  skipped: "yellow",
  failed: "red",
  rolled_back: "yellow",
};

/** Every step with its old and new value, in order. */
export function stepsTable(results: readonly StepResult[], { columns, paint }: Terminal): string {
  const titles = [
    { title: "CGROUP", shrinkTo: 20, cut: "start" },
    { title: "FILE" },
    { title: "OLD", align: "right" },
    { title: "" },
    { title: "NEW", shrinkTo: 12 },
    { title: "WHY", giveUp: 1 },
    { title: "STATUS" },
  ] as const;
  const rows = results.map((result) => ({ cells: stepCells(result), notes: faultNotes(result) }));
  return results.length === 0 ? "" : table(titles, rows, columns, paint);
}

function stepCells({ step, status, before }: StepResult): readonly (string | Cell)[] {
  const color = STATUS_COLOR[status];
  const end: Cell = color === undefined ? { text: status } : { text: status, color };
  const path = printable(step.path);
  if (step.op === "mkdir")
    return [path, step.fresh ? "(create)" : "(complete)", "", "", step.controllers.join(","), step.why, end];
  if (step.op === "rmdir") return [path, "(remove)", "", "", "", step.why, end];
  return [path, step.file, printable(before ?? step.from ?? "new"), "->", printable(step.to), step.why, end];
}
const faultNotes = ({ status, message }: StepResult): readonly string[] =>
  status === "failed" || status === "skipped" || status === "rolled_back" ? [`  ${printable(message)}`] : [];

/** Files whose value is not the wanted one, with the cause; not those with an earlier value that nodewise wrote. */
export function driftTable(drift: readonly DriftRow[], { columns, paint }: Terminal): string {
  const titles = [
    { title: "CGROUP", shrinkTo: 20, cut: "start" },
    { title: "FILE" },
    { title: "FOUND", align: "right" },
    { title: "WANTED", align: "right" },
    { title: "CAUSE" },
  ] as const;
  const rows = drift.filter(isReported).map(({ path, file, actual, wanted, cause }) => ({
    cells: [printable(path), printable(file), printable(actual), printable(wanted), cause],
  }));
  return rows.length === 0 ? "" : table(titles, rows, columns, paint);
}

/** Lists what the decision has and the plan leaves out. */
export const skipLines = (skipped: readonly Skip[], { paint }: Terminal): string =>
  skipped.map(({ message }) => paint("dim", `skipped: ${printable(message)}\n`)).join("");
